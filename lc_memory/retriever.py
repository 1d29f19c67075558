"""MemoryRetriever: facts and turns of the user that the config names, as LangChain documents.

::

    retriever = memory.retriever(k=4)
    chain = RunnablePassthrough.assign(facts=itemgetter("question") | retriever) | prompt | model
    chain.invoke({"question": "我喜欢什么运动？"}, {"configurable": {"user_id": "u1"}})

One retriever serves everyone: whose memories it reads is said by each call's config alone, and by nothing
that it keeps.
"""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ConfigurableFieldSpec, RunnableConfig
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict

from lc_memory.errors import MemoryInputError
from lc_memory.index import Source
from lc_memory.recall import Found
from lc_memory.sessions import SPECS, session_key
from lc_memory.store import Fact


class MemoryRetriever(BaseRetriever):
    """Finds at most ``k`` memories that bear on a question, best first; none where nothing does.

    ``kinds``: facts of these kinds alone. ``include_private``: private facts too. ``sources``: "facts",
    "turns" or both. Documents have the memory's ``id`` and words, and as metadata ``source`` ("fact" or
    "turn"), ``kind``, ``noted_at`` (Unix seconds), ``session``, ``score`` (0 to 1) and ``why``.

    The user is ``configurable.user_id``; without one, the session is (``configurable.session_id``).
    ``invoke(question, config, k=…)`` overrides ``k`` for one call.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Any
    k: int = 4
    kinds: list[str] | None = None
    include_private: bool = False
    sources: tuple[Source, ...] = ("facts", "turns")

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return SPECS

    def invoke(
        self,
        input: str,  # noqa: A002  # LangChain calls it so
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        kwargs["owner"] = session_key(config, kwargs).owner
        kwargs.pop("context", None)
        return super().invoke(input, config, **kwargs)

    async def ainvoke(
        self,
        input: str,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        kwargs["owner"] = session_key(config, kwargs).owner
        kwargs.pop("context", None)
        return await super().ainvoke(input, config, **kwargs)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        owner: str | None = None,
    ) -> list[Document]:
        if not isinstance(query, str):
            raise MemoryInputError(f"the retriever takes a question as text, got {type(query).__name__}")
        found = self.memory._long("retriever").find(
            owner or session_key(None).owner,
            query,
            self.k if k is None else k,
            sources=self.sources,
            kinds=self.kinds,
            include_private=self.include_private,
        )
        return [_document(one) for one in found]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        owner: str | None = None,
    ) -> list[Document]:
        # A database is read and an embedding computed: not on the event loop.
        return await run_in_executor(
            None,
            self._get_relevant_documents,
            query,
            run_manager=run_manager.get_sync(),
            k=k,
            owner=owner or session_key(None).owner,
        )


def _document(found: Found) -> Document:
    memory = found.memory
    if isinstance(memory, Fact):
        about: dict[str, Any] = {
            "source": "fact",
            "kind": memory.kind,
            "noted_at": memory.noted_at,
            "session": memory.source.get("session"),
        }
    else:
        about = {
            "source": "turn",
            "kind": None,
            "noted_at": memory.turn.created_at,
            "session": memory.key.session_id,
        }
    return Document(
        id=found.id, page_content=found.text, metadata={**about, "score": found.score, "why": found.why}
    )


__all__ = ["MemoryRetriever"]
