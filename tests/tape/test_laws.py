"""Laws of tapes: what holds for any decisions in any order."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spangate import tape
from spangate.tape import tape_key
from spangate.tape._values import first_difference, read, written

TEXT = st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MARKS = st.sampled_from(["$base64", "$literal"])
KEPT = st.recursive(
    JSON | st.binary(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(TEXT | st.sampled_from(["$base64", "$literal"]), inner, max_size=3)
    ),
    max_leaves=8,
)
PAYLOADS = st.dictionaries(TEXT, JSON, max_size=3)


def _same(value: Any) -> Any:
    return value


@given(KEPT)
def test_what_is_written_is_read_as_it_was(value: Any) -> None:
    assert read(written(value)) == value


@given(st.lists(st.tuples(st.sampled_from(["llm", "tool"]), PAYLOADS, KEPT), max_size=8), st.randoms())
def test_any_decisions_come_again_in_any_order(decisions: list[tuple[str, dict[str, Any], Any]], chance: Any) -> None:
    """Each by its payload; equal ones in the order in which they were recorded."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        with tape.record(path, secrets=(), harness=folder) as recording:
            for kind, payload, value in decisions:
                assert recording.call(kind, payload, partial(_same, value)) == value
        order = sorted(range(len(decisions)), key=lambda number: (chance.random(), number))
        waiting: dict[str, list[Any]] = {}
        for kind, payload, value in decisions:
            waiting.setdefault(tape_key(kind, payload), []).append(value)
        with tape.replay(path, left_over="raise", harness=folder) as replaying:
            for number in order:
                kind, payload, _ = decisions[number]
                assert replaying.call(kind, payload, lambda: None) == waiting[tape_key(kind, payload)].pop(0)
        assert replaying.digest == recording.digest


@given(PAYLOADS, PAYLOADS)
def test_equal_payloads_have_one_key_and_others_another(one: dict[str, Any], other: dict[str, Any]) -> None:
    is_same = first_difference(written(one), written(other)) is None
    assert (tape_key("llm", one) == tape_key("llm", other)) == is_same
    assert tape_key("llm", one) == tape_key("llm", dict(reversed(one.items())))
