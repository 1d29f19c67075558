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
    from .convert import messages_from_lc as messages_from_lc
    from .convert import messages_to_lc as messages_to_lc
    from .convert import one_to_lc as one_to_lc
    from .convert import text_of as text_of
    from .tokens import count_message_tokens as count_message_tokens
    from .tokens import count_tokens as count_tokens
    from .tool_groups import groups as groups
    from .tool_groups import valid_groups as valid_groups
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "cached": "Converter",
            "convert": "Message NOTE _to_lc from_lc messages_from_lc messages_to_lc one_to_lc text_of",
            "tokens": "count_message_tokens count_tokens",
            "tool_groups": "groups valid_groups",
        },
    )
