"""Embeddings from a service that speaks OpenAI's protocol: OpenAI itself, or any other by ``base_url``."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from lc_memory.errors import MissingKeyError

from .addresses import without_login
from .embedding import clean, unavailable
from .providers import address

if TYPE_CHECKING:
    from langchain_openai import OpenAIEmbeddings


class RemoteEmbeddings(Embeddings):
    """An OpenAI-compatible embeddings service.

    Without arguments it is the service of the variables OPENAI_BASE_URL and OPENAI_API_KEY. These two belong
    together: the key is never sent to a ``base_url`` that is passed here. A ``base_url`` without ``api_key``
    is taken to need none (Ollama, vLLM). Texts go in batches of ``chunk_size``, as text (nothing is tokenized
    here, so no vocabulary is downloaded); 429, 5xx and broken connections are tried ``max_retries`` times
    again.
    """

    def __init__(
        self,
        model: str = "text-embedding-3-small",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        chunk_size: int = 64,
        max_retries: int = 3,
        timeout: float = 30.0,
        **options: Any,
    ) -> None:
        key, what = api_key, "base_url"
        if base_url is None:
            base_url = os.environ.get("OPENAI_BASE_URL") or None
            key = key or os.environ.get("OPENAI_API_KEY")
            what = "OPENAI_BASE_URL"
        if base_url is not None:
            base_url = address(base_url, what)
            key = key or "not-needed"
        if not key:
            raise MissingKeyError(
                "the openai embedding needs a key: set OPENAI_API_KEY in .env or pass api_key=, or use the "
                "embedding 'local', which needs none"
            )
        with unavailable("setting up the embedding service", "Check the options of the openai embedding."):
            from langchain_openai import OpenAIEmbeddings

            self._client: OpenAIEmbeddings = OpenAIEmbeddings(
                model=model,
                base_url=base_url,
                api_key=key,  # type: ignore[arg-type]  # pydantic makes a SecretStr of it
                chunk_size=chunk_size,
                max_retries=max_retries,
                timeout=timeout,
                check_embedding_ctx_length=False,
                **options,
            )
        self.model = model
        self._where = f"the embedding service at {without_login(base_url or 'api.openai.com')} ({model})"
        self._dimension: int | None = None

    _hint = "Check the address, the key, the model's name and the service's limits, then try again."

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One unit vector for each text, in order."""
        sent = [_sendable(text) for text in texts]
        with unavailable(self._where, self._hint):
            return self._checked(self._client.embed_documents(sent) if sent else [], len(sent))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """As :meth:`embed_documents`, without blocking the event loop."""
        sent = [_sendable(text) for text in texts]
        with unavailable(self._where, self._hint):
            return self._checked(await self._client.aembed_documents(sent) if sent else [], len(sent))

    def embed_query(self, text: str) -> list[float]:
        """The unit vector of a question."""
        return self.embed_documents([text])[0]

    async def aembed_query(self, text: str) -> list[float]:
        """As :meth:`embed_query`, without blocking the event loop."""
        return (await self.aembed_documents([text]))[0]

    def _checked(self, vectors: list[list[float]], count: int) -> list[list[float]]:
        if len(vectors) != count:
            raise ValueError(f"{count} texts were sent and {len(vectors)} vectors came back")
        for vector in vectors:
            self._dimension = self._dimension or len(vector)
            if not vector or len(vector) != self._dimension:
                raise ValueError(f"a vector of {len(vector)} numbers came back, not {self._dimension}")
        return [_unit(vector) for vector in vectors]


def _sendable(text: str) -> str:
    return clean(text) or " "  # the services refuse an empty text


def _unit(vector: list[float]) -> list[float]:
    length = sum(x * x for x in vector) ** 0.5
    if not 0 < length < float("inf"):
        raise ValueError("a vector without direction came back")
    return vector if abs(length - 1) < 1e-6 else [x / length for x in vector]
