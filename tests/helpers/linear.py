"""Whether a pattern of Python's ``re`` takes time in proportion to the text, read off the pattern itself.

``re`` tries one way after the other. It is linear where, from any place in any text, there is a bounded number
of ways to try, and what one place may read without bound no other place reads again. :func:`proved` holds a
pattern to that, and says what speaks against it; what it cannot prove counts as not linear. The sets of
characters are compared over an alphabet with a sample of every class that the pattern tells apart.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_constants as sc
    import sre_parse

MOST = 150_000
"""Steps from one place that count as bounded: ways to try, times the characters of the longest."""
_SAMPLES = "中ｚ\u3000éЖ٣₂…☃😀\u200b"
_BEGIN = {sc.AT_BEGINNING, sc.AT_BEGINNING_STRING}
_REPEATS = {sc.MAX_REPEAT, sc.MIN_REPEAT}
_LOOKS = {sc.ASSERT, sc.ASSERT_NOT}
_AHEAD = 3  # characters by which ways are told apart
_PATHS = 4000

Chars = int  # a bit for each character of the alphabet
Path = tuple[Chars, ...]


def parsed(pattern: re.Pattern[str]) -> Any:
    return sre_parse.parse(pattern.pattern, pattern.flags)


def children(op: Any, value: Any) -> list[Any]:
    if op in _REPEATS:
        return [value[2]]
    if op is sc.BRANCH:
        return list(value[1])
    if op is sc.SUBPATTERN:
        return [value[3]]
    if op in _LOOKS:
        return [value[1]]
    if op is sc.GROUPREF_EXISTS:
        return [part for part in value[1:] if part is not None]
    return []


def _named(tree: Any) -> Iterator[str]:
    """The characters that a pattern names, ends of ranges and their neighbours included."""
    for op, value in tree:
        if op in (sc.LITERAL, sc.NOT_LITERAL):
            yield chr(value)
        elif op is sc.IN:
            yield from _named(value)
        elif op is sc.RANGE:
            yield from map(chr, {value[0], value[1], max(0, value[0] - 1), min(value[1] + 1, 0x10FFFF)})
        else:
            for part in children(op, value):
                yield from _named(part)


@dataclass(frozen=True)
class _Where:
    anchored: bool = False
    """Tried at the beginning of the text alone."""
    inner: bool = False
    """Within a look-around: its end is not the end of the match."""
    head: bool = True
    """Nothing was read yet."""
    begins: Chars = 0
    """What the first character may be."""
    behind: tuple[Any, ...] = ()
    """What is looked at before that."""
    deep: bool = False
    """Within a repeat."""


class _Proof:
    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.tree = parsed(pattern)
        self.flags = pattern.flags
        named = {x for c in _named(self.tree) for x in (c, c.lower(), c.upper()) if len(x) == 1}
        self.all = sorted({*map(chr, range(256)), *_SAMPLES, *named})
        self._sets: dict[str, Chars] = {}
        self.against: list[str] = []
        self.open_ends = 0

    # ---------------------------------------------------------------- sets of characters

    def set_of(self, op: Any, value: Any) -> Chars | None:
        """The characters that a node of one character takes; None where it is no such node."""
        if op not in (sc.LITERAL, sc.NOT_LITERAL, sc.ANY, sc.IN):
            return None
        key = f"{op}{value}"
        if key not in self._sets:
            compiled = re.compile(_written(op, value), self.flags & (re.I | re.A | re.S))
            self._sets[key] = sum(1 << i for i, c in enumerate(self.all) if compiled.fullmatch(c))
        return self._sets[key]

    def nullable(self, tree: Sequence[Any]) -> bool:
        return all(self._nullable(op, value) for op, value in tree)

    def _nullable(self, op: Any, value: Any) -> bool:
        if op in _REPEATS:
            return value[0] == 0 or self.nullable(value[2])
        if op is sc.BRANCH:
            return any(map(self.nullable, value[1]))
        if op is sc.SUBPATTERN:
            return self.nullable(value[3])
        return op is sc.AT or op in _LOOKS

    def paths(self, tree: Sequence[Any], k: int = _AHEAD) -> set[Path]:
        """How what ``tree`` takes may begin, up to ``k`` characters each; () among them: it may be empty."""
        if not k or not tree:
            return {()}
        (op, value), rest = tree[0], list(tree[1:])
        one = self.set_of(op, value)
        if one is not None:
            return {(one, *path) for path in self.paths(rest, k - 1)}
        if op is sc.BRANCH:
            found = [path for part in value[1] for path in self.paths([*part, *rest], k)]
        elif op is sc.SUBPATTERN:
            return self.paths([*value[3], *rest], k)
        elif op in _REPEATS:
            least, most, body = value
            again = most if most is sc.MAXREPEAT else most - 1
            more = [(op, (max(0, least - 1), again, body))] if again else []
            found = [] if least else [*self.paths(rest, k)]
            found += [path for path in self.paths([*body, *more, *rest], k) if path or least]
        elif op is sc.ASSERT and value[0] == 1 and not self.nullable(value[1]):
            return self.paths(value[1], k)  # what comes next is this at the least
        else:
            return self.paths(rest, k)
        if len(found) > _PATHS:
            return {path[:1] for path in found}
        return set(found)

    def first(self, tree: Sequence[Any]) -> Chars:
        found = 0
        for path in self.paths(tree, 1):
            found |= path[0] if path else 0
        return found

    def apart(self, one: set[Path], other: set[Path]) -> bool:
        """Whether no text begins both ways."""
        if () in one or () in other:
            return False
        heads = 0
        for q in other:
            heads |= q[0]
        return all(
            any(not a & b for a, b in zip(p, q, strict=False)) for p in one if p[0] & heads for q in other
        )

    def anywhere(self, tree: Any) -> Chars:
        found = 0
        for op, value in tree:
            one = self.set_of(op, value)
            if one is not None:
                found |= one
            elif op not in _LOOKS:
                for part in children(op, value):
                    found |= self.anywhere(part)
        return found

    # ---------------------------------------------------------------- ways to try

    def ways(self, tree: Any, after: list[Any], at: _Where) -> tuple[int, int]:
        """(ways to try, characters of the longest bounded part) of ``tree``, with ``after`` behind it."""
        ways, length = 1, 0
        items = list(tree)
        if at.head:
            at = replace(at, begins=self.first([*items, *after]))
        for i, (op, value) in enumerate(items):
            if op is sc.AT and value in _BEGIN and not self.flags & re.M and at.head:
                at = replace(at, anchored=True)
            if at.head and (op is sc.AT or (op in _LOOKS and value[0] == -1)):
                at = replace(at, behind=(*at.behind, (op, value)))
            more, longer = self._ways(op, value, items[i + 1 :] + after, at)
            ways, length = ways * more, length + longer
            at = replace(at, head=at.head and (op is sc.AT or op in _LOOKS))
        return ways, length

    def _ways(self, op: Any, value: Any, after: list[Any], at: _Where) -> tuple[int, int]:
        if self.set_of(op, value) is not None:
            return 1, 1
        if op is sc.AT:
            return 1, 0
        if op is sc.SUBPATTERN:
            return self.ways(value[3], after, at)
        if op in _LOOKS:  # its ways are given up once it is decided
            ways, length = self.ways(value[1], [], replace(at, inner=True, head=False))
            return 1, ways * length
        if op is sc.BRANCH:
            return self._branch(value[1], after, at)
        if op in _REPEATS:
            return self._repeat(op, *value, after, at)
        self.against.append(f"{op} has no bound that could be shown")
        return 1, 1

    def _branch(self, branches: list[Any], after: list[Any], at: _Where) -> tuple[int, int]:
        before, most = self.open_ends, self.open_ends
        each = []
        for part in branches:
            self.open_ends = before
            each.append((*self.ways(part, after, at), self.paths([*part, *after])))
            most = max(most, self.open_ends)
        self.open_ends = most
        common = max(
            sum(ways for ways, _, other in each if not self.apart(paths, other)) for _, _, paths in each
        )
        return max(1, common), max(length for _, length, _ in each)

    def _repeat(
        self, op: Any, least: int, most: Any, body: Any, after: list[Any], at: _Where
    ) -> tuple[int, int]:
        before = self.open_ends
        last, length = self.ways(body, after, replace(at, deep=at.deep or most > 1))
        ways = 1
        if most > 1:  # before another one
            self.open_ends = before
            again = [*body, (sc.MAX_REPEAT, (0, most, body)), *after]
            ways, length = self.ways(body, again, replace(at, deep=True))
        if self.nullable(body) and most > 1:
            self.against.append("what may be empty is repeated")
        # Where it ends is told by what follows, or does not matter, since nothing behind it can fail.
        sure = op is sc.MAX_REPEAT and not at.inner and self.nullable(after) and not _looks(after)
        parted = sure or self.apart(self.paths(list(body)), self.paths(after))
        if most != sc.MAXREPEAT:
            if sure:  # what it reads is read for good
                return 1, ways * last * length
            ends = 1 if parted or most == least else most - least + 1
            if after and all(op is sc.AT or op in _LOOKS for op, _ in after):
                ends = min(ends, 2)  # each of them is a single step
            return ends * last * ways ** min(most - 1, 40), length * most
        if ways > 1 and not sure:
            self.against.append("an unbounded repeat has several ways through it")
        # No two places read the same run: one alone begins, the match takes all of it, or none can begin in it.
        alone = at.anchored or not at.begins & self.anywhere(body) or self._guarded(body, at)
        if not (sure or alone):
            self.against.append("many places may read the same unbounded run")
        if not parted:  # it is given back character by character, which must happen once only
            self.open_ends += 1
            if not alone or at.deep or self.open_ends > 1 or _unbounded(after):
                self.against.append("an unbounded repeat may end in several places")
        return 1 if sure else last, length

    def _guarded(self, body: Any, at: _Where) -> bool:
        r"""``(?<![a-z])[a-z]+``, ``(?<=,) +``, ``\b\w+``: what is looked at behind it never ends in the run."""
        run = self.anywhere(body)
        for op, value in at.behind:
            if op is sc.AT and value is sc.AT_BOUNDARY:
                word = self.set_of(sc.IN, [(sc.CATEGORY, sc.CATEGORY_WORD)])
                if word is not None and not (at.begins | run) & ~word:
                    return True
            elif op in _LOOKS:
                one = self.set_of(*value[1][0]) if len(value[1]) == 1 else None
                if one is not None and not run & (~one if op is sc.ASSERT_NOT else one):
                    return True
        return False


def _unbounded(tree: Sequence[Any]) -> bool:
    return any(
        (op in _REPEATS and value[1] == sc.MAXREPEAT) or any(_unbounded(list(p)) for p in children(op, value))
        for op, value in tree
    )


def _looks(tree: Sequence[Any]) -> bool:
    """Whether something is looked at that may make the whole fail."""
    return any(
        op in _LOOKS
        or op is sc.AT
        or (not (op in _REPEATS and value[0] == 0) and any(_looks(list(p)) for p in children(op, value)))
        for op, value in tree
    )


_CATEGORY = {
    sc.CATEGORY_DIGIT: r"\d", sc.CATEGORY_NOT_DIGIT: r"\D", sc.CATEGORY_SPACE: r"\s",
    sc.CATEGORY_NOT_SPACE: r"\S", sc.CATEGORY_WORD: r"\w", sc.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def _written(op: Any, value: Any) -> str:
    """A node of one character, as a pattern again, so that it means to the engine what it meant there."""
    if op is sc.ANY:
        return "."
    if op is sc.LITERAL:
        return re.escape(chr(value))
    if op is sc.NOT_LITERAL:
        return f"[^{re.escape(chr(value))}]"
    out = []
    for kind, what in value:
        if kind is sc.NEGATE:
            out.append("^")
        elif kind is sc.LITERAL:
            out.append(re.escape(chr(what)))
        elif kind is sc.RANGE:
            out.append(f"{re.escape(chr(what[0]))}-{re.escape(chr(what[1]))}")
        else:
            out.append(_CATEGORY[what])
    return f"[{''.join(out)}]"


def proved(pattern: re.Pattern[str]) -> list[str]:
    """What speaks against ``pattern`` taking linear time; nothing: it does."""
    proof = _Proof(pattern)
    ways, length = proof.ways(proof.tree, [], _Where())
    if ways * max(1, length) > MOST:
        proof.against.append(f"{ways} ways to try from one place, of up to {length} characters")
    return list(dict.fromkeys(proof.against))


# ---------------------------------------------------------------- texts to pump a pattern with


def example(tree: Any, repeats: int = 1) -> str:
    """A text that the parsed pattern mostly takes: each repeat ``repeats`` times, or its least."""
    out = []
    for op, value in tree:
        if op is sc.LITERAL:
            out.append(chr(value))
        elif op in (sc.NOT_LITERAL, sc.ANY):
            out.append("x" if value != ord("x") else "y")
        elif op is sc.IN:
            out.append(_member(op, value))
        elif op is sc.BRANCH:
            out.append(example(value[1][0], repeats))
        elif op in _REPEATS:
            out.append(example(value[2], repeats) * min(max(value[0], repeats), value[1]))
        elif op is sc.SUBPATTERN:
            out.append(example(value[3], repeats))
    return "".join(out)


def _member(op: Any, value: Any) -> str:
    compiled = re.compile(_written(op, value))
    likely = next((c for c in "a0 -是A\n,.x_" if compiled.fullmatch(c)), None)
    return likely or next(chr(c) for c in range(0x10000) if compiled.fullmatch(chr(c)))


def parts(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(what stands before it, the part): the whole, each repeated part, and each branch of a parsed pattern."""
    if not before:
        yield "", example(tree)
    for op, value in tree:
        if op in _REPEATS:
            for some in (1, 2):
                yield before, example(value[2], some)
        if op is sc.BRANCH:
            for branch in value[1]:
                yield before, example(branch)
        for part in children(op, value):
            yield from parts(part, before or "\0")
        before += example([(op, value)])
