"""What stands in a prompt and why: what a user looks at when the bot forgot, or the bill is high."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .context import Part

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True)
class Explanation:
    """The account of one prompt-to-be. ``print`` it for a table.

    ``tokens``: of all parts that are in. ``budget``: max_context_tokens, or None. ``repeats``: the share of
    ``tokens`` that stands at the beginning of the session's last prompt already, 0 to 1 (a service that
    caches prefixes bills these at a fraction). ``notes``: what did not work as it should. ``dropped``: what
    the last reading of the session's turns did not keep as a fact, and why.
    """

    session: str
    question: str
    parts: list[Part]
    budget: int | None = None
    repeats: float = 0.0
    degraded: bool = False
    notes: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(p.tokens for p in self.parts if p.included)

    def __str__(self) -> str:
        import io

        from rich.console import Console

        out = io.StringIO()
        # Otherwise a notebook gets HTML on its page and nothing in `out`, and FORCE_COLOR escapes.
        console = Console(file=out, width=120, highlight=False, force_terminal=False, force_jupyter=False)
        console.print(self)
        # Half an emoji, as a cut string has it, is kept in the store and can be printed nowhere.
        shown = out.getvalue().encode("utf-8", "replace").decode("utf-8")
        return "\n".join(line.rstrip() for line in shown.splitlines())

    def __rich__(self) -> RenderableType:
        """The table, as wide as the console it is printed on allows."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(title=Text(self.session), title_justify="left", expand=False)
        for name, kwargs in (
            ("part", {}), ("in", {}), ("tokens", {"justify": "right"}), ("score", {"justify": "right"}),
            ("why", {"max_width": 32}), ("text", {"max_width": 48}),
        ):  # fmt: skip
            table.add_column(name, **kwargs)
        for p in self.parts:
            text = " ".join(p.text.split())
            table.add_row(
                p.kind,
                "yes" if p.included else "no",
                str(p.tokens),
                "" if p.score is None else f"{p.score:.2f}",
                Text(p.why),
                Text(text if len(text) <= 90 else text[:89] + "…"),
            )
        budget = "" if self.budget is None else f" of {self.budget}"
        total = f"{self.tokens}{budget} tokens, {self.repeats:.0%} of them as in the last prompt"
        notes = [f"! {note}" for note in self.notes]
        notes += [f"- not kept as a fact: {line}" for line in self.dropped]
        return Group(table, *map(Text, [total, *notes]))
