"""The buffer: whatever starts, ends and is taken in whatever order, nothing is lost, told twice or left behind."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.trace import SpanContext

from spangate._buffer import Buffer
from spangate._buffer.held import ARRIVED_LIMIT
from spangate._buffer.tree import Decided, Tree
from spangate._quick_hooks import QuickHooks


@dataclass(eq=False)
class Ended:
    """A span that has ended; ``start_time`` tells spans with one id apart."""

    trace_id: int
    span_id: int
    start_time: int
    parent_id: int | None = None

    @property
    def _context(self) -> SpanContext:
        return SpanContext(self.trace_id, self.span_id, is_remote=False)

    @property
    def _parent(self) -> SpanContext | None:
        return None if self.parent_id is None else SpanContext(self.trace_id, self.parent_id, is_remote=False)


class Word(str):
    """What a span says that it is, each its own: the tree that notes it is the one that the span was put into."""

    __slots__ = ()


@dataclass(eq=False)
class Live(Ended):
    """A span that can still end."""

    tree: Tree | None = None
    ends: list[Ended] = field(default_factory=list)
    word: Word = field(default_factory=lambda: Word("chat"))

    @property
    def _attributes(self) -> SimpleNamespace:
        return SimpleNamespace(_dict={"gen_ai.operation.name": self.word})

    def end(self) -> Ended:
        ended = Ended(self.trace_id, self.span_id, self.start_time, self.parent_id)
        self.ends.append(ended)
        return ended


def decision(tree: Tree, run_id: str = "run", **fields: Any) -> Decided:
    return Decided(run_id, tree.trace_id, None, start_ns=0, end_ns=0, order=tree.order, **{"has_agent": True, **fields})


class Raced(Tree):
    """A tree at which a hook that goes the quick way is overtaken, before or after it has done what it came for."""

    def __init__(self, *args: Any, meanwhile: Meanwhile, **fields: Any) -> None:
        self.meanwhile = meanwhile
        super().__init__(*args, **fields)

    def __getattribute__(self, name: str) -> Any:
        read = partial(object.__getattribute__, self)
        if name == "arrived":  # what a hook writes to is what was there before
            value = read(name)
            read("meanwhile").happen(name)
            return value
        if name in (*IN_STARTS, *IN_ENDS):
            read("meanwhile").happen(name)
        return read(name)


@dataclass(eq=False)
class Meanwhile:
    """What another thread does in the middle of a hook, once: when the hook reads ``moment`` of a tree."""

    lock: Any
    moment: str = ""
    act: Callable[[], object] | None = None

    def happen(self, moment: str) -> None:
        if self.act is not None and moment == self.moment and not self.lock._is_owned():
            act, self.act = self.act, None
            act()


class Through(QuickHooks):
    """The hooks on their quick way, and behind it the buffer with its lock. ``found`` says that a tree held an end."""

    def __init__(self, buffer: Buffer) -> None:
        self._buffer = buffer
        self._quick = buffer.quick
        self.found = True

    def start(self, live: Live, trees: list[Tree]) -> Tree | None:
        self.on_start(live)
        return live.tree or next((tree for tree in trees if live.word is tree.said.get(live.span_id)), None)

    def end(self, ended: Ended) -> bool:
        self.found = True
        self.on_end(ended)
        return self.found

    def _start(self, span: Any, _context: object) -> None:
        span.tree = self._buffer.join(span.trace_id, span.span_id, span.parent_id, span)

    def _end(self, span: Any) -> None:
        self.found = self._buffer.end(span.trace_id, span.span_id, span)

    def _end_unheld(self, _span: object) -> None:
        self.found = False

    def _fault(self, where: str) -> None:
        raise AssertionError(where)


IN_STARTS = ("spans", "room", "quick")
IN_ENDS = ("spans", "root_id", "arrived", "quick")
ACTS = ("close", "seize", "take", "end_root", "start_root", "absorb", "let_pass")
STEPS = {
    "start_root": 1,
    "start_child": 8,
    "start_child_overtaken": 3,
    "start_orphan": 1,
    "end": 4,
    "end_overtaken": 3,
    "start_again": 1,
    "end_again": 1,
    "close": 1,
    "seize": 1,
    "take": 1,
    "decide": 2,
    "take_late": 1,
}
"""What happens, and how often: more must start than is decided, or there is nothing to decide."""
LENGTH = 60
LOOKS = 0.3
"""How often somebody looks: what has arrived is put in its place then."""


class Machine:
    """Starts and ends spans of a few traces, with ids that repeat, and takes trees out in every way there is."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311  no secret
        self.buffer = Buffer(lambda: float(self.clock))
        self.hooks = Through(self.buffer)
        self.trees: list[Tree] = []
        self.clock = 0
        self.started: list[Live] = []
        self.out: Counter[int] = Counter()
        self.grown: dict[Tree, int] = {}
        self.decided: list[Decided] = []
        self.undecided: list[Decided] = []
        self.meanwhile = Meanwhile(self.buffer._lock)
        self.starting: Live | None = None

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def span_id(self) -> int:
        return self.random.randrange(1, 16)

    def some(self, spans: list[Live]) -> Live:
        return self.random.choice(spans or self.started)

    def held_tree(self) -> Tree | None:
        held = self.buffer.held()
        return self.random.choice(held) if held else None

    def parent(self) -> Live:
        """Pick a span, of those that are held if there are any."""
        held = self.buffer.held()
        return self.some([span for span in self.started if span.tree in held])

    def unended(self) -> Live:
        return self.some([span for span in self.started if not span.ends])

    def start_root(self, trace_id: int | None = None) -> None:
        live = Live(trace_id or self.random.randrange(1, 5), self.span_id(), self.now())
        own = Raced(
            *(live.trace_id, live.span_id, f"tree {self.clock}"),
            piecewise=self.random.random() < 0.2,
            meanwhile=self.meanwhile,
        )
        self.trees.append(own)
        live.tree = self.buffer.open(own, live)
        assert live.tree in self.buffer.held()
        self.started.append(live)

    def start_child(self) -> None:
        above = self.parent()
        live = Live(above.trace_id, self.span_id(), self.now(), above.span_id)
        live.tree = self.hooks.start(live, self.trees)
        of_trace = [tree for tree in self.buffer.held() if tree.trace_id == above.trace_id]
        held = [tree for tree in of_trace if above.span_id in tree.spans]
        assert live.tree in held if held else live.tree is None
        self.note(live)

    def start_child_overtaken(self) -> None:
        """Something happens to the tree while a span is put into it."""
        above = self.parent()
        live = Live(above.trace_id, self.span_id(), self.now(), above.span_id)
        self.starting, self.meanwhile.act = live, partial(self.act, above)
        self.meanwhile.moment = self.random.choice(IN_STARTS)
        live.tree = self.hooks.start(live, self.trees)
        self.starting, self.meanwhile.act = None, None
        self.note(live)

    def start_orphan(self) -> None:
        live = Live(self.random.randrange(1, 5), self.span_id(), self.now())
        own = Tree(live.trace_id, live.span_id, "orphan", standing="foreign")
        live.tree = self.buffer.adopt(own, live)
        self.note(live)

    def note(self, live: Live) -> None:
        if live.tree is not None:
            self.started.append(live)

    def end(self) -> None:
        self.end_now(self.unended())

    def end_overtaken(self) -> None:
        """Something happens to the tree while a span in it ends."""
        span = self.unended()
        self.meanwhile.act = partial(self.act, span)
        self.meanwhile.moment = self.random.choice(IN_ENDS)
        self.end_now(span)
        self.meanwhile.act = None

    def end_now(self, span: Live) -> None:
        if span.ends or span is self.starting:
            return
        ended = span.end()
        held = self.hooks.end(ended)
        assert held or self.buffer.late_end(span.trace_id, span.span_id, ended)

    def act(self, span: Live) -> None:
        """Do something to the tree of the span."""
        tree = span.tree
        if tree is None or not self.buffer.is_held(tree):
            return
        root = tree.spans.get(tree.root_id)
        match self.random.choice(ACTS):
            case "end_root":
                if isinstance(root, Live):
                    self.end_now(root)
            case "start_root":
                self.start_root(span.trace_id)
            case "absorb" | "let_pass" as act:
                getattr(self.buffer, act)(tree)
            case act:
                getattr(self, act)(tree)

    def end_again(self) -> None:
        """The gate is on the provider twice, so that every end comes twice; ids that repeat as well are too much."""
        span = self.unended()
        self.end_now(span)
        if span.tree is not None and span.tree.quick:
            self.buffer.absorb(span.tree)
            assert self.hooks.end(span.ends[0])

    def start_again(self) -> None:
        """The same, and every start."""
        span = self.unended()
        for tree in self.buffer.held():
            if tree.spans.get(span.span_id) is span and span.trace_id == tree.trace_id:
                own = Tree(span.trace_id, span.span_id, "again")
                if self.buffer._traces[tree.trace_id].tree_of(span.span_id) is tree:
                    assert self.buffer.open(own, span) is tree
                    assert tree.is_doubled

    def close(self, tree: Tree | None = None) -> None:
        picked = tree or self.held_tree()
        if picked is None:
            return
        glimpse = self.buffer.glimpse(picked)
        self.remember(decided := decision(picked))
        assert not self.buffer.close(picked, decided, glimpse.activity - 1)
        assert self.buffer.close(picked, decided, glimpse.activity)
        self.hand_out([*glimpse])

    def seize(self, tree: Tree | None = None) -> None:
        picked = tree or self.held_tree()
        if picked is None:
            return
        self.remember(decided := decision(picked))
        glimpse = self.buffer.seize(picked, decided)
        assert glimpse is not None
        self.hand_out([*glimpse])

    def take(self, tree: Tree | None = None) -> None:
        picked = tree or self.held_tree()
        if picked is None:
            return
        spans = [*self.buffer.glimpse(picked)]
        seen = [span for span in spans if self.random.random() < 0.5]
        for span in spans:
            if isinstance(span, Live) and self.random.random() < 0.3:
                self.end_now(span)
        self.remember(decided := decision(picked))
        taken = self.buffer.take(picked, [(span.span_id, span) for span in seen], decided)
        assert taken is not None
        self.hand_out(seen)

    def remember(self, decided: Decided) -> None:
        self.decided.append(decided)
        self.undecided.append(decided)

    def decide(self) -> None:
        if self.undecided:
            decided = self.undecided.pop(self.random.randrange(len(self.undecided)))
            self.hand_out(self.buffer.rule(decided, "pass"))

    def take_late(self) -> None:
        for _, late in self.buffer.take_late():
            self.hand_out(late)

    def hand_out(self, spans: Any) -> None:
        """Note which ended spans have left: those that are live will follow."""
        self.out.update(id(span) for span in spans if not isinstance(span, Live))

    def every_tree_is_as_it_says(self) -> None:
        for tree in self.buffer.held():
            spans = [*self.buffer.glimpse(tree)]
            assert tree.open == sum(isinstance(span, Live) for span in spans)
            assert (tree.quiet_at is None) or tree.open == 0
            assert {twin_id for twin_id, _ in tree.twins} <= tree.spans.keys()
            assert tree.activity >= self.grown.get(tree, -1)
            self.grown[tree] = tree.activity
        assert self.buffer.count_spans() == sum(len([*self.buffer.glimpse(tree)]) for tree in self.buffer.held())

    def room_is_counted_as_it_is_given(self) -> None:
        held = self.buffer.held()
        assert self.buffer._count == sum(tree.room for tree in held)
        for tree in held:
            size = len(tree.spans) + len(tree.twins)
            assert tree.room >= size if tree.quick else tree.room == size
            assert tree.quick == (self.buffer.quick.get(tree.trace_id) is tree)
            assert not tree.quick or (tree.root_ended_at is None and not tree.twins and not tree.piecewise)

    def no_tree_and_no_trace_is_left_behind(self) -> None:
        held = self.buffer.held()
        assert set(self.buffer._traces) == {tree.trace_id for tree in held}
        found = [tree for trace in self.buffer._traces.values() for tree in trace.held]
        assert set(found) == set(held)
        assert set(self.buffer.ended()) <= set(held)

    def no_span_leaves_twice(self) -> None:
        assert not self.out or max(self.out.values()) == 1

    def teardown(self) -> None:
        """End what is open, take out what is held: every span has left then, once, and nothing is left."""
        for span in self.started:
            self.end_now(span)
        for tree in self.buffer.held():
            glimpse = self.buffer.seize(tree, decided := decision(tree))
            assert glimpse is not None
            self.hand_out([*glimpse, *self.buffer.rule(decided, "pass")])
        self.take_late()
        waiting = {id(span) for decided in self.decided for span in decided.waiting}
        ended = {id(ended) for span in self.started for ended in span.ends}
        assert ended - waiting == set(self.out)
        assert self.buffer._traces == {}
        assert self.buffer._memory.open_ids() == frozenset()


@given(st.integers(0, 1 << 32))
@settings(max_examples=1500, deadline=None)
def test_nothing_is_lost_or_told_twice(seed: int) -> None:
    machine = Machine(seed)
    machine.start_root()
    for step in machine.random.choices([*STEPS], [*STEPS.values()], k=LENGTH):
        getattr(machine, step)()
        machine.room_is_counted_as_it_is_given()
        machine.no_tree_and_no_trace_is_left_behind()
        machine.no_span_leaves_twice()
        if machine.random.random() < LOOKS:
            machine.every_tree_is_as_it_says()
    machine.teardown()


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


def test_an_end_that_arrives_while_its_span_is_taken_out_waits_to_follow() -> None:
    buffer = Buffer(lambda: 0.0)
    tree = held_in(buffer, Tree(1, 1, "tree"), Live(1, 1, 1))
    buffer._slow(tree)  # as whoever takes a span out has done before
    tree.arrived[2] = Ended(1, 2, 2)  # what a hook does that saw span 2 there a moment ago
    assert [span.span_id for span in buffer.glimpse(tree)] == [1]
    assert not buffer.end_after_all(tree, tree.arrived, 2, tree.arrived[2])


def quick_tree(buffer: Buffer, spans: int) -> tuple[Tree, list[Ended]]:
    """Return a tree with so many spans below its root, and their ends, which no hook has told yet."""
    tree = held_in(buffer, Tree(1, 1, "tree"), Live(1, 1, 1))
    live = [Live(1, span_id, span_id) for span_id in range(2, 2 + spans)]
    for span in live:
        buffer.join(1, span.span_id, 1, span)
    return tree, [span.end() for span in live]


def test_an_end_that_its_hook_has_put_in_its_place_is_not_put_there_again() -> None:
    buffer = Buffer(lambda: 0.0)
    tree, ends = quick_tree(buffer, ARRIVED_LIMIT + 1)
    tree.arrived.update((end.span_id, end) for end in ends)  # too many for one that holds the lock
    buffer._slow(tree)
    assert buffer.end_after_all(tree, tree.arrived, 2, ends[0])
    buffer._absorb(tree, [end.span_id for end in ends])
    assert (tree.ended, tree.open) == (len(ends), 1)


@pytest.mark.parametrize("is_too_late", [False, True])
def test_an_end_at_the_moment_at_which_the_quick_way_is_closed_counts_once(is_too_late: bool) -> None:  # noqa: FBT001  a column
    buffer = Buffer(lambda: 0.0)
    tree, (end,) = quick_tree(buffer, 1)
    arrived = tree.arrived
    if not is_too_late:
        arrived[2] = end
    buffer._slow(tree)
    arrived[2] = end
    assert buffer.end_after_all(tree, arrived, 2, end)
    assert (tree.ended, tree.open, tree.spans[2]) == (1, 1, end)


def test_an_end_that_was_seen_by_whoever_took_the_tree_is_not_late() -> None:
    buffer = Buffer(lambda: 0.0)
    tree, (end,) = quick_tree(buffer, 1)
    arrived = tree.arrived
    arrived[2] = end
    buffer.seize(tree, decision(tree))
    assert buffer.end_after_all(tree, arrived, 2, end)


def test_a_span_that_ends_twice_while_its_root_does_counts_once() -> None:
    buffer = Buffer(lambda: 0.0)
    tree, (end, _) = quick_tree(buffer, 2)
    tree.arrived[2] = end
    buffer.end(1, 1, Ended(1, 1, 1))
    tree.arrived[2] = end  # a second hook that saw the tree before that
    buffer.absorb(tree)
    assert (tree.ended, tree.open) == (2, 1)


def deep(frames: int, act: Callable[[], object]) -> object:
    return act() if not frames else deep(frames - 1, act)


@pytest.mark.parametrize("act", ["absorb_quick", "end_root"])
def test_an_end_at_the_bottom_of_the_stack_loses_no_other(act: str) -> None:
    for frames in range(sys.getrecursionlimit() - 120, sys.getrecursionlimit()):
        buffer = Buffer(lambda: 0.0)
        tree, ends = quick_tree(buffer, ARRIVED_LIMIT)
        tree.arrived[2] = ends[0]
        buffer.absorb(tree)  # so that some stand in their places
        tree.arrived.update((end.span_id, end) for end in ends[1:])
        what = (
            partial(buffer.absorb_quick, tree) if act == "absorb_quick" else partial(buffer.end, 1, 1, Ended(1, 1, 1))
        )
        with contextlib.suppress(RecursionError):
            deep(frames, what)
        buffer.absorb(tree)
        assert not [span for span in tree.spans.values() if isinstance(span, Live) and span.span_id != 1]


def test_a_span_put_into_a_tree_that_somebody_walks_through_stays_where_it_stands() -> None:
    buffer = Buffer(lambda: 0.0)
    tree, _ = quick_tree(buffer, 1)
    late, last = Live(1, 8, 8, 1), Live(1, 9, 9, 1)
    tree.spans[8] = late  # as a hook has done that stops here for a while
    buffer.join(1, 9, 1, last)
    buffer.end(1, 9, last.end())
    buffer.end(1, 1, Ended(1, 1, 1))
    assert buffer.join_after_all(tree, 8, 1, late) is tree
    assert [*tree.spans] == [1, 2, 8, 9]
    assert tree.room == 4


def test_a_buffer_that_is_shut_opens_no_tree() -> None:
    buffer = Buffer(lambda: 0.0)
    quick_tree(buffer, 1)
    assert buffer.shut() == 0
    assert buffer.open(Tree(2, 2, "late"), Live(2, 2, 2)) is None
    assert buffer.count_spans() == 0


def test_what_is_put_in_its_place_is_lightened_first() -> None:
    lightened: list[Ended] = []
    buffer = Buffer(lambda: 0.0, lighten=lightened.extend)
    tree, ends = quick_tree(buffer, 3)
    tree.arrived.update((end.span_id, end) for end in ends)
    buffer.absorb(tree)
    assert lightened == ends


def test_what_a_hook_puts_in_its_place_is_lightened_too() -> None:
    lightened: list[Ended] = []
    buffer = Buffer(lambda: 0.0, lighten=lightened.extend)
    _, ends = quick_tree(buffer, ARRIVED_LIMIT + 1)
    for end in ends:
        Through(buffer).end(end)
    assert lightened == ends[:-1]
    root = Ended(1, 1, 1)
    buffer.end(1, 1, root)
    assert lightened == [*ends[:-1], root, ends[-1]]


def test_a_span_that_ends_twice_counts_once() -> None:
    buffer = Buffer(lambda: 0.0)
    tree, (end,) = quick_tree(buffer, 1)
    for _ in range(2):
        assert Through(buffer).end(end)
        buffer.absorb(tree)
    assert Through(buffer).end(end)
    buffer._slow(tree)
    assert (tree.ended, tree.open) == (1, 1)


def test_an_end_that_arrives_at_a_piecewise_tree_has_it_looked_at() -> None:
    buffer = Buffer(lambda: 0.0)
    tree = held_in(buffer, Tree(1, 1, "tree"), Live(1, 1, 1))
    buffer.join(1, 2, 1, Live(1, 2, 2))
    buffer.let_pass(tree)
    buffer.take_stirred()
    tree.arrived[2] = Ended(1, 2, 2)
    buffer.absorb(tree)
    assert buffer.take_stirred() == [tree]


def test_a_span_that_comes_on_two_ways_at_once_is_held_once() -> None:
    buffer = Buffer(lambda: 0.0)
    span = Ended(1, 2, 3)
    assert buffer.admit(Tree(1, 2, "one way", standing="unseen"), None, span)
    assert buffer.admit(Tree(1, 2, "the other", standing="unseen"), None, span)
    (tree,) = buffer.held()
    assert list(buffer.glimpse(tree)) == [span]


def test_a_run_is_told_where_there_is_no_room_for_what_carries_its_id() -> None:
    buffer = Buffer(lambda: 0.0, max_spans=1)
    run = Tree(1, 10, "random")
    assert buffer.open(run, Ended(1, 10, 0)) is run
    buffer.open_run("r", 1, 10, is_own=True)
    assert buffer.carry(Tree(2, 20, "other"), "unknown", Ended(2, 20, 0)) is None
    assert not run.overflowed
    assert buffer.carry(Tree(2, 20, "other"), "r", Ended(2, 20, 0)) is None
    assert (run.tree_id, run.overflowed) == ("r", True)


def test_what_carries_a_run_that_is_let_go_is_looked_at_by_itself() -> None:
    buffer = Buffer(lambda: 0.0)
    run, own = Tree(1, 10, "random"), Tree(2, 20, "other")
    buffer.open(run, Live(1, 10, 0))
    buffer.open_run("r", 1, 10, is_own=True)
    live = Live(2, 20, 0)
    assert buffer.carry(own, "r", live) is own
    buffer.end(2, 20, live.end())
    assert buffer.ended() == []
    buffer.close(run, decision(run), run.activity)
    assert (buffer.ended(), own.host, run.bound) == ([own], None, {})
    assert not buffer.has_open_run("r")
