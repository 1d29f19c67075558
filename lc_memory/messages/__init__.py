"""Messages: dicts and LangChain's, one into the other without loss; tool groups that stay whole; tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .cached import Converter as Converter
    from .convert import NOTE as NOTE
    from .convert import Message as Message
    from .convert import _to_lc as _to_lc
    from .convert import from_lc as from_lc
    from .convert import is_deep as is_deep
    from .convert import messages_from_lc as messages_from_lc
    from .convert import messages_to_lc as messages_to_lc
    from .convert import one_to_lc as one_to_lc
    from .convert import text_of as text_of
    from .histories import is_conversation as is_conversation
    from .histories import is_message as is_message
    from .histories import read as read
    from .histories import turns as turns
    from .question import Asked as Asked
    from .question import asked as asked
    from .question import human_message as human_message
    from .question import unknown as unknown
    from .shown import in_prompt as in_prompt
    from .shown import without_middle as without_middle
    from .speech import answer_of as answer_of
    from .speech import arguments_of as arguments_of
    from .speech import in_words as in_words
    from .speech import spoken as spoken
    from .speech import without_thoughts as without_thoughts
    from .tokens import count_message_tokens as count_message_tokens
    from .tokens import count_tokens as count_tokens
    from .tool_groups import groups as groups
    from .tool_groups import valid_groups as valid_groups
    from .tool_groups import without_calls as without_calls
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "histories": "turns read is_message is_conversation",
            "cached": "Converter",
            "convert": (
                "Message NOTE _to_lc from_lc is_deep messages_from_lc messages_to_lc one_to_lc text_of"
            ),
            "question": "Asked asked human_message unknown",
            "shown": "in_prompt without_middle",
            "speech": "in_words answer_of arguments_of spoken without_thoughts",
            "tokens": "count_message_tokens count_tokens",
            "tool_groups": "without_calls groups valid_groups",
        },
    )
