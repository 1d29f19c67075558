"""Four ways of thinking, each a chain with the memory at its head and ``with_memory`` around it::

    bot = with_memory(cot(memory, model), memory)

cot       step by step, then the conclusion
few_shot  after examples
react     with tools, in a loop
tot       several proposals, a judge, a decision
"""

from .cot import cot
from .few_shot import few_shot
from .react import react
from .tot import tot

MODES = {"cot": cot, "few_shot": few_shot, "react": react, "tot": tot}
"""By name; each takes ``(memory, model)``, and react the tools too."""

__all__ = ["MODES", "cot", "few_shot", "react", "tot"]
