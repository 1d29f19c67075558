"""The original memory is frozen: the adapter may stand around it, never reach into it."""

import hashlib
from pathlib import Path

import legacy_memory

DIGESTS = {
    "__init__.py": "d8d1c5ae33a16c73b7968fb1b89891485ab8fa4e832d8579083d051d71f85930",
    "compress.py": "3e3321d901c2f479fe441e0b8679634ce295b82d1d7af1ed5e3665a2f373290d",
    "long_term.py": "149c3327cbb2d48065d4a2a59f96d2b1030dab3d9c001906410847af6b231b39",
    "memory_manager.py": "0e9cbb749992b9f290b1ac2ece8b3d5d3be81a85334811dbdfae264ed793add5",
    "paths.py": "a02376e4f41189034820d0fb7948a273e756dae17c657c60ba2742dc11a8b0c3",
    "shortmemory.py": "b2ddef0191b06007737f769b28cb7ce28a4a2fde5a62cba45d49f46b0814a3ff",
}


def test_no_file_of_the_original_memory_has_changed() -> None:
    folder = Path(legacy_memory.__file__).parent
    found = {p.name: hashlib.sha256(p.read_bytes().replace(b"\r\n", b"\n")).hexdigest() for p in folder.glob("*.py")}
    assert found == DIGESTS


def test_the_original_memory_imports_nothing_of_the_adapter() -> None:
    for path in Path(legacy_memory.__file__).parent.glob("*.py"):
        assert "lc_memory" not in path.read_text("utf-8").replace("``lc_memory``", "")
        assert "langchain" not in path.read_text("utf-8").replace("LangChain", "").lower()
