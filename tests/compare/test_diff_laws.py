"""What holds of every diff, whatever the runs did."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spangate._records import Span
from spangate._run import Run
from spangate.compare import Change
from tests.compare.runs import compared
from tests.spans import run_of, span

calls = st.tuples(st.sampled_from(["search", "read", "write"]), st.integers(0, 2))
turns = st.lists(st.lists(calls, max_size=4), max_size=6)
MESSAGES = '[{"role": "user", "parts": [{"type": "text", "content": "go"}]}]'
MIRROR = {
    "added": "dropped",
    "dropped": "added",
    "edge_added": "edge_dropped",
    "edge_dropped": "edge_added",
}


def run(made: list[list[tuple[str, int]]], *, turned: bool = False) -> Run:
    """Make a run of an agent that makes these calls in turns; ``turned`` has those of a turn run from the last on.

    A tool is asked for by an id that no other call has, so causes alone say which turn it belongs to.
    """
    root = span("agent", "invoke_agent cook", start=0, end=1000)
    spans = [root]
    at = 1.0
    for number, turn in enumerate([*made, []]):
        asked = [
            {"type": "tool_call", "id": f"{number}/{place}", "name": name, "arguments": {"n": n}}
            for place, (name, n) in enumerate(turn)
        ]
        spans.append(_model(root, at, asked))
        for place in sorted(range(len(turn)), reverse=turned):
            at += 1
            spans.append(_tool(root, at, *turn[place], call_id=f"{number}/{place}"))
        at += 1
    return run_of(spans)


def _model(parent: Span, at: float, asked: Any) -> Span:
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "small",
        "gen_ai.tool.definitions": "[]",
        "gen_ai.input.messages": MESSAGES,
        "gen_ai.output.messages": str([{"role": "assistant", "parts": asked}]).replace("'", '"'),
    }
    return span("generation", "chat small", parent=parent, start=at, end=at + 0.5, attributes=told)


def _tool(parent: Span, at: float, name: str, number: int, call_id: str) -> Span:
    told = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": call_id,
        "gen_ai.tool.call.arguments": f'{{"n": {number}}}',
    }
    return span("tool", f"execute_tool {name}", parent=parent, start=at, end=at + 0.5, attributes=told)


def summed(changes: tuple[Change, ...], *, mirrored: bool = False) -> Counter[tuple[Any, ...]]:
    """Count changes by all that says what they are; ``mirrored`` from the other side."""
    found: Counter[tuple[Any, ...]] = Counter()
    for change in changes:
        digests = (change.digest_a, change.digest_b)
        kind = MIRROR.get(change.kind, change.kind) if mirrored else change.kind
        found[kind, change.name, change.agent, change.keys, digests[::-1] if mirrored else digests] += change.count
    return found


@given(turns)
def test_a_run_does_not_differ_from_itself(made: list[list[tuple[str, int]]]) -> None:
    one = run(made)
    for found in (compared(one, one), compared(one, run(made))):
        assert (found.bounded, found.changes, found.recounted, found.refusal) == (True, (), {}, None)
        assert all(a is not None and b is not None for a, b in found.alignment)


@given(turns, turns)
def test_seen_from_the_other_side_what_was_added_was_dropped(
    before: list[list[tuple[str, int]]], after: list[list[tuple[str, int]]]
) -> None:
    a, b = run(before), run(after)
    there, back = compared(a, b), compared(b, a)
    assert summed(there.changes) == summed(back.changes, mirrored=True)
    assert Counter((one, other) for other, one in there.alignment) == Counter(back.alignment)


@given(turns, turns)
def test_the_order_of_tools_in_a_turn_changes_nothing(
    before: list[list[tuple[str, int]]], after: list[list[tuple[str, int]]]
) -> None:
    assert compared(run(before), run(before, turned=True)).changes == ()
    plain, turned = compared(run(before), run(after)), compared(run(before), run(after, turned=True))
    assert summed(plain.changes) == summed(turned.changes)


@given(turns, turns)
def test_every_call_is_accounted_for_once(
    before: list[list[tuple[str, int]]], after: list[list[tuple[str, int]]]
) -> None:
    found = compared(run(before), run(after))
    for side, members in ((0, found.a), (1, found.b)):
        aligned = Counter(pair[side] for pair in found.alignment if pair[side] is not None)
        assert aligned == Counter(members.of_role("tool"))
    kinds = Counter(change.kind for change in found.changes)
    alone = [(a, b) for a, b in found.alignment if a is None or b is None]
    assert kinds["added"] + kinds["dropped"] == len(alone)
    for a, b in alone:
        assert any((change.a, change.b) == (a, b) for change in found.changes)


@given(turns, calls, st.data())
def test_one_more_call_is_one_added_call(
    made: list[list[tuple[str, int]]], call: tuple[str, int], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(made)))
    found = compared(run(made), run([*made[:place], [call], *made[place:]]))
    of_calls = [change for change in found.changes if not change.kind.startswith("edge")]
    assert [(change.kind, change.name) for change in of_calls] == [("added", call[0])]
