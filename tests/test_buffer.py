"""The buffer: whatever starts, ends and is taken in whatever order, nothing is lost, told twice or left behind."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from spangate._buffer import Buffer
from spangate._buffer.tree import Decided, Tree


@dataclass(eq=False)
class Ended:
    """A span that has ended; ``start_time`` tells spans with one id apart."""

    trace_id: int
    span_id: int
    start_time: int


@dataclass(eq=False)
class Live(Ended):
    """A span that can still end."""

    tree: Tree | None = None
    ends: list[Ended] = field(default_factory=list)

    def end(self) -> Ended:
        ended = Ended(self.trace_id, self.span_id, self.start_time)
        self.ends.append(ended)
        return ended


def decision(tree: Tree, run_id: str = "run", **fields: Any) -> Decided:
    return Decided(run_id, tree.trace_id, None, start_ns=0, end_ns=0, order=tree.order, **{"has_agent": True, **fields})


TRACES = st.integers(1, 2)
IDS = st.integers(1, 6)
PICKS = st.integers(0, 9)
MASKS = st.integers(0, (1 << 16) - 1)


class BufferMachine(RuleBasedStateMachine):
    """Starts and ends spans of a few traces, with ids that repeat, and takes trees out in every way there is."""

    spans = Bundle("spans")
    open_spans = Bundle("open_spans")
    decisions = Bundle("decisions")

    def __init__(self) -> None:
        super().__init__()
        self.buffer = Buffer(lambda: float(self.clock))
        self.clock = 0
        self.started: list[Live] = []
        self.out: Counter[int] = Counter()
        self.grown: dict[Tree, int] = {}
        self.decided: list[Decided] = []

    def now(self) -> int:
        self.clock += 1
        return self.clock

    @rule(targets=(spans, open_spans), trace_id=TRACES, span_id=IDS, piecewise=st.booleans())
    def start_root(self, trace_id: int, span_id: int, piecewise: bool) -> Live:  # noqa: FBT001  drawn
        live = Live(trace_id, span_id, self.now())
        own = Tree(trace_id, span_id, f"tree {self.clock}", piecewise=piecewise)
        live.tree = self.buffer.open(own, live)
        assert live.tree in self.buffer.held()
        self.started.append(live)
        return live

    @rule(targets=(spans, open_spans), parent=spans, span_id=IDS)
    def start_child(self, parent: Live, span_id: int) -> Any:
        live = Live(parent.trace_id, span_id, self.now())
        live.tree = self.buffer.join(parent.trace_id, span_id, parent.span_id, live)
        of_trace = [tree for tree in self.buffer.held() if tree.trace_id == parent.trace_id]
        held = [tree for tree in of_trace if parent.span_id in tree.spans]
        assert live.tree in held if held else live.tree is None
        if live.tree is None:
            return multiple()
        self.started.append(live)
        return live

    @rule(targets=(spans, open_spans), trace_id=TRACES, span_id=IDS)
    def start_orphan(self, trace_id: int, span_id: int) -> Any:
        live = Live(trace_id, span_id, self.now())
        live.tree = self.buffer.adopt(Tree(trace_id, span_id, "orphan", standing="foreign"), live)
        if live.tree is None:
            return multiple()
        self.started.append(live)
        return live

    @rule(span=consumes(open_spans))
    def end(self, span: Live) -> None:
        self.end_now(span)

    def end_now(self, span: Live) -> None:
        if span.ends:
            return  # while somebody looked
        ended = span.end()
        held = self.buffer.end(span.trace_id, span.span_id, ended)
        assert held or self.buffer.late_end(span.trace_id, span.span_id, ended)

    @rule(span=spans)
    def arrive_again(self, span: Live) -> None:
        """The gate is on the provider twice, so that every start comes twice."""
        for tree in self.buffer.held():
            if tree.spans.get(span.span_id) is span and span.trace_id == tree.trace_id:
                before = tree.copies
                own = Tree(span.trace_id, span.span_id, "again")
                if self.buffer._traces[tree.trace_id].tree_of(span.span_id) is tree:
                    assert self.buffer.open(own, span) is tree
                    assert tree.copies == before + 1

    @rule(target=decisions, tree=PICKS)
    def close(self, tree: int) -> Any:
        picked = self.pick(tree)
        if picked is None:
            return multiple()
        glimpse = self.buffer.glimpse(picked)
        self.decided.append(decided := decision(picked))
        assert not self.buffer.close(picked, decided, glimpse.activity - 1)
        assert self.buffer.close(picked, decided, glimpse.activity)
        self.hand_out(glimpse.spans)
        return decided

    @rule(target=decisions, tree=PICKS)
    def seize(self, tree: int) -> Any:
        picked = self.pick(tree)
        if picked is None:
            return multiple()
        self.decided.append(decided := decision(picked))
        glimpse = self.buffer.seize(picked, decided)
        assert glimpse is not None
        self.hand_out(glimpse.spans)
        return decided

    @rule(target=decisions, tree=PICKS, which=MASKS, meanwhile=MASKS)
    def take(self, tree: int, which: int, meanwhile: int) -> Any:
        picked = self.pick(tree)
        if picked is None:
            return multiple()
        spans = self.buffer.glimpse(picked).spans
        seen = [span for number, span in enumerate(spans) if which >> number & 1]
        for number, span in enumerate(spans):
            if isinstance(span, Live) and meanwhile >> number & 1:
                self.end_now(span)
        self.decided.append(decided := decision(picked))
        taken = self.buffer.take(picked, [(span.span_id, span) for span in seen], decided)
        assert taken is not None
        self.hand_out(seen)
        return decided

    def pick(self, number: int) -> Tree | None:
        held = self.buffer.held()
        return held[number % len(held)] if held else None

    @rule(decided=consumes(decisions))
    def decide(self, decided: Decided) -> None:
        self.hand_out(self.buffer.rule(decided, "pass"))

    @rule()
    def take_late(self) -> None:
        for _, late in self.buffer.take_late():
            self.hand_out(late)

    def hand_out(self, spans: Any) -> None:
        """Note which ended spans have left: those that are live will follow."""
        self.out.update(id(span) for span in spans if not isinstance(span, Live))

    @invariant()
    def every_tree_is_as_it_says(self) -> None:
        for tree in self.buffer.held():
            spans = self.buffer.glimpse(tree).spans
            assert tree.open == sum(isinstance(span, Live) for span in spans)
            assert (tree.quiet_at is None) or tree.open == 0
            assert {twin_id for twin_id, _ in tree.twins} <= tree.spans.keys()
            assert tree.activity >= self.grown.get(tree, -1)
            self.grown[tree] = tree.activity
        assert self.buffer.count_spans() == sum(len(self.buffer.glimpse(tree).spans) for tree in self.buffer.held())

    @invariant()
    def no_tree_and_no_trace_is_left_behind(self) -> None:
        held = self.buffer.held()
        assert set(self.buffer._traces) == {tree.trace_id for tree in held}
        found = [tree for trace in self.buffer._traces.values() for tree in trace.held]
        assert set(found) == set(held)
        assert set(self.buffer.ended()) <= set(held)

    @invariant()
    def no_span_leaves_twice(self) -> None:
        assert not self.out or max(self.out.values()) == 1

    def teardown(self) -> None:
        """End what is open, take out what is held: every span has left then, once, and nothing is left."""
        for span in self.started:
            self.end_now(span)
        for tree in self.buffer.held():
            glimpse = self.buffer.seize(tree, decided := decision(tree))
            assert glimpse is not None
            self.hand_out([*glimpse.spans, *self.buffer.rule(decided, "pass")])
        self.take_late()
        waiting = {id(span) for decided in self.decided for span in decided.waiting}
        ended = {id(ended) for span in self.started for ended in span.ends}
        assert ended - waiting == set(self.out)
        assert self.buffer._traces == {}
        assert self.buffer._memory.open_ids() == frozenset()


TestBuffer = BufferMachine.TestCase
TestBuffer.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def held_in(buffer: Buffer, tree: Tree, span: Live) -> Tree:
    held = buffer.open(tree, span)
    assert held is not None
    return held


def end_root(buffer: Buffer) -> None:
    root = Live(1, 1, 1)
    buffer.open(Tree(1, 1, "tree"), root)
    buffer.end(1, 1, root.end())


@pytest.mark.parametrize("act", [end_root, Buffer.wake])
def test_a_waiting_worker_is_woken(act: Callable[[Buffer], None]) -> None:
    buffer = Buffer(lambda: 0.0)
    worker = threading.Thread(target=buffer.wait, args=(60.0, 60.0))
    worker.start()
    while not buffer._work._waiters:  # type: ignore[attr-defined]
        pass
    act(buffer)
    worker.join(10.0)
    assert not worker.is_alive()


def test_a_call_to_wake_that_comes_before_the_wait_is_not_lost() -> None:
    buffer = Buffer(lambda: 0.0)
    buffer.wake()
    buffer.wait(60.0, 60.0)


@pytest.mark.parametrize(("is_held", "is_asked"), [(True, True), (False, False)])
def test_a_tree_waits_for_a_host_only_while_both_are_here(is_held: bool, is_asked: bool) -> None:  # noqa: FBT001  columns
    buffer = Buffer(lambda: 0.0)
    host = held_in(buffer, Tree(1, 1, "host"), Live(1, 1, 1))
    stray = held_in(buffer, Tree(2, 2, "stray"), Live(2, 2, 2))
    if not is_held:
        buffer.seize(host, decision(host))
    assert buffer.hold_for(stray, host, 1) is is_asked


def test_a_tree_that_waited_is_looked_at_again_when_its_host_is_decided() -> None:
    buffer = Buffer(lambda: 0.0)
    host = held_in(buffer, Tree(1, 1, "host"), Live(1, 1, 1))
    root = Live(2, 2, 2)
    stray = held_in(buffer, Tree(2, 2, "stray"), root)
    buffer.end(2, 2, root.end())
    buffer.hold_for(stray, host, 1)
    assert buffer.ended() == []
    buffer.seize(host, decision(host))
    assert buffer.ended() == [stray]
    assert stray.waits_for is None


def test_a_forked_child_starts_empty_and_knows_what_was_open() -> None:
    buffer = Buffer(lambda: 0.0)
    tree = held_in(buffer, Tree(1, 1, "tree"), Live(1, 1, 1))
    for span_id in (2, 3):
        buffer.join(1, span_id, 1, Live(1, span_id, span_id))
    buffer.end(1, 2, Ended(1, 2, 2))
    late = held_in(buffer, Tree(7, 7, "late"), Live(7, 7, 7))
    buffer.seize(late, decision(late))
    buffer.after_fork()
    assert buffer.held() == []
    assert [buffer.is_inherited(*key) for key in ((1, 1), (1, 2), (1, 3), (7, 7), (9, 9))] == [
        *(True, False, True, True, False)
    ]
    assert tree not in buffer.held()


def test_its_line_says_what_it_holds() -> None:
    buffer = Buffer(lambda: 0.0)
    end_root(buffer)
    assert repr(buffer) == "<Buffer 1 trees, 1 ended, 0 stirred>"


def test_a_span_that_comes_on_two_ways_at_once_is_held_once() -> None:
    buffer = Buffer(lambda: 0.0)
    span = Ended(1, 2, 3)
    assert buffer.admit(Tree(1, 2, "one way", standing="unseen"), None, span)
    assert buffer.admit(Tree(1, 2, "the other", standing="unseen"), None, span)
    (tree,) = buffer.held()
    assert list(buffer.glimpse(tree).spans) == [span]
