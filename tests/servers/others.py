"""Two more services on a loopback address, with what they refuse of a history: Anthropic's Messages API and
OpenAI's Responses API.

``refusal`` is the text of a 400, or None. Written from the vendors' pages, independently of the code under test.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class OtherServer:
    """``with OtherServer("anthropic") as server:`` answers "ok"; ``server.requests``, ``server.refusals``."""

    def __init__(self, service: str) -> None:
        self.service = service
        self.requests: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append(body)
                refused = next(_REFUSALS[server.service](body), None)
                if refused is not None:
                    server.refusals.append(refused)
                answer = _ANSWERS[server.service] if refused is None else {"error": {"message": refused, "type": "bad"}}
                data = json.dumps(answer).encode()
                self.send_response(200 if refused is None else 400)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> OtherServer:
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()


_ANSWERS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        "content": [{"type": "text", "text": "ok"}],
    },
    "responses": {
        "id": "resp_1", "object": "response", "created_at": 0, "model": "m", "status": "completed",
        "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "parallel_tool_calls": True,
        "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "output": [{
            "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        }],
    },
}  # fmt: skip


def anthropic_refusals(body: dict[str, Any]) -> Iterator[str]:
    messages = body.get("messages") or []
    for i, message in enumerate(messages):
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        last = i == len(messages) - 1
        if not blocks and not (last and message["role"] == "assistant"):
            yield f"messages.{i}: all messages must have non-empty content except for the optional final assistant message"
        called = []
        for j, block in enumerate(blocks or ()):
            kind = block.get("type")
            allowed = {
                "user": {"text", "image", "document", "tool_result"},
                "assistant": {"text", "tool_use", "thinking", "redacted_thinking", "server_tool_use",
                              "web_search_tool_result"},
            }[message["role"]]  # fmt: skip
            if kind not in allowed:
                yield f"messages.{i}.content.{j}: Input tag {kind!r} found using 'type' does not match any of the expected tags"
            if kind == "text" and not block["text"].strip():
                yield f"messages.{i}: text content blocks must contain non-whitespace text"
            if kind == "tool_use":
                called.append(block["id"])
            if kind == "server_tool_use" and not any(b.get("tool_use_id") == block["id"] for b in blocks):
                yield f"messages.{i}: `server_tool_use` without its result"
            if kind == "tool_result":
                before = messages[i - 1]["content"] if i else []
                if not any(isinstance(b, dict) and b.get("id") == block["tool_use_id"] for b in before):
                    yield f"messages.{i}.content.{j}: unexpected `tool_use_id` found in `tool_result` blocks: {block['tool_use_id']}"
        answered = messages[i + 1]["content"] if not last else []
        ids = {b.get("tool_use_id") for b in answered if isinstance(b, dict)}
        for call in called:
            if call not in ids:
                yield f"messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {call}"


def responses_refusals(body: dict[str, Any]) -> Iterator[str]:
    items = body.get("input")
    items = items if isinstance(items, list) else []
    made = {i["call_id"] for i in items if i.get("type") in ("function_call", "custom_tool_call", "computer_call")}
    given = {i["call_id"] for i in items if str(i.get("type")).endswith("_output")}
    for call in made - given:
        yield f"No tool output found for function call {call}."
    for call in given - made:
        yield f"No tool call found for function call output with call_id {call}."
    for i, item in enumerate(items):
        if item.get("type") == "reasoning":
            after = items[i + 1] if i + 1 < len(items) else {}
            if after.get("role") == "user" or not after:
                yield f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item."
        if item.get("role") == "assistant":
            content = item.get("content")
            parts = [{"text": content}] if isinstance(content, str) else content
            if not parts or not any(str(p.get("text") or p.get("refusal") or "").strip() for p in parts):
                yield f"input[{i}]: an empty assistant message"


_REFUSALS = {"anthropic": anthropic_refusals, "responses": responses_refusals}
