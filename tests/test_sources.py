"""Fingerprints from several sources on one span: the best one counts, whatever the order in which they came."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._dialects._base import Request
from spangate._fingerprint import Source, Stamps, fingerprint
from spangate._fingerprint.sources import completed, is_better, lacks_something, placed
from spangate._records import ABSENT

SOURCES: tuple[Source, ...] = get_args(Source)


def stamps(source: Source, **request: Any) -> Stamps:
    return fingerprint(Request(**{"messages": f"by {source}", "model": "m", **request}), source=source)


@given(st.permutations(SOURCES), st.integers(1, 5))
def test_the_best_source_counts_in_whatever_order_they_come(order: list[Source], count: int) -> None:
    attributes: Any = {"mine": 1}
    for source in order[:count]:
        attributes = placed(attributes, stamps(source))
    best = min(order[:count], key=SOURCES.index)
    assert attributes == {"mine": 1, **stamps(best)}


@given(st.permutations(SOURCES))
def test_one_that_does_not_know_the_prompt_stands_in_nobodys_way(order: list[Source]) -> None:
    attributes: Any = {}
    for source in order:
        attributes = placed(attributes, stamps(source, messages=[float("nan")] if source != order[-1] else "u"))
    assert attributes["fingerprint.source"] == order[-1]
    assert attributes["prompt.hash"] == stamps(order[-1], messages="u")["prompt.hash"]


def test_why_a_prompt_has_no_hash_is_said_once_and_only_where_nobody_knows_it() -> None:
    gap = stamps("explicit", messages=[{1}])
    told = placed({}, gap)
    assert told == {"fingerprint.gap": "explicit: it holds what JSON does not have, such as bytes, a set or an object"}
    assert placed(told, stamps("hook", messages=[{1}])) == told
    assert placed(stamps("wire"), gap) == stamps("wire")
    assert placed({}, {}) == {}


@given(st.sampled_from(sorted({*stamps("start", temperature=0.5, tools=[], params={"n": 1})} - {"fingerprint.source"})))
def test_an_attribute_of_the_program_stays(key: str) -> None:
    assert placed({key: "mine"}, stamps("start", temperature=0.5, tools=[], params={"n": 1}))[key] == "mine"


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_is_better_than_those_after_it(source: Source) -> None:
    later = SOURCES[SOURCES.index(source) + 1 :]
    assert tuple(other for other in SOURCES if is_better(source, stamps(other))) == later
    assert is_better(source, {})
    assert is_better(source, {"fingerprint.source": "nobody knows"})


@pytest.mark.parametrize("source", SOURCES)
def test_a_model_that_is_told_later_makes_the_same_tuple(source: Source) -> None:
    before = stamps(source, model=ABSENT, temperature=0)
    assert lacks_something(before)
    after = {**before, **completed(before, Request(model="m"), "pinned")}
    assert after == dict(stamps(source, temperature=0))
    pinned = {**before, **completed(before, Request(), "pinned")}
    assert pinned["fingerprint.model_source"] == "config"
    assert pinned["gen_ai.request.model"] == "pinned"
    assert {**before, **completed(before, Request(), None)} == dict(before)


def test_only_the_words_of_the_program_are_completed_with_a_temperature() -> None:
    """The others would have known it; some instrumentations record that of the answer."""
    for source in SOURCES:
        before = stamps(source)
        after = {**before, **completed(before, Request(temperature=1), None)}
        assert ("gen_ai.request.temperature" in after) is (source == "explicit")
        assert (after["fingerprint.tuple"] != before["fingerprint.tuple"]) is (source == "explicit")
