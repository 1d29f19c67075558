"""Export and import: everything comes back, twice is once, and bad lines are named."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lc_memory.errors import MemoryInputError
from lc_memory.sessions.portable import all_facts, export_lines, export_notes, import_file
from lc_memory.store import SessionKey, Store, open_store
from tests.helpers import console

U1 = SessionKey("s1", "u1")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    pair = open_store(tmp_path / "one"), open_store(tmp_path / "two")
    yield pair
    for store in pair:
        store.close()


def fill(store: Store) -> None:
    for i in range(5):
        messages = [{"role": "user", "content": f"第{i}问 🀄 \ud83d"}, {"role": "assistant", "content": f"答{i}", "reasoning_content": "想"}]
        store.append(U1, messages, created_at=1_700_000_000.25 + i)
    store.append(SessionKey("无名"), [{"role": "user", "content": "line\u2028separator\nand more"}])
    store.commit_summary(U1, "聊过两件事", 2, based_on=store.load(U1))
    backlog = store.backlog()
    backlog.advance("notes", backlog.pending("notes", key=U1, limit=3))
    ledger = store.ledger()
    ledger.add(U1.owner, "预算40万", kind="预算", core=True, noted_at=1_700_000_000.5, source={"session": "s1", "quote": "预算40万"})
    ledger.add(U1.owner, "预算50万", kind="预算", core=True, supersede=True, expires_at=2_000_000_000.0)
    for _ in range(3):
        ledger.add(U1.owner, "我对花生过敏", kind="健康", subject="花生", private=True)
    ledger.add("user:u2", "I like tea")


def dump(store: Store) -> tuple[Any, ...]:
    sessions = {
        info.key: (
            replace(store.load(info.key), version=0),
            list(store.turns(info.key)),
            [t.turn.seq for t in store.backlog().pending("notes", key=info.key)],
        )
        for info in store.sessions()
    }
    return sessions, [replace(fact, row=0, indexed=False, revision=0) for fact in all_facts(store)]


def write(path: Path, store: Store, user: str | None = None) -> Path:
    path.write_bytes(b"".join((line + "\n").encode() for line in export_lines(store, user)))
    return path


def test_everything_comes_back_as_it_was(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = stores
    fill(one)
    done = import_file(two, write(tmp_path / "all.jsonl", one))
    assert dump(two) == dump(one)
    assert (done.sessions, done.turns, done.facts, done.known, done.bad) == (2, 6, 4, 0, [])


def test_a_second_import_changes_nothing(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = stores
    fill(one)
    path = write(tmp_path / "all.jsonl", one)
    import_file(two, path)
    before = dump(two)
    assert import_file(two, path).known == 10
    assert dump(two) == before


def test_of_one_user_nothing_else_leaves(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = stores
    fill(one)
    text = write(tmp_path / "u1.jsonl", one, "u1").read_text()
    assert "tea" not in text
    assert "separator" not in text
    import_file(two, tmp_path / "u1.jsonl")
    assert [info.key for info in two.sessions()] == [U1]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{not json", "it is not JSON"),
        ("[1, 2]", "its type is none of"),
        ('{"type": "spell"}', "its type is none of"),
        ('{"type": "turn", "session_id": "s", "user_id": null, "turn_id": "t", "created_at": 1, "messages": "secret"}', "turn.messages"),
        ('{"type": "fact", "owner": "user:u", "id": "f1"}', "fact.text is missing"),
        ('{"type": "header", "format": "lc-memory", "version": 99}', "newer version"),
    ],
)  # fmt: skip
def test_a_bad_line_is_named_and_skipped_only_on_request(
    line: str, what: str, stores: tuple[Store, Store], tmp_path: Path
) -> None:
    one, two = stores
    fill(one)
    path = write(tmp_path / "all.jsonl", one)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:3], line.encode(), *lines[3:]]))
    with pytest.raises(MemoryInputError, match="line 4: ") as refused:
        import_file(two, path)
    assert what in str(refused.value)
    assert "secret" not in str(refused.value)
    assert dump(two) == ({}, []), "nothing is written of a file with a bad line"
    done = import_file(two, path, skip_bad=True)
    assert len(done.bad) == 1
    assert done.bad[0].startswith("line 4: ")
    assert dump(two) == dump(one)


def test_a_summary_is_not_laid_over_a_session_that_went_on(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = stores
    fill(one)
    two.append(U1, [{"role": "user", "content": "另一段对话"}])
    import_file(two, write(tmp_path / "all.jsonl", one))
    assert two.load(U1).summary is None
    assert len(list(two.turns(U1))) == 6


FAN = [
    {"kind": "经营现状", "content": "粉丝在深圳南山经营 60 平米面馆，日流水约四千", "noted_at": "2026-08-24"},
    {"kind": "咨询结论", "content": "已建议加外卖前先稳住堂食单量", "noted_at": "2026-08-24"},
]


def test_the_list_of_notes_makes_the_round_trip(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, _ = stores
    path = tmp_path / "fan_memory.json"
    path.write_text(json.dumps(FAN, ensure_ascii=False, indent=2))
    assert import_file(one, path, owner=U1.owner).facts == 2
    assert export_notes(one, U1.owner) == FAN
    assert import_file(one, path, owner=U1.owner).known == 2
    assert all(fact.core for fact in one.ledger().current(U1.owner)), "all of it stands in the prompt"


def test_a_later_list_replaces_by_kind_and_keeps_the_old_as_history(
    stores: tuple[Store, Store], tmp_path: Path
) -> None:
    one, _ = stores
    path = tmp_path / "fan_memory.json"
    for entries in (FAN, [{**FAN[0], "content": "日流水六千", "noted_at": "2026-09-30"}]):
        path.write_text(json.dumps(entries))
        import_file(one, path, owner=U1.owner)
    assert [n["content"] for n in export_notes(one, U1.owner)] == [FAN[1]["content"], "日流水六千"]
    old, new = one.ledger().history(U1.owner, "经营现状")
    assert (old.superseded_by, new.superseded_by) == (new.id, None)


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"kind": "联系", "content": "电话13812345678", "noted_at": "2026-08-24"}, "a phone number, which is not kept"),
        ({"kind": "a", "content": "", "noted_at": "2026-08-24"}, "content is missing"),
        ({"kind": "a", "content": "b", "noted_at": "昨天"}, "no date"),
        (7, "it is no object"),
    ],
)
def test_a_bad_entry_is_named_and_skipped_only_on_request(
    entry: Any, what: str, stores: tuple[Store, Store], tmp_path: Path
) -> None:
    one, _ = stores
    path = tmp_path / "fan_memory.json"
    path.write_text(json.dumps([FAN[0], entry]))
    with pytest.raises(MemoryInputError, match="entry 2") as refused:
        import_file(one, path, owner=U1.owner)
    assert what in str(refused.value)
    assert "13812345678" not in str(refused.value)
    assert export_notes(one, U1.owner) == []
    assert len(import_file(one, path, owner=U1.owner, skip_bad=True).bad) == 1
    assert len(export_notes(one, U1.owner)) == 1


def test_whose_notes_they_are_has_to_be_said(stores: tuple[Store, Store], tmp_path: Path) -> None:
    path = tmp_path / "fan_memory.json"
    path.write_text("[]")
    with pytest.raises(MemoryInputError, match="--user"):
        import_file(stores[0], path)


# ---------------------------------------------------------------- the commands


def run(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return console.run(os.environ, *args, typed=stdin, cwd=Path.cwd())


def test_the_commands_export_import_list_and_prune(stores: tuple[Store, Store], tmp_path: Path) -> None:
    one, two = stores
    fill(one)
    here, there = ("--memory", str(tmp_path / "one")), ("--memory", str(tmp_path / "two"))
    said = run("export", str(tmp_path / "out.jsonl"), *here)
    assert (said.returncode, said.stdout.split(" to ")[0]) == (0, "wrote 12 records")
    exported = run("export", "-", *here)
    assert exported.stdout == (tmp_path / "out.jsonl").read_text(encoding="utf-8")
    assert run("import", "-", *there, stdin=exported.stdout).stdout == "2 sessions, 6 turns, 4 facts\n"
    assert dump(two) == dump(one)
    listed = run("facts", "list", *there, "--user", "u1").stdout
    assert "预算: 预算50万" in listed
    assert "花生" not in listed, "private ones are shown when they are asked for"
    assert "40万" not in listed
    whole = run("facts", "list", *there, "--history", "--private").stdout
    assert "[core, until " in whole
    assert "健康 (花生): 我对花生过敏  [private, said 3 times]" in whole
    two.ledger().add("user:u2", "一次性的事", expires_at=1.0)
    assert run("facts", "prune", *there).stdout == "1 facts had expired and are erased\n"
    assert b"\xe4\xb8\x80\xe6\xac\xa1\xe6\x80\xa7\xe7\x9a\x84\xe4\xba\x8b" not in b"".join(
        p.read_bytes() for p in (tmp_path / "two").rglob("*") if p.is_file()
    )


def test_the_commands_say_what_is_wrong_and_end_with_1(tmp_path: Path) -> None:
    here = ("--memory", str(tmp_path))
    bad = run("import", "-", *here, stdin="{oops\n")
    assert (bad.returncode, bad.stdout) == (1, "")
    assert "line 1" in bad.stderr
    assert run("import", str(tmp_path / "nowhere.jsonl"), *here).returncode == 1
    assert run("export", str(tmp_path / "no" / "folder.jsonl"), *here).returncode == 1
    assert run("export", "x.json", "--notes", *here).returncode == 1
    assert "nothing yet" in run("facts", "list", *here).stdout


def test_chat_says_that_something_private_was_not_remembered(tmp_path: Path) -> None:
    here = ("--memory", str(tmp_path))
    said = run("chat", "--provider", "offline", *here, stdin="记住：我的电话是13926548710\n记住：我住在成都\n")
    assert said.returncode == 0
    assert "没有记住，其中有电话号码 · not kept: it holds a phone number" in said.stdout
    assert "已记住 · remembered: 我住在成都" in said.stdout
    assert said.stdout.count("13926548710") + said.stderr.count("13926548710") <= 1, "only the model quotes it"
    listed = run("facts", "list", *here).stdout
    assert "我住在成都" in listed
    assert "13926548710" not in listed
