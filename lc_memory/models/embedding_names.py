"""Embeddings by name."""

from __future__ import annotations

from typing import Any

from langchain_core.embeddings import Embeddings

from lc_memory.errors import MemoryInputError

from .embedding import ChromaDefaultEmbeddings, LocalEmbeddings


def embeddings(name: str | Embeddings = "local", **options: Any) -> Embeddings:
    """The embedding of that name, or ``name`` itself where it already is one.

    Cheap: models are loaded at the first text (or by ``warmup()``). ``options`` go to the class:
    ``threads`` for ``local``; ``model``, ``base_url``, ``api_key`` and further fields of
    ``OpenAIEmbeddings`` for ``openai``.

    Raises:
        MemoryInputError: an unknown name, or options beside an object.
        MissingExtraError: ``e5`` without its package.
        MissingKeyError: ``openai`` without a key.
        EmbeddingUnavailableError: ``chroma`` without its model file.
    """
    if isinstance(name, Embeddings):
        if options:
            raise MemoryInputError(f"options {sorted(options)} have no place: {type(name).__name__} is built")
        return name
    if name == "e5":
        from .e5 import E5Embeddings

        return E5Embeddings(**options)
    if name == "openai":
        from .remote_embeddings import RemoteEmbeddings

        return RemoteEmbeddings(**options)
    if name == "local":
        return LocalEmbeddings(**options)
    if name == "chroma":
        return ChromaDefaultEmbeddings(**options)
    raise MemoryInputError(
        f"no embedding is called {name!r}: use local, e5, openai, chroma or a LangChain Embeddings object"
    )
