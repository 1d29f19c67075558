"""A profile's message rules as a Runnable, for chat models that are not built by ``chat_model()``.

::

    prompt | one_system | model

One leading system message, a later one folded into the user message behind it, whole tool groups, at least
one user message. Only messages that break a rule are rebuilt; all others pass as the objects they are.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableLambda

from lc_memory.errors import MemoryInputError
from lc_memory.messages import from_lc, messages_to_lc

from .profiles import Profile
from .shape import shape


def shaped_for(profile: Profile, name: str | None = None) -> Runnable[Any, list[BaseMessage]]:
    """A Runnable that takes a prompt (a PromptValue, or a list of messages) and returns its messages in
    line with ``profile``. ``name`` is what the graph shows, by default the profile's name."""

    def bring_into_line(prompt: Any) -> list[BaseMessage]:
        if isinstance(prompt, PromptValue):
            messages = prompt.to_messages()
        elif isinstance(prompt, str):
            raise MemoryInputError(
                "expected a prompt's messages, got a str; put this step directly after the prompt"
            )
        else:
            messages = messages_to_lc(prompt)
        dicts = [from_lc(m) for m in messages]
        known = {id(d): m for d, m in zip(dicts, messages, strict=True)}
        shaped = shape(dicts, profile)
        return [known[id(d)] if id(d) in known else messages_to_lc([d])[0] for d in shaped]

    return RunnableLambda(bring_into_line, name=name or profile.name)


one_system: Runnable[Any, list[BaseMessage]] = shaped_for(
    Profile("one_system", system="first", needs_user=True, developer=False)
)
