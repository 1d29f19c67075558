"""A strict OpenAI-compatible chat server on 127.0.0.1, for tests.

    with ChatServer("deepseek") as server:                  # or openai, kimi, qwen, gemma
        server.script("你好", Answer(tool_calls=[call("add", a=1)]), Fault(429, retry_after=0))
        model = ChatOpenAI(base_url=server.url, api_key="k", model="m")
        ...                                                 # each request takes the next of the script
    server.requests / server.refusals                       # every body received; those answered with 400

A refused request takes nothing of the script; an empty script answers "ok". ``script`` also takes functions
``body -> str | Answer``. A ``Fault(hang=True)`` request waits until ``server.release()``; wait for
``server.hanging`` to know that it has arrived. ``Fault(cut=n)`` breaks a stream after n chunks.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

from .rules import FIELDS, refusal

_ids = count(1)


@dataclass
class Answer:
    """What the model says: text, tool calls (see ``call``), and what it thought before."""

    text: str = ""
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    reasoning: str | None = None
    finish: str | None = None
    """The finish_reason; by default "tool_calls" or "stop"."""


@dataclass
class Fault:
    """What goes wrong instead of an answer."""

    status: int = 200
    retry_after: float | None = None
    cut: int | None = None
    """A stream ends after so many chunks: a plain answer is cut in the middle of its body."""
    abrupt: bool = True
    """Whether the cut shows on the wire (a broken chunked body) or looks like the end of it."""
    garbage: bool = False
    """The body is an HTML page."""
    hang: bool = False
    answer: Answer = field(default_factory=lambda: Answer("one two three four five"))
    """What was being said when it was cut."""


Scripted = str | Answer | Fault | Callable[[dict[str, Any]], "str | Answer | Fault"]


def call(name: str, /, *, id: str | None = None, arguments: str | None = None, **args: Any) -> dict[str, Any]:  # noqa: A002
    """A tool call as the service writes it; ``arguments`` is the exact text, else compact JSON of ``args``."""
    text = arguments if arguments is not None else json.dumps(args, ensure_ascii=False, separators=(",", ":"))
    return {"id": id or f"call_{next(_ids)}", "type": "function", "function": {"name": name, "arguments": text}}


class ChatServer:
    """One service, which answers while it is open. ``url`` is what goes into ``base_url``."""

    def __init__(self, profile: str = "openai") -> None:
        assert profile in FIELDS, f"no such profile: {profile}"
        self.profile = profile
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.refusals: list[str] = []
        self.hanging = threading.Event()
        self._released = threading.Event()
        self._script: deque[Scripted] = deque()
        self._lock = threading.Lock()
        self._name = str(next(_ids))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{_http().server_address[1]}/{self._name}/v1"

    def script(self, *answers: Scripted) -> ChatServer:
        with self._lock:
            self._script.extend(answers)
        return self

    def release(self) -> None:
        self._released.set()

    def __enter__(self) -> ChatServer:
        _services[self._name] = self
        return self

    def __exit__(self, *exc: object) -> None:
        self.release()
        del _services[self._name]

    def reply(self, body: Any, headers: dict[str, str]) -> tuple[str | None, Answer | Fault]:
        """(the refusal, or None; what to answer otherwise)"""
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            refused = refusal(body, self.profile)
            if refused is not None:
                self.refusals.append(refused)
                return refused, Answer()
            scripted = self._script.popleft() if self._script else "ok"
        if callable(scripted):
            scripted = scripted(body)
        return None, Answer(scripted) if isinstance(scripted, str) else scripted

    def hang(self) -> None:
        self.hanging.set()
        self._released.wait()


# One HTTP server a process, with each service under a path of its own: to start and stop one takes 30 ms.
_services: dict[str, ChatServer] = {}


@cache
class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # many clients come at once, and none is to be turned away


def _http() -> ThreadingHTTPServer:
    http = _Server(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, daemon=True).start()
    return http


class _Handler(BaseHTTPRequestHandler):
    service: ChatServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def handle(self) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # the client went away between two requests
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        _, name, path = self.path.split("/", 2)
        if not path.endswith("/chat/completions") or name not in _services:
            self._json(404, {"error": {"message": f"Invalid URL (POST {self.path})"}})
            return
        self.service = _services[name]
        try:
            body = json.loads(raw)
        except ValueError:
            body = None
        refused, answer = self.service.reply(body, {k.lower(): v for k, v in self.headers.items()})
        if refused is not None:
            error = {"message": refused, "type": "invalid_request_error", "param": None, "code": None}
            self._json(400, {"error": error})
            return
        fault = answer if isinstance(answer, Fault) else Fault()
        try:
            self._answer(body, answer.answer if isinstance(answer, Fault) else answer, fault)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client went away, as some tests want it to

    def _answer(self, body: dict[str, Any], answer: Answer, fault: Fault) -> None:
        if fault.hang:
            self.service.hang()
        if fault.status != 200:
            wait = {"Retry-After": f"{fault.retry_after:g}"} if fault.retry_after is not None else {}
            self._json(fault.status, {"error": {"message": f"scripted {fault.status}", "type": "server_error"}}, wait)
        elif fault.garbage:
            self._send(200, b"<html><body>Bad gateway</body></html>", "text/html")
        elif body.get("stream"):
            self._stream(body, answer, fault)
        else:
            self._whole(body, answer, fault)

    def _whole(self, body: dict[str, Any], answer: Answer, fault: Fault) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
        if answer.reasoning is not None:
            message["reasoning_content"] = answer.reasoning
        if answer.tool_calls:
            message["tool_calls"] = answer.tool_calls
        choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
        whole = {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage(body, answer)}
        if fault.cut is None:
            self._json(200, whole)
            return
        data = json.dumps(whole).encode()
        self._send(200, data[: len(data) // 2], "application/json", length=len(data))
        self.close_connection = True

    def _stream(self, body: dict[str, Any], answer: Answer, fault: Fault) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        chunked = fault.cut is None or fault.abrupt
        self.send_header(*(("Transfer-Encoding", "chunked") if chunked else ("Connection", "close")))
        self.end_headers()
        events = [*_deltas(body, answer), "[DONE]"]
        for event in events[: fault.cut]:
            data = f"data: {event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
            self.wfile.flush()
        if fault.cut is not None:
            self.close_connection = True
        elif chunked:
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()

    def _json(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(body, ensure_ascii=False).encode(), "application/json", headers)

    def _send(
        self, status: int, data: bytes, kind: str, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{next(_ids)}", "object": kind, "created": 1_700_000_000, "model": body["model"]}


def _finish(answer: Answer) -> str:
    return answer.finish or ("tool_calls" if answer.tool_calls else "stop")


def _usage(body: dict[str, Any], answer: Answer) -> dict[str, int]:
    asked = len(json.dumps(body["messages"], ensure_ascii=False))
    said = len(answer.text) + len(answer.reasoning or "") + len(json.dumps(answer.tool_calls))
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _deltas(body: dict[str, Any], answer: Answer) -> Iterator[dict[str, Any]]:
    head = _head(body, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(answer.reasoning or ""):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(answer.text):
        yield chunk({"content": piece})
    for i, made in enumerate(answer.tool_calls):
        function = made["function"]
        first = {"name": function["name"], "arguments": ""}
        yield chunk({"tool_calls": [{"index": i, "id": made["id"], "type": "function", "function": first}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": i, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(answer))
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage(body, answer)}


def _pieces(text: str, size: int = 4) -> Iterator[str]:
    for start in range(0, len(text), size):
        yield text[start : start + size]
