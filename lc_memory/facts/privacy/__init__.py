"""What of a text is private, and what is done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .scan import MOST_READ as MOST_READ
    from .scan import NAMES as NAMES
    from .scan import PrivacyMode as PrivacyMode
    from .scan import PrivateDataWarning as PrivateDataWarning
    from .scan import checked_mode as checked_mode
    from .scan import has_blanks as has_blanks
    from .scan import kinds_in_words as kinds_in_words
    from .scan import passed as passed
    from .scan import private_in as private_in
    from .scan import redacted as redacted
    from .scan import warn_of_private as warn_of_private
    from .scan import without_blanks as without_blanks
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "scan": (
                "MOST_READ NAMES PrivacyMode PrivateDataWarning checked_mode has_blanks kinds_in_words "
                "passed private_in redacted warn_of_private without_blanks"
            ),
        },
    )
