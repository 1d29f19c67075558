"""How what was found by meaning and by words becomes one short list."""

from __future__ import annotations

import json
import math
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from sqlalchemy import create_engine

from lc_memory.index.chroma.collection import joined
from lc_memory.index.scale import LOCAL, Scale, measure
from lc_memory.index.texts import CONTEXT_CHARS, context_of
from lc_memory.models.embedding_names import embeddings
from lc_memory.recall.ranking import Candidate, rank
from lc_memory.store.lexical.index import DatabaseLexicalIndex, create_lexical
from lc_memory.store.lexical.scoring import LexicalItem
from tests.data import EXCERPTS

QUESTIONS = EXCERPTS / "fact_questions.jsonl"


def ids(question: str, *candidates: Candidate, k: int = 5, **options: Any) -> list[str]:
    return [ranked.id for ranked in rank(question, candidates, k=k, **options)]


class TestRank:
    def test_a_rare_name_outweighs_a_better_cosine(self) -> None:
        named = Candidate("named", "Pepper chased a fox", cosine=0.25, share=0.6, words=("pepper",))
        near = Candidate("near", "I walk the dog at six", cosine=0.45)
        assert ids("What did Pepper do?", near, named) == ["named", "near"]

    def test_words_that_are_noise_do_not_outweigh_meaning(self) -> None:
        noise = Candidate("noise", "I was at the dentist yesterday", cosine=0.3, share=0.03)
        near = Candidate("near", "Mum is a nurse", cosine=0.4)
        assert ids("Where did mother work until yesterday?", noise, near) == ["near", "noise"]

    def test_nothing_relevant_gives_nothing(self) -> None:
        assert ids("2 + 2 = ?", Candidate("a", "I like tea", cosine=0.1), Candidate("b", "I ski")) == []
        assert ids("2 + 2 = ?") == []

    def test_the_floor_can_be_moved(self) -> None:
        weak = Candidate("a", "I like tea", cosine=0.1)
        assert ids("coffee?", weak, floor=0.0) == ["a"]
        assert ids("coffee?", Candidate("b", "I like tea", cosine=0.5), floor=0.9) == []

    def test_a_long_text_of_many_subjects_has_a_lower_floor(self) -> None:
        weak = Candidate("a", "I like tea", cosine=0.2)
        subjects = "garden piano mountain budget dentist holiday novel kitchen tennis weather bicycle museum"
        assert ids("piano", weak) == []
        assert ids(subjects, weak) == ["a"]

    def test_a_question_about_the_asker_needs_less_than_one_about_the_world(self) -> None:
        weak = Candidate("a", "I like tea", cosine=0.2)
        for mine, worlds in (
            ("what should I drink in the morning", "what should one drink in the morning"),
            ("我早上喝什么比较好", "帮我写一首关于早上的诗"),
            ("我早上喝什麼比較好", "幫我寫一首關於早上的詩"),
        ):
            assert ids(mine, weak) == ["a"]
            assert ids(worlds, weak) == []

    def test_no_more_than_k_are_given(self) -> None:
        many = [Candidate(str(i), f"fact number {i}", cosine=0.5) for i in range(9)]
        assert len(ids("fact?", *many, k=3)) == 3
        assert ids("fact?", *many, k=0) == []

    def test_the_same_saying_is_given_once_as_its_best(self) -> None:
        said = [
            Candidate("old", "I like playing tennis.", cosine=0.5, noted_at=1.0),
            Candidate("new", "I really like to play tennis!", cosine=0.5, noted_at=2.0),
            Candidate("not", "I don't like playing tennis.", cosine=0.4),
        ]
        assert ids("sport?", *said) == ["new", "not"]

    def test_of_equals_the_newer_comes_first(self) -> None:
        assert ids(
            "tea?",
            Candidate("a", "green tea", cosine=0.4, noted_at=10.0),
            Candidate("b", "black tea", cosine=0.4, noted_at=20.0),
        ) == ["b", "a"]

    def test_without_any_embedding_words_alone_decide(self) -> None:
        found = [Candidate("a", "chess club", share=0.5), Candidate("b", "a club", share=0.02)]
        assert ids("chess?", *found) == ["a"]

    def test_what_is_not_among_the_nearest_is_placed_as_the_farthest_of_them(self) -> None:
        near = Candidate("near", "x", cosine=0.6)
        farthest = Candidate("far", "y", cosine=0.4, share=0.05)
        only_words = Candidate("words", "z", share=0.3)
        assert ids("?", near, farthest, only_words) == ["words", "near", "far"]

    def test_it_says_why(self) -> None:
        both = Candidate("a", "t", cosine=0.62, share=0.4, words=("篮球", "周末", "公园", "天气"))
        (ranked,) = rank("篮球", [both], k=1, scale=LOCAL)
        assert ranked.why == "meaning 0.62; words: 篮球, 周末, 公园"
        assert rank("?", [Candidate("b", "t", cosine=0.5)], k=1)[0].why == "meaning 0.50"
        assert rank("?", [Candidate("c", "t", share=0.5, words=("tea",))], k=1)[0].why == "words: tea"

    @given(
        st.lists(
            st.builds(
                Candidate,
                id=st.uuids().map(str),
                text=st.text(max_size=8),
                cosine=st.none() | st.floats(-1.0000002, 1.0000002),
                share=st.floats(0, 1),
            ),
            max_size=20,
        ),
        st.integers(0, 12),
    )
    def test_scores_lie_between_0_and_1_and_fall(self, found: list[Candidate], k: int) -> None:
        ranked = rank("what about 篮球?", found, k=k)
        scores = [r.score for r in ranked]
        assert len(ranked) <= k
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)


class TestScale:
    def test_an_embedding_that_gives_much_to_everything_is_read_as_the_default_one(self) -> None:
        narrow = Scale(mean=0.75, spread=0.02)
        assert narrow.meaning(0.75) == pytest.approx(LOCAL.mean)
        assert narrow.meaning(0.79) == pytest.approx(LOCAL.mean + 2 * LOCAL.spread)
        assert narrow.meaning(1.0) == 1.0
        unrelated = Candidate("a", "I like tea", cosine=0.75)
        assert ids("?", unrelated, scale=narrow) == []
        assert ids("?", unrelated) == ["a"]

    def test_the_default_embeddings_own_scale_is_the_one_written_down(self) -> None:
        measured = measure(embeddings("local"))
        assert measured.mean == pytest.approx(LOCAL.mean, abs=0.002)
        assert measured.spread == pytest.approx(LOCAL.spread, abs=0.002)

    def test_an_embedding_that_tells_nothing_apart_is_measured_too(self) -> None:
        class Same(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return [[0.6, 0.8] for _ in texts]

            def embed_query(self, text: str) -> list[float]:
                return [0.6, 0.8]

        scale = measure(Same())
        assert math.isfinite(scale.meaning(1.0))
        assert ids("?", Candidate("a", "I like tea", cosine=1.0), scale=scale) == []


class TestContext:
    def test_the_context_is_the_beginning_of_the_two_messages_before(self) -> None:
        long = "word " * 1_000
        assert context_of(["first", "second", long]) == f"second\n{long[:CONTEXT_CHARS]}"
        assert context_of([]) == ""

    def test_the_vector_of_a_turn_holds_the_turn_before_it(self) -> None:
        assert joined([1.0, 0.0], None) == [1.0, 0.0]
        assert joined([1.0, 0.0], [0.0, 1.0]) == pytest.approx([math.sqrt(0.5), math.sqrt(0.5)])
        assert joined([1.0, 0.0], [-1.0, 0.0]) == [1.0, 0.0], "what cancels out says nothing: the turn's own words do"


@cache
def excerpts() -> list[dict[str, Any]]:
    return [json.loads(line) for line in QUESTIONS.read_text("utf-8").splitlines()]


@cache
def recalled(language: str, by_words: bool) -> dict[str, list[str]]:
    """What is recalled for each question of the excerpts, among the facts of one language."""
    model = embeddings("local")
    facts = [e for e in excerpts() if "fact" in e and e["lang"] == language]
    vectors = model.embed_documents([fact["fact"] for fact in facts])
    index = DatabaseLexicalIndex()
    engine = create_engine("sqlite://")
    answers = {}
    with engine.connect() as connection:
        create_lexical(connection)
        index.add(connection, "u", [LexicalItem(f["id"], "fact", f["fact"]) for f in facts])
        for question in [f["question"] for f in facts] + [
            e["unrelated"] for e in excerpts() if "unrelated" in e
        ]:
            asked = model.embed_query(question)
            hits = index.search(connection, "u", question, 32) if by_words else []
            share = {hit.id: hit.score for hit in hits}
            found = [
                Candidate(
                    fact["id"],
                    fact["fact"],
                    cosine=math.fsum(x * y for x, y in zip(asked, vector, strict=True)),
                    share=share.get(fact["id"], 0.0),
                )
                for fact, vector in zip(facts, vectors, strict=True)
            ]
            answers[question] = ids(question, *found, k=3)
    engine.dispose()
    return answers


@pytest.mark.parametrize(("language", "least"), [("zh", 0.6), ("en", 0.75)])
def test_questions_that_share_hardly_a_word_with_their_answer_still_find_it(
    language: str, least: float
) -> None:
    pairs = [(e["question"], e["id"]) for e in excerpts() if "fact" in e and e["lang"] == language]

    def hits(by_words: bool) -> int:
        return sum(answer in recalled(language, by_words)[question] for question, answer in pairs)

    assert hits(by_words=True) >= hits(by_words=False) - 1
    assert hits(by_words=True) >= least * len(pairs)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_third_and_more_of_what_unrelated_messages_would_recall_is_kept_out(language: str) -> None:
    given = [len(recalled(language, True)[e["unrelated"]]) for e in excerpts() if "unrelated" in e]
    assert sum(given) <= 2 * len(given)  # three each without the floor
    assert given.count(0) >= len(given) / 5
