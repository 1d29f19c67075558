"""What is language, Chinese and English: the words the memory puts into prompts, the terms of a text, what a
message says by itself. Knows nothing else of the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .ephemeral import is_passing as is_passing
    from .ephemeral import only_asks as only_asks
    from .ephemeral import passing as passing
    from .phatic import is_phatic as is_phatic
    from .wording import CORE as CORE
    from .wording import EARLIER_SUMMARY as EARLIER_SUMMARY
    from .wording import NEW_PART as NEW_PART
    from .wording import RECALLED as RECALLED
    from .wording import SHORTEN as SHORTEN
    from .wording import SPEAKERS as SPEAKERS
    from .wording import SUMMARISE as SUMMARISE
    from .wording import SUMMARY as SUMMARY
    from .wording import Language as Language
    from .wording import language_of as language_of
    from .wording import listed as listed
    from .wording import told as told
    from .wording import unmarked as unmarked
    from .words import MAX_CHARS as MAX_CHARS
    from .words import normalize as normalize
    from .words import same_saying as same_saying
    from .words import size as size
    from .words import speaks_of_asker as speaks_of_asker
    from .words import terms as terms
    from .words import with_surface as with_surface
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "ephemeral": "is_passing only_asks passing",
            "phatic": "is_phatic",
            "wording": (
                "CORE EARLIER_SUMMARY Language NEW_PART RECALLED SHORTEN SPEAKERS SUMMARISE "
                "SUMMARY language_of listed told unmarked"
            ),
            "words": "MAX_CHARS normalize same_saying size speaks_of_asker terms with_surface",
        },
    )
