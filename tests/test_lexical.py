"""Recall by words: how text is split, what a score is, and that both databases find what there is to find."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, create_engine

from lc_memory.language import words
from lc_memory.models import commonness
from lc_memory.store.lexical import index as lexical_sql
from lc_memory.store.lexical.index import DatabaseLexicalIndex, create_lexical
from lc_memory.store.lexical.scoring import Entry, LexicalHit, LexicalItem, Question

INDEX = DatabaseLexicalIndex()


@pytest.fixture(params=["sqlite", "postgres"])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A transaction in an empty index of each database."""
    if request.param == "sqlite":
        engine = create_engine("sqlite://")
    else:
        url = str(request.getfixturevalue("postgres_url"))
        engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://", 1))
    with engine.connect() as opened:
        create_lexical(opened)
        yield opened
    engine.dispose()


def facts(*texts: str) -> list[LexicalItem]:
    return [LexicalItem(f"f{i}", "fact", text) for i, text in enumerate(texts)]


def found(connection: Connection, owner: str, question: str, **options: object) -> list[str]:
    return [hit.id for hit in INDEX.search(connection, owner, question, 10, **options)]  # type: ignore[arg-type]


def expected(items: list[LexicalItem], question: str, limit: int) -> list[LexicalHit]:
    """What an index has to answer, by looking at every item."""
    entries = [Entry.of(item) for item in items]
    surface = Question.terms(question)
    frequency = {t: sum(t in (*e.own, *e.context) for e in entries) for t in surface}
    asked = Question.weigh(surface, frequency, len(entries), sum(e.length for e in entries))
    return asked.best(entries, limit)


class TestWords:
    def test_chinese_becomes_pairs_that_span_no_function_character(self) -> None:
        assert words.terms("我的篮球队很强") == ["篮球", "球队", "强"]

    def test_english_is_stemmed_and_loses_its_function_words(self) -> None:
        assert words.terms("I'm playing in O'Brien's basketball teams") == [
            "play",
            "obrien",
            "basketbal",
            "team",
        ]

    def test_mixed_and_full_width_text_is_folded(self) -> None:
        assert words.terms("我用ＰＹＴＨＯＮ写代码３年") == ["用", "python", "写代", "代码", "3", "年"]

    def test_a_question_of_function_words_has_no_terms(self) -> None:
        assert words.terms("你是谁？") == words.terms("Who are you?") == []

    @given(st.text())
    @settings(max_examples=300)
    def test_terms_hold_nothing_that_a_query_could_take_for_syntax(self, text: str) -> None:
        for term in words.terms(text):
            assert term.split() == [term]
            assert all(c.isalnum() for c in term if c.isascii())
            assert len(term) <= words.MAX_TERM

    def test_a_text_of_any_length_is_read_up_to_a_limit(self) -> None:
        assert len(words.terms("龙" * 10_000_000)) <= words.MAX_CHARS
        assert max(map(len, words.terms("x" * 1_000_000))) == words.MAX_TERM

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("I really like playing tennis!", "I like to play tennis"),
            ("我很喜欢打篮球。", "我喜欢打篮球"),
            ("My flight is at 9", "my FLIGHT is at 9."),
        ],
    )
    def test_nearly_the_same_words_are_one_saying(self, one: str, other: str) -> None:
        assert words.same_saying(one) == words.same_saying(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("I like tea", "I don't like tea"),
            ("I like tea", "he likes tea"),
            ("我吃香菜", "我不吃香菜"),
            ("我喜欢茶", "他喜欢茶"),
            ("My flight is at 9", "My flight is at 8"),
            ("Anna is older than Bea", "Bea is older than Anna"),
            ("我住在朝阳区", "我住在海淀区"),
        ],
    )
    def test_what_differs_in_meaning_is_not_one_saying(self, one: str, other: str) -> None:
        assert words.same_saying(one) != words.same_saying(other)


class TestScore:
    def test_a_rare_name_says_more_than_a_common_word(self) -> None:
        items = facts("Pepper is a dog", *["a dog barked"] * 5)
        best, *others = expected(items, "Is Pepper a dog?", 10)
        assert best.id == "f0"
        assert best.words == ("pepper", "dog")
        assert best.score > 3 * others[0].score

    def test_of_a_question_with_one_word_left_a_memory_with_that_word_is_not_the_whole(self) -> None:
        items = facts("She lives in York", "I teach maths at a school", *[f"note {n}" for n in range(50)])
        (hit,) = expected(items, "What do I do for a living?", 10)
        assert hit.words == ("living",)
        assert hit.score < 0.7

    def test_a_single_chinese_character_counts_half(self) -> None:
        items = facts("我用过", "护照在抽屉", *[f"第{n}条" for n in range(50)])
        (used,) = expected(items, "用", 10)
        (named,) = expected(items, "护照", 10)
        assert used.score < 0.6 * named.score

    def test_words_that_nobody_has_lower_the_score(self) -> None:
        items = facts("Pepper is a dog", "a cat")
        (short,) = expected(items, "Pepper", 10)
        (long,) = expected(items, "Pepper bicycle mountain weather", 10)
        assert short.score > 2 * long.score

    def test_the_score_is_a_share(self) -> None:
        items = facts(*["alpha beta"] * 3, "gamma")
        assert all(0 < hit.score < 1 for hit in expected(items, "alpha beta gamma", 10))

    def test_the_context_counts_less_than_the_text(self) -> None:
        items = [
            LexicalItem("own", "turn", "the marathon", context="something else"),
            LexicalItem("context", "turn", "something else", context="the marathon"),
            LexicalItem("none", "turn", "another thing", context="nothing else"),
        ]
        assert [hit.id for hit in expected(items, "marathon", 10)] == ["own", "context"]


class TestIndex:
    def test_it_finds_by_words_in_both_languages(self, connection: Connection) -> None:
        INDEX.add(connection, "u", facts("我喜欢打篮球", "I keep bees on the roof", "我住在成都"))
        assert found(connection, "u", "篮球队") == ["f0"]
        assert found(connection, "u", "what about my BEE?") == ["f1"]
        assert found(connection, "u", "天气") == []

    def test_scores_are_those_of_looking_at_every_item(self, connection: Connection) -> None:
        rng = random.Random(7)
        vocabulary = [f"word{n}" for n in range(40)] + ["篮球", "足球", "成都", "北京"]

        def some(n: int) -> str:
            return " ".join(rng.choices(vocabulary, weights=range(len(vocabulary), 0, -1), k=n))

        items = [LexicalItem(str(i), "turn", some(6), some(rng.randrange(9))) for i in range(150)]
        INDEX.add(connection, "u", items)
        INDEX.add(connection, "other", facts(*[some(6) for _ in range(50)]))
        for _ in range(20):
            question = some(4)
            mine = INDEX.search(connection, "u", question, 200)
            assert mine == expected(items, question, 200)
            top = INDEX.search(connection, "u", question, 5)
            assert [hit.score for hit in top] == [hit.score for hit in mine[:5]]

    def test_another_owners_item_is_never_returned(self, connection: Connection) -> None:
        for owner in ("a", "b", "小明@example.com", "x" * 5_000, "\ud800\0"):
            INDEX.add(connection, owner, [LexicalItem(f"of {owner[:9]!r}", "fact", "我喜欢打篮球")])
        for owner in ("a", "b", "小明@example.com", "x" * 5_000, "\ud800\0"):
            assert found(connection, owner, "篮球") == [f"of {owner[:9]!r}"]
        assert found(connection, "c", "篮球") == []

    def test_what_others_say_does_not_change_a_score(self, connection: Connection) -> None:
        INDEX.add(connection, "a", facts("I play chess", "I play tennis"))
        before = INDEX.search(connection, "a", "chess", 5)
        INDEX.add(connection, "b", facts(*["chess chess"] * 300))
        assert INDEX.search(connection, "a", "chess", 5) == before

    def test_adding_an_id_again_replaces_it(self, connection: Connection) -> None:
        INDEX.add(connection, "u", facts("I play chess"))
        INDEX.add(connection, "u", facts("I play tennis"))
        assert found(connection, "u", "chess") == []
        assert INDEX.search(connection, "u", "tennis", 5) == expected(facts("I play tennis"), "tennis", 5)

    def test_an_id_twice_in_one_call_is_stored_once(self, connection: Connection) -> None:
        INDEX.add(connection, "u", [*facts("I play chess"), *facts("I play tennis")])
        assert found(connection, "u", "chess tennis") == ["f0"]

    def test_removed_items_are_gone_and_count_no_more(self, connection: Connection) -> None:
        items = facts("I play chess", "chess club", "tennis club")
        INDEX.add(connection, "u", items)
        INDEX.remove(connection, "u", ["f0", "never there"])
        INDEX.remove(connection, "nobody", ["f0"])
        assert INDEX.search(connection, "u", "chess", 5) == expected(items[1:], "chess", 5)

    def test_forget_leaves_the_others_alone(self, connection: Connection) -> None:
        INDEX.add(connection, "a", [LexicalItem(str(i), "fact", "chess") for i in range(1_100)])
        INDEX.add(connection, "b", facts("chess"))
        INDEX.forget(connection, "a")
        INDEX.forget(connection, "nobody")
        assert found(connection, "a", "chess") == []
        assert found(connection, "b", "chess") == ["f0"]
        INDEX.add(connection, "a", facts("I play chess"))
        assert INDEX.search(connection, "a", "chess", 5) == expected(facts("I play chess"), "chess", 5)

    def test_a_search_can_be_limited_to_sources(self, connection: Connection) -> None:
        many = [LexicalItem(f"t{i}", "turn", "chess") for i in range(lexical_sql.BUDGET + 50)]
        INDEX.add(connection, "u", [LexicalItem("f", "fact", "chess in the park"), *many])
        assert found(connection, "u", "chess", sources=["fact"]) == ["f"]
        assert found(connection, "u", "chess", sources=[]) == []
        assert len(found(connection, "u", "chess", sources=["turn", "fact"])) == 10

    def test_a_rare_word_is_found_among_thousands_of_a_common_one(self, connection: Connection) -> None:
        many = [LexicalItem(f"t{i}", "turn", "chess game") for i in range(lexical_sql.BUDGET + 500)]
        INDEX.add(connection, "u", [LexicalItem("f", "fact", "chess with Ottilie"), *many])
        assert found(connection, "u", "Did we talk about a chess game with Ottilie?")[0] == "f"

    @pytest.mark.parametrize(
        "question",
        [
            '"', "'; DROP TABLE lcm_lexical_items; --", "NEAR(chess, 2)", "chess* AND (", "own: chess ^chess",
            "chess & ! tennis | <-> ' \\ :*", "\ud83d chess \udc00", "chess\0chess", "-chess +chess", "%s :x {y}",
            "chess " * 50_000, " ".join(f"chess{n}" for n in range(20_000)), "۝ ٠١٢ ﷽ ℵ 𝔠𝔥𝔢𝔰𝔰",
        ],
    )  # fmt: skip
    def test_no_question_can_break_it(self, connection: Connection, question: str) -> None:
        INDEX.add(connection, "u", facts("I play chess"))
        assert found(connection, "u", question) in ([], ["f0"])
        INDEX.add(connection, "u", [LexicalItem(question[:300], "fact", question, question)])
        assert found(connection, "u", "chess")

    @given(st.text(), st.text(), st.text())
    @settings(max_examples=100, deadline=None)
    def test_any_text_is_found_again_by_itself(self, text: str, context: str, id_: str) -> None:
        engine = create_engine("sqlite://")
        with engine.connect() as connection:
            create_lexical(connection)
            item = LexicalItem(id_, "fact", text, context)
            INDEX.add(connection, "u", [item])
            assert INDEX.search(connection, "u", text, 3) == expected([item], text, 3)
            INDEX.remove(connection, "u", [id_])
            assert INDEX.search(connection, "u", text, 3) == []
        engine.dispose()

    def test_it_takes_part_in_the_callers_transaction(self, connection: Connection) -> None:
        connection.commit()
        INDEX.add(connection, "u", facts("I play chess"))
        connection.rollback()
        assert found(connection, "u", "chess") == []

    def test_after_forget_no_file_of_sqlite_holds_a_word(self, tmp_path: Path) -> None:
        engine = create_engine(f"sqlite:///{tmp_path}/i.db")
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
            create_lexical(connection)
            INDEX.add(
                connection, "a", facts("我的暗号是蒲公英", "my password hint is dandelion", *["tea"] * 300)
            )
            connection.commit()
            INDEX.add(connection, "b", facts("I play chess"))
            connection.commit()
            assert b"dandelion" in (tmp_path / "i.db").read_bytes()
            INDEX.forget(connection, "a")
            connection.commit()
        engine.dispose()
        left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"dandelion" not in left
        assert "公英".encode() not in left
        assert b"chess" in left


class TestCommonWords:
    """Among few memories no frequency tells what is common; the language's does."""

    @staticmethod
    def score(question: str, text: str, items: int) -> tuple[float, float]:
        asked = Question.weigh(Question.terms(question), {}, items, 5 * items)
        (hit,) = asked.best([Entry.of(LexicalItem("a", "fact", text))], 1)
        return hit.score, hit.overlap

    def test_a_common_word_says_less_than_a_rare_one_in_a_short_question(self) -> None:
        common, rare = (self.score(f"my {word}?", f"the {word} is here", 40) for word in ("home", "saxophone"))
        assert common[0] < 0.2 * rare[0]
        assert common[1] == rare[1], "for the floor both are words in common"

    def test_where_memories_are_many_they_tell_themselves(self) -> None:
        common, rare = (self.score(f"my {word}?", f"the {word} is here", 5_000) for word in ("home", "saxophone"))
        assert common[0] == pytest.approx(rare[0], rel=0.01)

    def test_in_a_long_question_no_single_word_decides(self) -> None:
        words = "home garden piano mountain budget dentist holiday novel kitchen"
        score, overlap = self.score(words, words, 40)
        assert score == pytest.approx(overlap)

    def test_the_place_of_a_word_is_that_of_its_language(self) -> None:
        places = commonness(["the", "home", "saxophone", "医院", "qzxvjk"])
        assert places["the"] < places["home"] < places["saxophone"]
        assert 4_000 < places["医院"] < 45_000
        assert "qzxvjk" not in places
