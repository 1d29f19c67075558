"""Whatever reads people's text takes time in proportion to it, whatever the text; one bad turn stops no other.

Nothing here is measured in seconds: patterns are proved to be linear from what they are, and whole functions are
run on long texts under an allowance of processor time that is a hundred times what they need, and a hundredth of
what anything that is not linear would take.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import logging
import pkgutil
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import phonenumbers
import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from sqlalchemy import text as sql_text

import lc_memory
from lc_memory import Memory
from lc_memory.errors import MemoryInputError
from lc_memory.facts.extract.asking import notes_in
from lc_memory.facts.extract.evidence import NotBorne, grounded
from lc_memory.facts.extract.figures import figures
from lc_memory.facts.extract.notes import redacted_together, users_words, weigh
from lc_memory.facts.extract.others import of_others
from lc_memory.facts.extract.writer import NoteWriter
from lc_memory.facts.kinds import DEFAULT_KINDS, kept_as, subject_of
from lc_memory.facts.privacy import private_in, redacted
from lc_memory.facts.remember import said_to_remember
from lc_memory.index import following
from lc_memory.index.texts import excerpt, indexable
from lc_memory.language.ephemeral import is_passing, only_asks
from lc_memory.language.phatic import is_phatic
from lc_memory.language.wording import language_of, listed, told
from lc_memory.language.words import same_saying, terms
from lc_memory.messages.tokens import count_tokens
from lc_memory.models.quoting import asks, clauses, sentences, tells
from lc_memory.sessions.portable import import_file
from lc_memory.sessions.summary import transcript
from lc_memory.store import SessionKey, open_store
from lc_memory.store.background import Background
from tests.helpers.linear import parsed, parts, proved
from tests.helpers.longterm import opened


class TooLong(Exception):
    pass


@contextlib.contextmanager
def allowance(seconds: int) -> Iterator[None]:
    """At most so much of the processor's time, which is not that of other programs; ``re`` looks for signals."""

    def stop(*_: object) -> None:
        raise TooLong(f"more than {seconds} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


# ---------------------------------------------------------------- patterns

MODULES = [
    m.name for m in pkgutil.walk_packages(lc_memory.__path__, "lc_memory.") if "__main__" not in m.name
]


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _patterns_in(item)
    elif isinstance(value, dict):
        yield from _patterns_in([*value.values()])
    elif type(value).__module__.startswith("lc_memory.") and not isinstance(value, type):
        yield from _patterns_in(list(getattr(value, "__dict__", {}).values()))


def _patterns() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    seen: set[tuple[str, int]] = set()
    for name in MODULES:
        for variable, value in vars(importlib.import_module(name)).items():
            for i, pattern in enumerate(_patterns_in(value)):
                if isinstance(pattern.pattern, str) and (pattern.pattern, pattern.flags) not in seen:
                    seen.add((pattern.pattern, pattern.flags))
                    found[f"{name.removeprefix('lc_memory.')}.{variable}{f'.{i}' if i else ''}"] = pattern
    for kind in DEFAULT_KINDS:
        if kind.cue:
            found[f"the cue of {kind.name}"] = re.compile(kind.cue, re.IGNORECASE | re.DOTALL)
    return found


PATTERNS = _patterns()


def test_the_walk_finds_the_patterns_of_the_package() -> None:
    assert len(PATTERNS) > 100
    assert {"facts.privacy.papers._PAPER", "facts.remember._PREFIX", "language.wording._MARK"} <= PATTERNS.keys()


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_is_linear_by_what_it_is(name: str) -> None:
    assert proved(PATTERNS[name]) == []


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_stands_being_pumped_with_its_own_parts(name: str) -> None:
    pattern = PATTERNS[name]
    with allowance(20):
        for before, part in dict.fromkeys(parts(parsed(pattern))):
            for end in ("", "\x01x"):
                text = before + part * (20_000 // max(1, len(part))) + end
                pattern.search(text)
                for _ in pattern.finditer(text):
                    pass


_ANYTHING = {("lc_memory.facts.kinds", "self.cue"), ("lc_memory.agent.router", "words")}
"""Tables of patterns, in modules: their entries are proved elsewhere here."""


def _inline() -> Iterator[tuple[str, str, int]]:
    """(module, pattern, flags) of what is handed to ``re.search`` and the others as it stands."""
    for name in MODULES:
        module = importlib.import_module(name)
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        for node in ast.walk(tree):
            if not (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in ("search", "match", "fullmatch", "sub", "split", "findall", "finditer")
            ):
                continue
            written = ast.unparse(node.args[0])
            if (name, written) in _ANYTHING:
                continue
            mode = {"mode": "few_shot"}  # the router's, one of its four
            yield name, eval(written, {**vars(module), **mode}), 0


@pytest.mark.parametrize("case", list(_inline()), ids=lambda case: f"{case[0]} {ascii(case[1])[:30]}")
def test_a_pattern_that_is_written_where_it_is_used_is_linear_too(case: tuple[str, str, int]) -> None:
    assert proved(re.compile(case[1], case[2])) == []


def test_the_router_s_words_are_linear() -> None:
    from lc_memory.agent import router

    for words in [*router._MODELS.values(), *(words for _, words in router._KEYWORDS)]:
        assert proved(re.compile(words)) == []


@pytest.mark.parametrize(
    "bad",
    [
        r"(a+)+b", r"(a|a)*b", r"(?:a|ab)*c", r"a*a*b", r"\s+x", r"x.*y", r"(?:a?){20}b", r"(a)\1+b",
        r"(?:no|n|o){0,40}x", r"[a-z]+@", r"(?=a+b)a", r"<\s*/?\s*x", r"(?:\w+ )+x",
    ],
)  # fmt: skip
def test_the_proof_refuses_what_is_not_linear(bad: str) -> None:
    assert proved(re.compile(bad))


# ---------------------------------------------------------------- functions

LONG = 20_000
PUMPS = [
    ("身份证", "是15位的", "吧"), ("passport", " no", ""), ("", "passport no ", "x"), ("<", " ", ""),
    ("", "< ", ""), ("<remembered>", "< ", ""), ("", "好" * 50, "<remembered>"), ("记住：我喜欢", "了", "x"),
    ("remember:", " ", ""), ("", " ", "x"), ("", "\u3000", "x"), ("", "\n", "x"), ("", "\t ", ""),
    ("", "密码是", ""), ("密码", "是", ""), ("密码", "是不是", "？"), ("password ", "is to be ", "x"),
    ("password for ", "the ", "x"), ("", "token=", ""), ("key", "=>", ""), ("", "电话", ""), ("tel", " at no", ""),
    ("", "1 ", ""), ("", "0 0 1 ", ""), ("", "1 3 8 ", ""), ("", "13812345678 ", ""), ("", "1", ""), ("", "一", ""),
    ("", "0123 456 ", ""), ("+", "4", ""), ("", "+1 ", ""), ("", "a@", ""), ("", "a.", "@"), ("a@", "b.", ""),
    ("", "a b ", ""), ("", "a at b dot ", ""), ("", "_at_", ""), ("", "curl ", ""), ("", "curl -u a", ""),
    ("", "-----BEGIN PRIVATE KEY-----", ""), ("", "://a:", ""), ("", "GB29", ""), ("wx", "_", ""),
    ("助记词 ", "ab ", "1"), ("", "one ", ""), ("", "oh-", "x"), ("", "亿", ""), ("", "千万", ""), ("", "1,000", ""),
    ("", "hundred ", ""), ("", "\"", ""), ("", "'", ""), ("", "“", ""), ("", "`", ""), ("", "```", ""),
    ("```", " ", ""), ("", "[", ""), ("", "{", ""), ("", "{\"a\":", ""), ("", "well, ", "x"), ("", "my ", "x"),
    ("", "我", ""), ("我", "真的很", ""), ("i", " really", ""), ("", "好，", ""), ("", "吗", "x"), ("", "?", "x"),
    ("", "a+", ""), ("", "A", ""), ("", "é", ""), ("", "😀", ""), ("", "\u0301", ""), ("", "ﷺ", ""), ("", "\ud83d", ""),
    ("", "%31", ""), ("", "&#49;", ""), ("", "\\u0031", ""), ("", "…", ""), ("", "...", ""), ("", "- ", ""),
    ("", "<a>", ""), ("", "，", ""), ("", "\x00", ""),
]  # fmt: skip
TEXTS = [before + unit * (LONG // len(unit)) + end for before, unit, end in PUMPS]


def _grounded(text: str) -> None:
    with contextlib.suppress(NotBorne):
        grounded(text[:300], text[:200], [text[:4000]], about_user=True)


FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "private data": private_in,
    "private data of many messages": lambda text: redacted_together([text[:8000], text[:8000]]),
    "taking private data out": redacted,
    "what enters an index": indexable,
    "what is passing": is_passing,
    "what only asks": only_asks,
    "what says nothing": is_phatic,
    "who is spoken of": of_others,
    "the figures": figures,
    "what is liked": subject_of,
    "how a fact is kept": kept_as,
    "what is to be remembered": said_to_remember,
    "the user's words": lambda text: users_words([{"role": "user", "content": text}]),
    "a model's answer": notes_in,
    "evidence": _grounded,
    "the words": terms,
    "saying the same": same_saying,
    "an excerpt": lambda text: excerpt(text, 120, ["篮球", "basketball", text[:2], text[-3:]]),
    "the language": language_of,
    "a fenced list": lambda text: listed("x", [text]),
    "a fenced text": lambda text: told("x", text),
    "sentences": sentences,
    "whether it asks": asks,
    "whether it tells": tells,
    "clauses": clauses,
    "what a summary is made from": lambda text: transcript(text, [{"role": "user", "content": text}]),
    "tokens": count_tokens,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_reader_of_people_s_text_stands_any_text(name: str) -> None:
    logging.disable(logging.WARNING)
    read = FUNCTIONS[name]
    try:
        for text in TEXTS:
            with allowance(15):
                read(text)
    finally:
        logging.disable(logging.NOTSET)


@pytest.mark.parametrize("unit", ["0 0 1 ", "010 123 ", "+1 ", "0049 89 1 ", "13812345678 ", "212-555-01"])
def test_numbers_are_looked_up_a_bounded_number_of_times(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    parse = phonenumbers.parse

    def counted(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return parse(*args)

    monkeypatch.setattr(phonenumbers, "parse", counted)
    private_in(unit * (40_000 // len(unit)))
    assert calls <= 200


# ---------------------------------------------------------------- behind the cap

SECRET = "我的密码是 hunter2secret，身份证 11010519491231002X"


@pytest.mark.parametrize("size", [19_990, 20_000, 60_000, 199_990, 400_000])
@pytest.mark.parametrize("filler", ["好的 ", "word ", "一二 "])
def test_no_secret_behind_what_is_read_gets_into_an_index(size: int, filler: str) -> None:
    text = (filler * size)[:size] + SECRET
    kept = indexable(text) or ""
    assert "hunter2" not in kept
    assert "1101051949" not in kept


@pytest.mark.parametrize("mode", ["refuse", "redact"])
def test_what_was_not_read_is_not_kept_as_a_fact(mode: str, tmp_path: Path) -> None:
    from lc_memory.facts.privacy import passed

    kept, found = passed("好的 " * 80_000 + SECRET, mode)  # type: ignore[arg-type]
    assert found[-1].kind == "unread"
    assert kept is None if mode == "refuse" else "hunter2" not in str(kept)


# ---------------------------------------------------------------- one bad turn stops no other

POISON = "毒药"


def _poisoned(error: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a turn or a fact that holds the word fails."""
    of_turn, of_fact = following.turn_entries, following.fact_entries

    def turn_entries(stored: Any, before: Any) -> Any:
        if error is not None and (POISON in str(stored.turn) or POISON in str(before)):
            raise error("it cannot be read")
        return of_turn(stored, before)

    def fact_entries(fact: Any) -> Any:
        if error is not None and POISON in fact.text:
            raise error("it cannot be read")
        return of_fact(fact)

    monkeypatch.setattr(following, "turn_entries", turn_entries)
    monkeypatch.setattr(following, "fact_entries", fact_entries)


def _found(memory: Memory, question: str) -> list[str]:
    assert memory._longterm is not None
    return [one.text for one in memory._longterm.find(SessionKey("s1", "u1").owner, question, 4)]


def _say(memory: Memory, *questions: str) -> None:
    session = memory.session("s1", user_id="u1")
    for question in questions:
        session.add(
            [{"role": "user", "content": question}, {"role": "assistant", "content": "知道了，记下了这一点"}]
        )
    memory._stored("x").background.wait()


@pytest.mark.parametrize(
    "error", [ValueError, RecursionError, OverflowError, MemoryError, KeyError, UnicodeError]
)
def test_a_turn_that_cannot_be_indexed_is_set_aside_and_told(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _poisoned(error, monkeypatch)
    with opened(tmp_path / "m") as memory:
        _say(memory, "我喜欢打篮球", f"{POISON}在这里", "我住在杭州的西湖边", "我对花生过敏")
        health = memory.health()
        assert health.unindexed == 0
        assert health.drift == 0
        assert [note for note in health.notes if "reindex" in note]
        assert not health.ok
        found = _found(memory, "西湖边 杭州")
        assert any("西湖" in text for text in found)
        _poisoned(None, monkeypatch)
        monkeypatch.undo()
        memory.reindex()
        assert memory.health().ok
        found = _found(memory, f"{POISON}在这里")
        assert any(POISON in text for text in found)


@pytest.mark.parametrize("error", [ValueError, RecursionError, OverflowError])
def test_a_fact_that_cannot_be_indexed_is_set_aside_and_told(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _poisoned(error, monkeypatch)
    with opened(tmp_path / "m") as memory:
        for fact in ("我喜欢打篮球", f"{POISON}在这里", "我住在杭州的西湖边"):
            memory.remember(fact, user_id="u1")
        health = memory.health()
        assert (health.unindexed, health.drift) == (0, 0)
        assert [note for note in health.notes if "reindex" in note]
        assert _found(memory, "西湖边")
        monkeypatch.undo()
        memory.reindex()
        assert memory.health().ok


_DYING = """
import os, sys
from lc_memory.index import following
of_turn = following.turn_entries
def turn_entries(stored, before):
    if "毒药" in str(stored.turn):
        os._exit(9)
    return of_turn(stored, before)
following.turn_entries = turn_entries
from tests.helpers.longterm import opened
with opened(sys.argv[1]) as memory:
    session = memory.session("s1", user_id="u1")
    if sys.argv[2] == "say":
        for question in ("我喜欢打篮球", "毒药在这里", "我住在杭州的西湖边"):
            session.add([{"role": "user", "content": question},
                         {"role": "assistant", "content": "知道了，记下了这一点"}])
    else:
        session.add([{"role": "user", "content": "我对花生过敏"},
                     {"role": "assistant", "content": "知道了，记下了这一点"}])
    memory._stored("x").background.wait()
    health = memory.health()
    print(health.unindexed, health.turns, "set aside" if any("reindex" in n for n in health.notes) else "-")
"""


def test_a_turn_that_takes_the_process_with_it_does_so_three_times_at_most(tmp_path: Path) -> None:
    ended = []
    for attempt in range(6):
        what = "say" if attempt == 0 else "go on"
        run = subprocess.run(
            [sys.executable, "-c", _DYING, str(tmp_path / "m"), what],
            capture_output=True,
            text=True,
            timeout=200,
        )
        ended.append(run.returncode)
        if run.returncode == 0:
            break
        assert run.returncode == 9, run.stderr
    assert ended[-1] == 0
    assert ended.count(9) <= 3
    assert run.stdout.split()[0] == "0"
    assert "set aside" in run.stdout


# ---------------------------------------------------------------- the lines of an import


def _file(path: Path, *lines: str) -> Path:
    header = json.dumps({"type": "header", "format": "lc-memory", "version": 1})
    path.write_text("\n".join([header, *lines]) + "\n", "utf-8")
    return path


def _turn(text: str, turn_id: str = "t1") -> str:
    message = {"role": "user", "content": text}
    return json.dumps(
        {"type": "turn", "session_id": "s", "user_id": "u", "turn_id": turn_id, "created_at": 1.0,
         "messages": [message]}
    )  # fmt: skip


@pytest.mark.parametrize("ending", ["\n", ""])
@pytest.mark.parametrize("megabytes", [17, 50])
def test_a_line_of_an_import_that_is_too_long_is_one_error_with_its_number(
    megabytes: int, ending: str, tmp_path: Path
) -> None:
    file = _file(tmp_path / "f.jsonl", _turn("hello"))
    with file.open("a") as more:
        more.write(_turn("x" * (megabytes << 20), "t2") + ending)
    store = open_store(tmp_path / "m")
    with pytest.raises(MemoryInputError, match="line 3: it is longer than 16 MiB"):
        import_file(store, file)
    assert store.sessions() == []
    done = import_file(store, file, skip_bad=True)
    assert (done.turns, len(done.bad)) == (1, 1)
    store.close()


def test_a_line_of_a_megabyte_is_a_turn(tmp_path: Path) -> None:
    store = open_store(tmp_path / "m")
    assert import_file(store, _file(tmp_path / "f.jsonl", _turn("x" * (1 << 20)))).turns == 1
    store.close()


# ---------------------------------------------------------------- one bad turn costs the others no notes

NUMBERS = [
    "亿" * 40, "亿" * 4000, "万亿" * 30, "千" * 400, "十" * 5000, "九" * 400, "一点五" + "亿" * 2,
    "9" * 400, "1" + "0" * 400 + "亿", "9" * 400 + ".9" * 3, "1," + ",".join(["000"] * 200),
    "two " + "hundred " * 200, "two " + "billion " * 60, "ninety " * 500, "三百" * 300, "٣" * 400,
]  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: ascii(text[:6]) + f" x {len(text)}")
def test_no_number_is_too_large_to_be_weighed(text: str) -> None:
    found = figures(f"我有{text}元 {text} euros")
    assert all(isinstance(value, float) and value == value for value in found)
    good = {"kind": "home", "subject": "", "content": "我住在杭州", "quote": "我住在杭州"}
    bad = {"kind": "budget", "subject": "", "content": f"预算{text}元", "quote": f"预算{text}元"}
    notes = weigh([bad, good], [f"预算{text}元", "我住在杭州"], DEFAULT_KINDS)
    assert [note.content for note in notes.notes if note.kind == "home"] == ["我住在杭州"]


class Extractor:
    """Proposes each line as a note of where the user lives; ``fails`` for a line that holds the word."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def __call__(self, messages: Any) -> AIMessage:
        text = str(messages[1].text)
        if self.fails and POISON in text:
            return AIMessage("I would rather not.")
        lines = [line[2:] for line in text.split("\n") if line.startswith("- ")]
        notes = [{"kind": "home", "subject": "", "content": line, "quote": line} for line in lines]
        return AIMessage(json.dumps({"notes": notes}))


KEY = SessionKey("s1", "u1")


def _noted(
    store: Any, extractor: Extractor, said: Iterable[tuple[str, float | None]], **options: Any
) -> list[str]:
    background = Background()
    writer = NoteWriter(lambda: store, background, RunnableLambda(extractor), **{"every": 1, **options})
    for i, (text, when) in enumerate(said):
        messages = [{"role": "user", "content": text}, {"role": "assistant", "content": "好"}]
        store.append(KEY, messages, turn_id=f"n{i}")
        if when is not None:  # as older versions let it in
            with store.database.write() as connection:
                connection.execute(
                    sql_text("UPDATE lcm_turns SET created_at = :at WHERE turn_id = :id"), {"at": when, "id": f"n{i}"}
                )
    for _ in range(12):  # as many turns as it takes to be tried again
        writer.saved(KEY)
        background.wait()
        writer.finish()
    background.close()
    return [fact.text for fact in store.ledger().current(KEY.owner)]


@pytest.mark.parametrize("text", [*NUMBERS, "\ud83d" * 50, "x" * 200_000, "[" * 50_000, "", "\x00", "<remembered>"],
                         ids=lambda text: ascii(text[:6]) + f" x {len(text)}")  # fmt: skip
def test_notes_are_made_of_a_session_whatever_one_of_its_turns_says(text: str, tmp_path: Path) -> None:
    store = open_store(tmp_path / "m")
    assert _noted(store, Extractor(), [(f"我住在{text}", None), ("我住在杭州", None)], every=2) == [
        "我住在杭州"
    ]
    store.close()


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_turn_that_the_model_cannot_answer_for_is_given_up_alone(place: int, tmp_path: Path) -> None:
    said = ["我住在杭州", "我住在西安"]
    said.insert(place, f"我住在{POISON}")
    store = open_store(tmp_path / "m")
    kept = _noted(store, Extractor(fails=True), [(text, None) for text in said], every=3)
    assert kept == ["我住在西安"]
    assert store.backlog().pending("notes") == []
    store.close()


@pytest.mark.parametrize("ahead", [60.0, 86400.0, 1e9, 1e12, float("inf")], ids=str)
def test_a_fact_dated_in_the_future_keeps_no_note_out(ahead: float, tmp_path: Path) -> None:
    store = open_store(tmp_path / "m")
    fact = store.ledger().add(KEY.owner, "我住在上海", kind="home", core=True)
    with store.database.write() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql(
            f"UPDATE lcm_facts SET noted_at = {time.time() + min(ahead, 1e300)} WHERE id = {fact.row}"
        )
    assert _noted(store, Extractor(), [("我住在杭州", None)]) == ["我住在杭州"]
    store.close()


@pytest.mark.parametrize("when", [1e12, 1e18, 1e300, -1.0, -1e18], ids=str)
def test_a_turn_of_a_time_that_cannot_be_is_noted_as_of_now(when: float, tmp_path: Path) -> None:
    store = open_store(tmp_path / "m")
    before = time.time()
    assert _noted(store, Extractor(), [("我住在杭州", when)]) == ["我住在杭州"]
    (fact,) = store.ledger().current(KEY.owner)
    assert before <= fact.noted_at <= time.time()
    assert _noted(store, Extractor(), [("我住在杭州", when), ("我住在西安", None)]) == ["我住在西安"]
    store.close()


def test_a_note_that_something_newer_outdates_is_told_as_dropped(tmp_path: Path) -> None:
    store = open_store(tmp_path / "m")
    store.ledger().add(KEY.owner, "我住在上海", kind="home", core=True)
    background = Background()
    writer = NoteWriter(lambda: store, background, RunnableLambda(Extractor()), every=1)
    store.append(KEY, [{"role": "user", "content": "我住在杭州"}], created_at=time.time() - 3600)
    writer.saved(KEY)
    background.wait()
    writer.finish()
    report = writer.report(KEY)
    assert report is not None
    assert [note.why for note in report.dropped] == ["something newer is known"]
    background.close()
    store.close()
