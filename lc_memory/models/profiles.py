"""What each chat service accepts, as data.

OpenAI's wire format is spoken by all of them and taken literally by few. A ``Profile`` is the list of one
service's rules; ``shape.py`` and ``request.py`` bring a request into line with it, ``chat.py`` reads the
answers. The rules come from the vendors' pages and from public reports of refused requests (2026); the
strict server of the test suite plays the same services and refuses what they refuse.

========== ===================== ========= ================ =================== ===========================
profile    system messages       content   reasoning given  forced tool_choice  structured output
                                 of a bare back
                                 call
========== ===================== ========= ================ =================== ===========================
openai     any number, anywhere  null      no (unknown)     yes                 json_schema
deepseek   any number, anywhere  null      turns with calls thinking off for it function_calling, json_mode
kimi       any number, anywhere  left out  calls, not empty thinking off for it function_calling, json_mode
qwen       one, the first        null      no               thinking off for it json_mode, function_calling
gemma      none: first user      null      no               yes                 json_schema
minimax    one, the first        null      no               never: "auto"       function_calling, json_mode
compatible one, the first        null      no               yes                 json_schema
========== ===================== ========= ================ =================== ===========================

``compatible`` is for services this table does not know: the narrowest reading of the format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from lc_memory.errors import MemoryInputError

Method = Literal["json_schema", "function_calling", "json_mode"]


@dataclass(frozen=True)
class Profile:
    """One service's rules. The defaults leave a request as it is."""

    name: str
    system: Literal["many", "first", "user"] = "many"
    """Any number anywhere; one, in front; or none: its text goes into the first user message."""
    alternate: bool = False
    """user and assistant must take turns, a user first (messages of tool calls are not counted)."""
    needs_user: bool = False
    """A request without any user message is refused."""
    developer: bool = True
    """The role ``developer`` is known; otherwise it is sent as ``system``."""
    bare_call: Literal["null", "omit"] | None = None
    """How an assistant message that only calls tools says that it has no text. ``omit`` also stands for
    services that refuse empty text altogether."""
    json_arguments: bool = False
    """A tool call's arguments must be a JSON object; models write broken ones, and histories keep them."""
    reasoning: Literal["keep", "never", "calls", "turns"] = "keep"
    """Where ``reasoning_content`` is given back: nowhere, in messages that call tools, or in all assistant
    messages of a turn that called tools."""
    no_reasoning: str = ""
    """What stands in for a ``reasoning_content`` that is demanded and not known."""
    audio_ids: bool = True
    """An answer that was spoken can be named by its id."""
    parts: frozenset[str] | None = None
    """Types of content parts a user message may hold; None: anything. Other roles have text only."""
    forced_calls: Literal["yes", "without_thinking", "no"] = "yes"
    """Whether ``tool_choice`` may be "required" or name a function."""
    thinking_off: Literal["thinking", "enable_thinking"] | None = None
    """The field of the body that switches thinking off for one request."""
    json_thinks: bool = True
    """JSON mode works while thinking."""
    structured: tuple[Method, ...] = ("json_schema", "function_calling", "json_mode")
    """Methods of ``with_structured_output`` the service takes, the best first."""
    typed_tools: bool = False
    """Every parameter in a tool's schema must have a ``type`` or an ``anyOf``."""
    max_tokens: str = "max_tokens"
    """The name of the limit on the answer's length."""


_TEXT = frozenset({"text"})
_SEEN = _TEXT | {"image_url", "video_url"}

PROFILES: Mapping[str, Profile] = MappingProxyType({
    p.name: p
    for p in (
        Profile(
            "openai",
            bare_call="null",
            reasoning="never",
            parts=_TEXT | {"image_url", "input_audio", "file"},
            max_tokens="max_completion_tokens",
        ),
        Profile(
            "deepseek",
            developer=False,
            audio_ids=False,
            bare_call="null",
            reasoning="turns",
            parts=_TEXT,
            forced_calls="without_thinking",
            thinking_off="thinking",
            structured=("function_calling", "json_mode"),
        ),
        Profile(
            "kimi",
            developer=False,
            audio_ids=False,
            bare_call="omit",
            reasoning="calls",
            no_reasoning=" ",
            parts=_SEEN,
            forced_calls="without_thinking",
            thinking_off="thinking",
            structured=("function_calling", "json_mode"),
            typed_tools=True,
        ),
        Profile(
            "qwen",
            system="first",
            needs_user=True,
            developer=False,
            audio_ids=False,
            bare_call="null",
            json_arguments=True,
            reasoning="never",
            parts=_SEEN | {"input_audio"},
            forced_calls="without_thinking",
            thinking_off="enable_thinking",
            json_thinks=False,
            structured=("json_mode", "function_calling"),
        ),
        Profile(
            "gemma",
            system="user",
            alternate=True,
            needs_user=True,
            developer=False,
            audio_ids=False,
            bare_call="null",
            json_arguments=True,
            reasoning="never",
            parts=_TEXT | {"image_url"},
        ),
        Profile(
            "minimax",
            system="first",
            needs_user=True,
            developer=False,
            audio_ids=False,
            bare_call="null",
            json_arguments=True,
            reasoning="never",
            parts=_TEXT,
            forced_calls="no",
            structured=("function_calling", "json_mode"),
        ),
        Profile(
            "compatible",
            system="first",
            needs_user=True,
            developer=False,
            audio_ids=False,
            bare_call="null",
            json_arguments=True,
            reasoning="never",
        ),
    )
})  # fmt: skip

# Parts of a model's name or of its address, and whose rules they mean. The model's name is asked first:
# a Qwen behind vLLM has Qwen's template, whatever the address says.
_BY_MODEL = (
    ("deepseek", "deepseek"),
    ("kimi", "kimi"),
    ("moonshot", "kimi"),
    ("qwen", "qwen"),
    ("qwq", "qwen"),
    ("gemma", "gemma"),
    ("minimax", "minimax"),
)
_BY_ADDRESS = (
    ("api.openai.com", "openai"),
    ("deepseek.com", "deepseek"),
    ("moonshot.", "kimi"),
    ("dashscope", "qwen"),
    ("minimax", "minimax"),
)


def profile_named(name: str) -> Profile:
    """The profile of that name. Raises MemoryInputError naming those there are."""
    try:
        return PROFILES[name]
    except KeyError:
        raise MemoryInputError(f"no profile {name!r}; there are: {', '.join(PROFILES)}") from None


def profile_for(model: str | None, base_url: str | None) -> Profile:
    """The profile that fits a model's name and its service's address; ``compatible`` when neither is known.

    No address is OpenAI's own.
    """
    for clues, text in ((_BY_MODEL, model), (_BY_ADDRESS, base_url or "api.openai.com")):
        for clue, name in clues:
            if clue in (text or "").lower():
                return PROFILES[name]
    return PROFILES["compatible"]
