"""Into another process: what of a memory and a chain can be pickled, and what to do where it cannot.

A Memory that was opened on a store is its settings: in another process it is opened again, on the same store,
once for each process. What lives in one process alone (a manager of your own, ":memory:", a client with
connections) cannot go, and says so before a worker fails in the middle of it.
"""

from __future__ import annotations

import copy
import os
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lc_memory.errors import LCMemoryError, MemoryInputError

if TYPE_CHECKING:
    from .load_mem import ChainMemory as Memory

_INSTEAD = "Build it in the process that uses it: a function that opens the memory and makes the chain"

_open: weakref.WeakValueDictionary[tuple[int, str], Memory] = weakref.WeakValueDictionary()
_opening = threading.Lock()


def known(memory: Memory, name: str) -> None:
    """A copy that comes back into this process is ``memory`` itself: two would not know of each other."""
    _open[os.getpid(), name] = memory


def opened_again(name: str, reopen: Callable[..., Memory], where: str, settings: Mapping[str, Any]) -> Memory:
    """The memory of these settings in this process. ``name``: the same for all copies of one memory."""
    with _opening:
        memory = _open.get((os.getpid(), name))
        if memory is None:
            memory = reopen(where, **settings)
            memory._name = name
            known(memory, name)
        return memory


def movable(value: Any, what: str) -> Any:
    """``value`` as it can be pickled. MemoryInputError, which says what to do, where it cannot be."""
    try:
        pickle.dumps(value)
        return value
    except LCMemoryError:
        raise
    except Exception:
        cloud: Any = sys.modules.get("cloudpickle")
        if cloud is not None:  # functions that have no name of their own go that way, whoever pickles
            try:
                return _Packed(cloud.dumps(value))
            except LCMemoryError:
                raise
            except Exception as also:
                error = also
        raise MemoryInputError(f"{what} cannot be pickled ({error}). {_INSTEAD}") from error


class _Packed:
    """Becomes what it was packed from when it is unpickled."""

    def __init__(self, packed: bytes) -> None:
        self._packed = packed

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self._packed,)  # what was pickled a moment ago


def copied(value: Any, memo: dict[int, Any]) -> Any:
    """``copy.deepcopy`` with an error that says what to do."""
    try:
        return copy.deepcopy(value, memo)
    except LCMemoryError:
        raise
    except Exception as error:
        raise MemoryInputError(
            f"the chain cannot be copied in depth ({error}): copy.copy shares it, which is safe. {_INSTEAD}"
        ) from error


def stays(what: str) -> MemoryInputError:
    return MemoryInputError(f"{what} lives in one process and cannot be pickled. {_INSTEAD}")
