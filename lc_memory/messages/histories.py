"""Conversations that were held elsewhere: which forms they come in, and how they become turns.

::

    read([{"role": "user", "content": "我叫小明"}, {"role": "assistant", "content": "你好，小明"}])
    read({"contents": [{"role": "user", "parts": [{"text": "我叫小明"}]}, …]})

All become the OpenAI-style dicts that ``convert.py`` knows. Known are, as a list or as an object that
holds one: OpenAI's messages (chat completions, with tool calls; a fine-tuning line; a request with its
answer), items of the Responses API, LangChain's message objects, what ``messages_to_dict`` and ``dumpd``
make of them, (role, text) pairs, Anthropic's and Bedrock's messages, Gemini's ``contents``, ShareGPT's
``from`` and ``value``, the Vercel AI SDK's ``parts``, ``{"role", "text"}``, rows of ``message_store``, the
conversations that ChatGPT and Claude export, a chat message history of LangChain's, and any of them as a
string of JSON. A message in no known form is a MemoryInputError that says which and why; none is
ever read as a blank one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, messages_from_dict

from lc_memory.errors import MemoryInputError

from .convert import Message, _shown, _to_lc, from_lc
from .speech import answered_id, is_call, is_result, part_type

_ROLES = {
    "user": "user", "human": "user", "prompter": "user", "用户": "user",
    "assistant": "assistant", "ai": "assistant", "model": "assistant", "bot": "assistant",
    "chatbot": "assistant", "gpt": "assistant", "chatgpt": "assistant", "助手": "assistant",
    "system": "system", "developer": "developer", "系统": "system",
    "tool": "tool", "function": "function", "observation": "tool", "function_response": "tool",
    "tool_response": "tool", "function_call": "call", "tool_call": "call",
}  # fmt: skip
_PLAIN = frozenset({"user", "assistant", "system"})
_NOT_ASKING = frozenset({"assistant", "system", "developer", "tool", "function"})
_LC_TYPES = frozenset({"human", "ai", "system", "tool", "function", "chat"})
_LISTS = ("messages", "conversations", "conversation", "contents", "input", "output", "items", "history",
          "chat_messages")  # fmt: skip
"""Under which names an object holds its messages."""


def read(history: Any, *, blanks: bool = False) -> list[Message]:
    """The messages of a history in any known form, a single message included, as OpenAI-style dicts.

    ``blanks``: whether a message of the user may say nothing, as one that a front end sends along.
    Raises MemoryInputError, naming the first place that is not understood and why.
    """
    reader = _Reader(blanks)
    if isinstance(history, (str, bytes)):
        history = _unpacked(history)
    elif not isinstance(history, (Mapping, list, tuple, BaseMessage)) and isinstance(
        getattr(history, "messages", None), (list, tuple)
    ):
        history = history.messages  # a BaseChatMessageHistory, a prompt's value
    if _is_one(history):
        reader.take(history, "the message")
        return reader.done()
    for message, where in _entries(history):
        reader.take(message, where)
    return reader.done()


def turns(messages: Sequence[Message]) -> list[list[Message]]:
    """``messages`` as turns, each from a message of the user to the next. System messages before the first
    one belong to the first turn; a greeting is a turn by itself, and so is each of several. A tool's result
    stays in the turn of its call. Whose name no service knows (a ChatMessage's) speaks as the user does."""
    bound = _bound(messages)
    out: list[list[Message]] = []
    spoken = asked = answered = False  # in the last turn
    for i, message in enumerate(messages):
        role = message.get("role")
        asks = role not in _NOT_ASKING
        starts = spoken if asks else role == "assistant" and answered and not asked
        if not out or (starts and i not in bound):
            out.append([])
            spoken = asked = answered = False
        out[-1].append(message)
        spoken = spoken or role not in ("system", "developer")
        asked = asked or asks
        if role == "assistant":
            answered = not message.get("tool_calls") and not _is_blank(message.get("content"))
    return out


def is_conversation(value: Any) -> bool:
    """Whether a value is a history and no single message: a list of messages, or an object with one."""
    return not _is_one(value) and (
        isinstance(value, (list, tuple))
        or (isinstance(value, Mapping) and (_list_in(value) is not None or _is_tree(value)))
    )


def is_message(value: Any) -> bool:
    """Whether an element of a list is meant as a message, and not as a part of one's content."""
    if isinstance(value, BaseMessage):
        return True
    if isinstance(value, (tuple, list)):
        return len(value) == 2 and isinstance(value[0], str) and value[0].strip().lower() in _ROLES
    if isinstance(value, Mapping):
        return _is_one(value) or value.get("type") in ("function_call", "function_call_output")
    return hasattr(value, "model_dump") and hasattr(value, "role")


def _bound(messages: Sequence[Message]) -> set[int]:
    """Where a message of the user stands between a call and its result, or is a result."""
    asked: dict[str, int] = {}
    bound: set[int] = set()
    for i, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            for call in message.get("tool_calls") or ():
                if isinstance(call, dict) and isinstance(call.get("id"), str):
                    asked[call["id"]] = i
        ids = [message.get("tool_call_id")] if role == "tool" else []
        if isinstance(message.get("content"), list):
            ids += [answered_id(p) for p in message["content"] if is_result(p)]
        for answered in ids:
            if answered in asked:
                bound.update(range(asked.pop(answered), i + 1))
    return bound


# ---------------------------------------------------------------- a history


def _is_one(value: Any) -> bool:
    """One message, and no list of them."""
    if isinstance(value, BaseMessage):
        return True
    if isinstance(value, Mapping):
        known = any(k in value for k in ("role", "from", "lc")) or value.get("type") in _LC_TYPES | {
            "message"
        }
        return known or isinstance(value.get("content"), str)
    return hasattr(value, "model_dump") and hasattr(value, "role")


def _entries(history: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(history, (str, bytes)) or not isinstance(history, (Mapping, Iterable)):
        raise MemoryInputError(f"a history is a list of messages, got {_shown(history)}")
    if isinstance(history, Mapping):
        yield from _held(history)
        return
    for i, message in enumerate(history):
        yield message, f"messages[{i}]"


def _unpacked(text: str | bytes) -> Any:
    """What a string of JSON holds. Other text says nobody's words."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, (dict, list)):
        raise MemoryInputError(f"a history is a list of messages, got {_shown(text)}")
    return value


def _held(history: Mapping[str, Any]) -> Iterator[tuple[Any, str]]:
    """The messages of an object that holds them: a request, a training line, a state."""
    if isinstance(history.get("body"), Mapping):
        history = history["body"]
    if _is_tree(history):
        yield from _branch(history["mapping"], history.get("current_node"))
        return
    pair = _pair(history)
    if pair is not None:
        yield from pair
        return
    name = _list_in(history)
    if name is None:
        keys = ", ".join(map(repr, history)) or "none"
        raise MemoryInputError(
            f"this object holds no conversation (its keys: {keys}); messages stand under one of "
            f"{', '.join(map(repr, _LISTS[:4]))}"
        )
    for key in ("system", "system_instruction", "systemInstruction", "instructions"):
        given = history.get(key)
        if isinstance(given, Mapping) and "parts" in given:
            yield {"role": "system", "parts": given["parts"]}, repr(key)
        elif given:
            yield {"role": "system", "content": given}, repr(key)
    listed = history[name]
    if isinstance(listed, str):
        yield {"role": "user", "content": listed}, repr(name)
    else:
        for i, message in enumerate(listed):
            yield message, f"{name}[{i}]"
    if name == "input" and isinstance(history.get("output"), (list, tuple)):
        for i, message in enumerate(history["output"]):
            yield message, f"output[{i}]"
    for i, choice in enumerate(history.get("choices") or ()):
        if isinstance(choice, Mapping) and i == 0:
            yield choice.get("message"), "choices[0]['message']"
    for key, value in history.items():  # the answer, which a recorded request has beside it
        if isinstance(value, Mapping) and value.get("role") in ("assistant", "model"):
            yield value, repr(key)


def _is_tree(history: Mapping[str, Any]) -> bool:
    return isinstance(history.get("mapping"), Mapping) and "current_node" in history


def _branch(nodes: Mapping[str, Any], last: Any) -> Iterator[tuple[Any, str]]:
    """ChatGPT keeps a tree, with a branch for each answer made anew: the one that was shown last is the
    conversation, from its leaf upwards. What no one was shown in it (a setting, what a tool was told) is left
    out; of what was attached the words remain."""
    if last not in nodes:
        parents = {n.get("parent") for n in nodes.values() if isinstance(n, Mapping)}
        last = next((k for k in reversed(list(nodes)) if k not in parents), None)
    path: dict[str, Mapping[str, Any]] = {}
    while isinstance(last, str) and last not in path and isinstance(nodes.get(last), Mapping):
        path[last] = nodes[last]
        last = nodes[last].get("parent")
    for key, node in reversed(path.items()):
        message = node.get("message")
        if not isinstance(message, Mapping):
            continue
        role = (message.get("author") or {}).get("role")
        content = message.get("content") or {}
        hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
        kind = content.get("content_type")
        if role not in ("user", "assistant") or hidden or kind not in ("text", "multimodal_text"):
            continue
        if message.get("recipient", "all") != "all":
            continue
        words = "\n".join(p for p in content.get("parts") or () if isinstance(p, str) and p.strip())
        if words:
            yield {"role": role, "content": words}, f"mapping[{key!r}]"


def _list_in(history: Mapping[str, Any]) -> str | None:
    for name in _LISTS:
        value = history.get(name)
        if isinstance(value, (list, tuple)):
            # The Responses API takes one question as bare text.
            return "input" if name == "output" and isinstance(history.get("input"), str) else name
    return None


def _pair(history: Mapping[str, Any]) -> Iterator[tuple[Any, str]] | None:
    """A training line without messages: a prompt and its completion."""
    for asked, answered in (("prompt", "completion"), ("instruction", "output")):
        if isinstance(history.get(asked), str) and isinstance(history.get(answered), str):
            question = "\n".join(
                q for q in (history[asked], history.get("input")) if isinstance(q, str) and q
            )
            said = [("system", history.get("system"), "'system'")] if history.get("system") else []
            for i, before in enumerate(history.get("history") or ()):
                said += [("user", before[0], f"history[{i}]"), ("assistant", before[1], f"history[{i}]")]
            said += [("user", question, repr(asked)), ("assistant", history[answered], repr(answered))]
            return iter([({"role": role, "content": words}, where) for role, words, where in said])
    return None


# ---------------------------------------------------------------- its messages


class _Reader:
    """Reads one message after another; knows which calls wait for a result, for some forms do not say."""

    def __init__(self, blanks: bool) -> None:
        self._blanks = blanks
        self._out: list[Message] = []
        self._waiting: list[tuple[str, str]] = []  # id and name
        self._parts: list[Any] = []  # of the assistant's next message: what was thought, what ran by itself
        self._count = 0

    def done(self) -> list[Message]:
        self._thought()
        return self._out

    def take(self, message: Any, where: str) -> None:
        self._count += 1
        if type(message) is dict and len(message) == 2 and type(message.get("content")) is str:
            role = message.get("role")
            if type(role) is str and role in _PLAIN and not self._parts and not _is_blank(message["content"]):
                self._out.append(dict(message))
                return
        try:
            self._take(message, where)
        except MemoryInputError:
            raise
        except RecursionError:
            raise MemoryInputError(f"{where} is nested too deeply") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise MemoryInputError(f"{where} cannot become a message: {error}") from error

    def _take(self, message: Any, where: str) -> None:
        if isinstance(message, BaseMessage):
            self._add(from_lc(message), where)
            return
        if isinstance(message, (str, bytes)):
            message = _from_json(message, where)
        elif isinstance(message, (tuple, list)):
            if (
                len(message) != 2
                or not isinstance(message[0], str)
                or message[0].strip().lower() not in _ROLES
            ):
                raise MemoryInputError(f"{where}: a message in a pair is (role, text), got {_shown(message)}")
            message = {"role": message[0], "content": message[1]}
        elif not isinstance(message, Mapping) and hasattr(message, "model_dump"):
            message = message.model_dump(mode="json", exclude_none=True)
        if not isinstance(message, Mapping):
            raise MemoryInputError(f"{where}: this is no message: {_shown(message)}")
        one = dict(message)
        for knows, reads in _FORMS:
            if knows(one):
                reads(self, one, where)
                return
        keys = ", ".join(map(repr, one)) or "none"
        raise MemoryInputError(
            f"{where}: no message in a known form (its keys: {keys}); one has a role and a content, such as "
            '{"role": "user", "content": "…"}'
        )

    # ------------------------------------------------------------ what comes out

    def _add(self, message: Message, where: str) -> None:
        role = message.get("role")
        if isinstance(role, str):
            message = {**message, "role": _ROLES.get(role.strip().lower(), role)}
        if message["role"] == "assistant" and self._parts:
            content = message.get("content")
            text = (
                content
                if isinstance(content, list)
                else [{"type": "text", "text": content}]
                if content
                else []
            )
            message = {**message, "content": [*self._parts, *text]}
            self._parts = []
        elif message["role"] != "assistant":
            self._thought()
        for call in message.get("tool_calls") or ():
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                name = (
                    (call.get("function") or call).get("name")
                    if isinstance(call.get("function"), dict)
                    else None
                )
                self._waiting.append((call["id"], name or ""))
        if message["role"] == "tool":
            self._waiting = [w for w in self._waiting if w[0] != message.get("tool_call_id")]
        if message["role"] == "user" and not self._blanks and _is_blank(message.get("content")):
            raise MemoryInputError(f"{where}: a message of the user that says nothing")
        # There and back: what a prompt could not show is refused here.
        self._out.append(from_lc(_to_lc(message)))

    def _thought(self) -> None:
        """What was thought, and nothing said after it."""
        if self._parts:
            parts, self._parts = self._parts, []
            self._out.append({"role": "assistant", "content": parts})

    def _call(self, call: Message, where: str) -> None:
        """A call that stands alone: those that follow one another are one message."""
        last = self._out[-1] if self._out else {}
        if not self._parts and last.get("role") == "assistant" and last.get("tool_calls"):
            calls = [*last["tool_calls"], call]
            self._out.pop()
            self._add({**last, "tool_calls": calls}, where)
        else:
            self._add({"role": "assistant", "content": None, "tool_calls": [call]}, where)

    def _id(self, given: Any = None) -> str:
        return given if isinstance(given, str) and given else f"call_{self._count - 1}"

    def _answers(self, name: Any = None) -> str:
        """The id of the call that a result without one answers: the first of that name that waits."""
        found = next((w for w in self._waiting if w[1] == name), self._waiting[0] if self._waiting else None)
        return f"call_{self._count - 1}" if found is None else found[0]

    # ------------------------------------------------------------ the forms

    def nobodys(self, one: Message, where: str) -> None:
        """A content without a role is the user's, as for ``_to_lc``."""
        self.said({**one, "role": "user"}, where)

    def langchain(self, one: Message, where: str) -> None:
        kind, data = str(one.get("type")), one.get("data")
        if "lc" in one:
            kind, data = str((one.get("id") or [""])[-1]), one.get("kwargs")
            kind = kind.removesuffix("Chunk").removesuffix("Message").lower()
        elif not isinstance(data, dict):
            data = {k: v for k, v in one.items() if k != "role"}
        if not isinstance(data, dict) or kind.removesuffix("MessageChunk").lower() not in _LC_TYPES:
            raise MemoryInputError(f"{where}: no message of LangChain's is a {kind!r}")
        if "content" not in data:
            raise MemoryInputError(f"{where}: it has no content")
        if data["content"] is None:
            data = {**data, "content": ""}
        if kind == "tool" and data.get("tool_call_id") is None:
            data = {**data, "tool_call_id": self._answers(data.get("name"))}
        self._add(from_lc(messages_from_dict([{"type": kind, "data": data}])[0]), where)

    def row(self, one: Message, where: str) -> None:
        held = one["message"]
        self._take(_from_json(held, where) if isinstance(held, (str, bytes)) else held, where)

    def share_gpt(self, one: Message, where: str) -> None:
        role = _ROLES.get(str(one["from"]).strip().lower())
        value = one.get("value", one.get("content", one.get("text")))
        if role is None:
            raise MemoryInputError(f"{where}: nobody is called {_shown(one['from'])}")
        if not isinstance(value, str):
            raise MemoryInputError(f"{where}: its value is no text, but {_shown(value)}")
        if role == "call":
            self._written_calls(value, where)
        elif role in ("tool", "function"):
            self._add({"role": "tool", "tool_call_id": self._answers(), "content": value}, where)
        else:
            self._add({"role": role, "content": value}, where)

    def sent(self, one: Message, where: str) -> None:
        """A message as Claude exports it: its text is the whole of it."""
        role = _ROLES.get(str(one["sender"]).strip().lower())
        if role not in ("user", "assistant") or not isinstance(one.get("text"), str):
            raise MemoryInputError(f"{where}: expected a sender (human, assistant) and a text")
        self._add({"role": role, "content": one["text"]}, where)

    def _written_calls(self, value: str, where: str) -> None:
        made = _from_json(value, where)
        calls = []
        for n, call in enumerate(made if isinstance(made, list) else [made]):
            arguments = call.get("arguments", call.get("parameters", call.get("args", {})))
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            function = {"name": call["name"], "arguments": text}
            calls.append(
                {"id": f"{self._id()}_{n}" if n else self._id(), "type": "function", "function": function}
            )
        self._add({"role": "assistant", "content": None, "tool_calls": calls}, where)

    def parts(self, one: Message, where: str) -> None:
        """Gemini's parts, which have no type, or the AI SDK's, which have one."""
        role = _role(one.get("role") or "user", where)
        given = one["parts"]
        listed = [given] if isinstance(given, (str, Mapping)) else given
        if not isinstance(listed, (list, tuple)) or not listed:
            raise MemoryInputError(f"{where}['parts']: expected a list of parts, got {_shown(given)}")
        said: list[Any] = []
        calls: list[Message] = []
        results: list[Message] = []

        def flush() -> None:
            if said or calls:
                content: Any = _content_of(said) if said else None
                message: Message = {"role": role, "content": content}
                self._add({**message, "tool_calls": list(calls)} if calls else message, where)
            for result in results:
                self._add(result, where)
            said.clear()
            calls.clear()
            results.clear()

        for i, part in enumerate(listed):
            at = f"{where}['parts'][{i}]"
            got = (
                _gemini_part(part, at)
                if not (isinstance(part, Mapping) and "type" in part)
                else _ui_part(part, at)
            )
            call, result, content = got
            if (content or call) and results:
                flush()
            if content:
                said.append(content)
            if call:
                call_id = call.get("id") or (f"{self._id()}_{len(calls)}" if calls else self._id())
                calls.append({"id": call_id, "type": "function", "function": call["function"]})
                if result is not None:
                    results.append({"role": "tool", "tool_call_id": call_id, "content": result["content"]})
            elif result is not None:
                if said:
                    flush()
                answered = result.get("id") or self._answers(result.get("name"))
                self._add({"role": "tool", "tool_call_id": answered, "content": result["content"]}, at)
        flush()

    def item(self, one: Message, where: str) -> None:
        """An item of the Responses API."""
        kind = one["type"]
        if kind == "message":
            self.said({k: v for k, v in one.items() if k not in ("type", "status")}, where)
        elif kind in ("function_call", "custom_tool_call"):
            arguments = one.get("arguments", one.get("input", ""))
            if kind == "custom_tool_call":
                arguments = json.dumps({"input": arguments}, ensure_ascii=False)
            function = {"name": one["name"], "arguments": arguments}
            call_id = one.get("call_id") or self._id(one.get("id"))
            self._call({"id": call_id, "type": "function", "function": function}, where)
        elif kind.endswith("_output"):
            output = one.get("output")
            if isinstance(output, (list, Mapping)):
                output = (
                    _content_of([_part(p, where) for p in output])
                    if isinstance(output, list)
                    else _json(output)
                )
            self._add({"role": "tool", "tool_call_id": one["call_id"], "content": output}, where)
        elif is_call(one):
            body = {k: v for k, v in one.items() if k not in ("type", "id", "call_id", "status")}
            function = {"name": kind.removesuffix("_call"), "arguments": _json(body)}
            self._call(
                {
                    "id": one.get("call_id") or self._id(one.get("id")),
                    "type": "function",
                    "function": function,
                },
                where,
            )
        elif kind == "item_reference":
            raise MemoryInputError(
                f"{where}: it only names an item that lies at the service: {_shown(one.get('id'))}"
            )
        else:
            self._parts.append(one)

    def said(self, one: Message, where: str) -> None:
        """A role and a content, as OpenAI, Anthropic, Bedrock and most others write it."""
        role = _role(one["role"], where)
        if "content" not in one and not _CALLS & one.keys():
            alias = next((k for k in ("text", "message", "value") if isinstance(one.get(k), str)), None)
            if alias is None:
                keys = ", ".join(map(repr, one))
                raise MemoryInputError(f"{where}: it has a role and no content (its keys: {keys})")
            one = {"content" if k == alias else k: v for k, v in one.items()}
        content = one.get("content")
        if isinstance(content, Mapping):
            content = [content]
        if not isinstance(content, (list, tuple)):
            if role == "call":
                self._written_calls(str(content), where)
                return
            if role == "tool" and one.get("tool_call_id") is None:
                one = {**one, "tool_call_id": self._answers(one.get("name"))}
            self._add({**one, "role": role}, where)
            return
        parts = [_part(p, f"{where}['content'][{i}]") for i, p in enumerate(content)]
        if role == "assistant":
            calls = one.get("tool_calls") or [_block_call(p) for p in parts if _is_client_call(p)]
            self._add(
                {**one, "role": role, "content": parts, **({"tool_calls": calls} if calls else {})}, where
            )
            return
        results = [p for p in parts if is_result(p)]
        for part in results:
            self._add({"role": "tool", **_block_result(part)}, where)
        rest = [p for p in parts if not is_result(p)]
        if rest or not results:
            self._add({**one, "role": role, "content": rest}, where)


_CALLS = frozenset({"tool_calls", "function_call", "refusal", "audio", "reasoning_content"})
_ITEMS = ("_call", "_call_output", "_approval_request", "_approval_response")

_ITEM_TYPES = frozenset({"message", "reasoning", "item_reference", "compaction", "mcp_list_tools"})


def _is_langchain(m: Message) -> bool:
    return "lc" in m or (isinstance(m.get("type"), str) and isinstance(m.get("data"), dict))


def _is_row(m: Message) -> bool:
    return "role" not in m and isinstance(m.get("message"), (str, bytes, dict))


def _is_item(m: Message) -> bool:
    kind = m.get("type")
    return isinstance(kind, str) and (
        "role" in m if kind == "message" else kind in _ITEM_TYPES or kind.endswith(_ITEMS)
    )


_FORMS: tuple[tuple[Callable[[Message], bool], Callable[[_Reader, Message, str], None]], ...] = (
    (_is_langchain, _Reader.langchain),
    (_is_row, _Reader.row),
    (lambda m: "from" in m and "role" not in m, _Reader.share_gpt),
    (lambda m: "sender" in m and "role" not in m, _Reader.sent),
    (lambda m: "parts" in m and "content" not in m, _Reader.parts),
    (_is_item, _Reader.item),
    (lambda m: isinstance(m.get("role"), str), _Reader.said),
    (lambda m: m.get("type") in _LC_TYPES and "content" in m, _Reader.langchain),
    (lambda m: m.get("role") is None and "type" not in m and "content" in m, _Reader.nobodys),
)


def _is_blank(content: Any) -> bool:
    return not content.strip() if isinstance(content, str) else content is None or content == []


def _role(role: Any, where: str) -> str:
    if not isinstance(role, str) or not role.strip():
        raise MemoryInputError(f"{where}['role']: expected text, got {_shown(role)}")
    known = _ROLES.get(role.strip().lower())
    if known is None:
        raise MemoryInputError(
            f"{where}['role']: nobody is called {_shown(role)}; a role is user, assistant, system or tool"
        )
    return known


def _from_json(text: str | bytes, where: str) -> Any:
    try:
        value = json.loads(text)
    except RecursionError:
        raise MemoryInputError(f"{where} is nested too deeply") from None
    except ValueError:
        value = None
    if not isinstance(value, (dict, list)):
        raise MemoryInputError(
            f"{where}: {_shown(text)} does not say whose words it is; a message is (role, text) or a dict"
        )
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- parts


def _part(part: Any, where: str) -> Any:
    """A part of a content, with a type. Text has a text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise MemoryInputError(f"{where}: a part of a content is text or an object, got {_shown(part)}")
    kind = part_type(part)
    if kind in ("text", "input_text", "output_text"):
        text = part.get("text")
        if isinstance(text, Mapping):
            text = text.get("value")
        if not isinstance(text, str):
            raise MemoryInputError(
                f"{where}: a text part without text (its keys: {', '.join(map(repr, part))})"
            )
        if part.get("type") == "text" and text is part["text"]:
            return dict(part)
        extra = {k: v for k, v in part.items() if k not in ("type", "text", "annotations", "logprobs") or (
            k == "annotations" and v)}  # fmt: skip
        return {"type": "text", "text": text, **extra}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        detail = {"detail": part["detail"]} if part.get("detail") else {}
        return {"type": "image_url", "image_url": {"url": part["image_url"], **detail}}
    if kind in ("input_file", "input_image"):
        return {"type": "file", "file": {k: v for k, v in part.items() if k != "type" and v is not None}}
    if not kind:
        raise MemoryInputError(f"{where}: a part in no known form (its keys: {', '.join(map(repr, part))})")
    return dict(part)


def _content_of(parts: Sequence[Any]) -> Any:
    """One text where the parts are nothing else, else the parts."""
    texts = [p if isinstance(p, str) else p["text"] if p.keys() == {"type", "text"} else None for p in parts]
    return "".join(t for t in texts if t) if all(isinstance(t, str) for t in texts) else list(parts)


def _is_client_call(part: Any) -> bool:
    return is_call(part) and part_type(part) in (
        "tool_use",
        "toolUse",
        "tool-call",
        "tool_call",
        "function_call",
    )


def _block_call(part: Mapping[str, Any]) -> Message:
    body = part.get("toolUse", part) if "type" not in part else part
    name = body.get("name", body.get("toolName"))
    given: Any = next((body[k] for k in ("input", "args", "arguments") if body.get(k) is not None), {})
    call_id = next(
        (body[k] for k in ("call_id", "id", "toolUseId", "toolCallId") if isinstance(body.get(k), str)), None
    )
    arguments = given if isinstance(given, str) else _json(given)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _block_result(part: Mapping[str, Any]) -> Message:
    body = part.get("toolResult", part) if "type" not in part else part
    content = next((body[k] for k in ("content", "output", "result") if body.get(k) is not None), "")
    if isinstance(content, Mapping):
        content = content["value"] if isinstance(content.get("value"), str) else _json(content)
    if isinstance(content, list):
        content = _content_of([
            {"type": "text", "text": _json(p["json"])} if "json" in p else _part(p, "a result")
            for p in content
        ])  # fmt: skip
    failed = body.get("is_error") or body.get("status") == "error"
    return {"tool_call_id": answered_id(part), "content": content, **({"status": "error"} if failed else {})}


_Got = tuple["Message | None", "Message | None", Any]
"""A call, a result, or a part of what was said."""


def _gemini_part(part: Any, where: str) -> _Got:
    if isinstance(part, str):
        return None, None, {"type": "text", "text": part}
    if not isinstance(part, Mapping):
        raise MemoryInputError(f"{where}: a part is text or an object, got {_shown(part)}")
    for name, short in (("functionCall", "function_call"), ("functionResponse", "function_response")):
        body = part.get(name, part.get(short))
        if isinstance(body, Mapping) and name == "functionCall":
            function = {"name": body["name"], "arguments": _json(body.get("args") or {})}
            return {"id": body.get("id"), "function": function}, None, None
        if isinstance(body, Mapping):
            return (
                None,
                {"id": body.get("id"), "name": body.get("name"), "content": _json(body.get("response"))},
                None,
            )
    if isinstance(part.get("text"), str):
        if part.get("thought") is True:
            return None, None, {"type": "thinking", "thinking": part["text"]}
        return None, None, {"type": "text", "text": part["text"]}
    inline = part.get("inlineData", part.get("inline_data"))
    if isinstance(inline, Mapping):
        kind = str(inline.get("mimeType", inline.get("mime_type")))
        return None, None, _attached(kind, f"data:{kind};base64,{inline.get('data')}")
    lies = part.get("fileData", part.get("file_data"))
    if isinstance(lies, Mapping):
        kind, uri = (
            str(lies.get("mimeType", lies.get("mime_type"))),
            lies.get("fileUri", lies.get("file_uri")),
        )
        return None, None, _attached(kind, str(uri))
    code = part.get("executableCode", part.get("executable_code"))
    if isinstance(code, Mapping):
        return (
            None,
            None,
            {"type": "text", "text": f"```{str(code.get('language', '')).lower()}\n{code.get('code')}\n```"},
        )
    ran = part.get("codeExecutionResult", part.get("code_execution_result"))
    if isinstance(ran, Mapping):
        return None, None, {"type": "text", "text": f"```\n{ran.get('output', '')}\n```"}
    raise MemoryInputError(
        f"{where}: a part in no known form (its keys: {', '.join(map(repr, part)) or 'none'})"
    )


def _ui_part(part: Mapping[str, Any], where: str) -> _Got:
    kind = str(part["type"])
    if kind == "reasoning":
        return (
            None,
            None,
            {"type": "reasoning", "reasoning": str(part.get("text", part.get("reasoning", "")))},
        )
    if kind == "file":
        return (
            None,
            None,
            _attached(
                str(part.get("mediaType", part.get("mimeType"))), str(part.get("url", part.get("data")))
            ),
        )
    if kind == "step-start":
        return None, None, None
    if kind == "tool-invocation" or kind == "dynamic-tool" or kind.startswith("tool-"):
        body = part.get("toolInvocation", part)
        name = body.get("toolName") or kind.removeprefix("tool-")
        given: Any = next((body[k] for k in ("input", "args") if body.get(k) is not None), {})
        output = next((body[k] for k in ("output", "result", "errorText") if body.get(k) is not None), None)
        call = {"id": body.get("toolCallId"), "function": {"name": name, "arguments": _json(given)}}
        result = {"content": output if isinstance(output, str) else _json(output)}
        return call, None if output is None else result, None
    return None, None, _part(part, where)


def _attached(kind: str, url: str) -> Message:
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    if kind.startswith("audio/") and url.startswith("data:"):
        return {
            "type": "input_audio",
            "input_audio": {"data": url.partition(",")[2], "format": kind.partition("/")[2]},
        }
    return {"type": "file", "file": {"file_data" if url.startswith("data:") else "url": url}}


__all__ = ["is_conversation", "is_message", "read", "turns"]
