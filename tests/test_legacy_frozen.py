"""The original memory is frozen: the adapter may stand around it, never reach into it."""

import hashlib
from pathlib import Path

import legacy_memory

DIGESTS = {
    "__init__.py": "d8d1c5ae33a16c73b7968fb1b89891485ab8fa4e832d8579083d051d71f85930",
    "compress.py": "e28a20a545ebd6845ca3be61392f320f9d765f31de96a7529d7b528d46169095",
    "long_term.py": "3695a8e348dd9d00795d9e5eee3dc7b828831784c6eb2e29994577624cc55f5d",
    "memory_manager.py": "95c3719f7cd641a5f827b826f50385b1c8def33bd4b49eeca77db70fbb06397e",
    "paths.py": "a02376e4f41189034820d0fb7948a273e756dae17c657c60ba2742dc11a8b0c3",
    "shortmemory.py": "f148ed777a1a81faa3efe1475c6d110d0416ed1756230d6c7d634dba0a49ffae",
}


def test_no_file_of_the_original_memory_has_changed() -> None:
    folder = Path(legacy_memory.__file__).parent
    found = {p.name: hashlib.sha256(p.read_bytes().replace(b"\r\n", b"\n")).hexdigest() for p in folder.glob("*.py")}
    assert found == DIGESTS


def test_the_original_memory_imports_nothing_of_the_adapter() -> None:
    for path in Path(legacy_memory.__file__).parent.glob("*.py"):
        assert "lc_memory" not in path.read_text("utf-8").replace("``lc_memory``", "")
        assert "langchain" not in path.read_text("utf-8").replace("LangChain", "").lower()
