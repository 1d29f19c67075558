"""The original, dict-based memory: a sliding window, a rolling summary and long-term facts in Chroma.

It knows nothing of LangChain and is frozen: ``tests/test_legacy_frozen.py`` keeps the digests of its
files, so that the adapter in ``lc_memory`` can only ever stand around it, never reach into it.
"""

from .compress import compress, maybe_compress
from .long_term import LongTermMemory
from .memory_manager import MemoryManager
from .shortmemory import ShortTermMemory

__all__ = ["LongTermMemory", "MemoryManager", "ShortTermMemory", "compress", "maybe_compress"]
