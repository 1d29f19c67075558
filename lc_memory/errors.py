"""Every error lc-memory raises on purpose, in one small tree.

::

    LCMemoryError
    ├── MemoryInputError            what was passed in cannot be used as it is
    ├── StoreError                  turns, summaries or facts could not be read or written
    │   └── SessionBusyError        another turn of the same session has not finished
    ├── FactIndexError              the vector index of the facts cannot be used
    │   ├── EmbeddingMismatchError  it was built with another embedding
    │   └── EmbeddingUnavailableError
    ├── MissingKeyError             a chat service wants a key that is not set
    └── MissingExtraError           an optional package is not installed

Errors of other libraries are wrapped where they cross into this package: the cause stays in
``__cause__`` and the message says what to do next (the variable to set, the extra to install, the
command to run).
"""

from __future__ import annotations


class LCMemoryError(Exception):
    """Base of all errors of this package."""


class MemoryInputError(LCMemoryError, ValueError):
    """What was passed in cannot be used; the message names the place and what was expected.

    It is a ``ValueError`` as well, so that code which already guards its inputs keeps working.
    """


class StoreError(LCMemoryError):
    """Turns, summaries or facts could not be read or written. What was stored before is intact."""


class SessionBusyError(StoreError):
    """Another turn of the same session did not finish within ``session_wait`` seconds."""


class FactIndexError(LCMemoryError):
    """The vector index of the facts cannot be used. The facts themselves lie in the store."""


class EmbeddingMismatchError(FactIndexError):
    """The index was built with another embedding; its vectors cannot be compared with new ones."""


class EmbeddingUnavailableError(FactIndexError):
    """No embedding can be computed now (the model cannot be loaded, or its service does not answer)."""


class MissingKeyError(LCMemoryError):
    """A provider's key is not set; the message names the variable and the file it belongs in."""


class MissingExtraError(LCMemoryError, ImportError):
    """An optional package is missing; the message holds the ``pip install`` line that brings it."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs a package that is not installed. Run: pip install 'lc-memory[{extra}]'"
        )
        self.feature = feature
        self.extra = extra
