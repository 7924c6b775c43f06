"""The live shapes: a local tree of spans while it is held, and what is remembered of it once it is decided.

Both are guarded by the lock of :class:`spangate._buffer.Buffer` and know nothing of the SDK: spans are opaque here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Literal, TypeAlias

from spangate._buffer.kept import Kept
from spangate._buffer.received import Received
from spangate._fingerprint.overheard import Overheard
from spangate._paced import take_apart
from spangate._records import Exit, Finding, Span

Standing: TypeAlias = Literal["root", "remote", "unsampled", "foreign", "late", "cut", "unseen"]
"""How a local root stands to its parent: it has none; the parent is in another process; a sampler dropped it; another
provider owns it; it had ended and was decided; it was open when its tree was let go at a bound; or the local root's own
start was never seen."""

Ruling: TypeAlias = Literal["pending", "pass", "fail", "none"]
"""What was decided: ``none`` is a tree without a run, which passed with no verdict."""


SPAN_OVERHEAD = 2048
"""Bytes that a span weighs in memory besides its attributes and events: about what the SDK's objects take."""


class Tree:
    """A local root and its descendants, held until they are decided.

    ``spans`` maps span ids to the live span, replaced by the ended one: one dict is order, membership and open set.
    ``twins`` are spans whose id was taken, with that id; ``is_doubled`` says that a span came twice as one object.
    ``arrived`` are spans that have ended and are still to be put in their places, ``ended`` counts those that are;
    ``placed`` are the ids of those that were when the quick way was closed.
    ``is_member`` says that it is part of a run that another process holds.
    ``quick`` says that starts and ends need not take the lock, for up to ``room`` spans.
    ``order`` and ``end_order`` number the moments of the root's start and end. ``piecewise`` trees (below a request
    handler, or with many agents under one span) are decided part by part; ``passing`` ones let through whatever is no
    agent, ``overflowed`` ones because a bound was reached; ``cut`` are spans that were open in a piecewise tree when it
    reached one. ``waits_for`` is the tree that this one may be a stray of, ``claims`` are the trees that wait for this
    one, each with the id of the root of the run in it that is meant; ``adopted`` tells how the parents of spans are
    missing that joined without one. ``opened`` maps the spans that open a run of the program's own to its id; ``bound``
    are the trees that carry the id of such a run in other traces, each with the id of its span, and ``host`` is what
    such a tree is bound to: it is never decided alone. ``root`` is the worker's note of a root that left a piecewise
    tree before the rest, ``runs`` counts what was decided in it, ``gone`` makes up in ``activity`` for what was taken
    out. ``stamps`` holds what the gate wrote on live spans, ``said`` what they said they were when they started, an
    attribute or the word for their operation alone; the SDK may evict either.
    ``received`` is what programs of its spans have sent and nobody has read, ``heard`` the worker's records of what it
    has read of that; ``received_count`` and ``received_weight``, in bytes, are of both.
    ``fresh`` are the ended spans that nobody has weighed, and ``spared`` counts how often the whole tree was not, since
    it is over. ``exits`` are the programs of its spans that have ended, ``notes`` what others found about it, with the
    id of a span. ``records`` are the log records by the span that they name, 0 for those that name none which was here,
    and ``record_weight`` is what they weigh in bytes. ``overheard`` are requests to models that were sent in its spans,
    ``unsettled`` the spans whose stamps depend on what they turn out to be: with the words of the program that may be
    meant for one, or None where it has its stamps and these lack something. Times are seconds on the buffer's clock.
    """

    __slots__ = (
        "above",
        "adopted",
        "arrived",
        "bound",
        "claims",
        "cut",
        "end_order",
        "ended",
        "exits",
        "fresh",
        "gone",
        "heard",
        "host",
        "is_doubled",
        "is_member",
        "last_end_at",
        "notes",
        "opened",
        "opened_at",
        "order",
        "overflowed",
        "overheard",
        "passing",
        "piecewise",
        "placed",
        "quick",
        "received",
        "received_count",
        "received_weight",
        "record_weight",
        "records",
        "room",
        "root",
        "root_ended_at",
        "root_id",
        "runs",
        "said",
        "seen",
        "seen_at",
        "spans",
        "spared",
        "stamps",
        "standing",
        "trace_id",
        "tree_id",
        "twins",
        "unsettled",
        "waits_for",
        "weight",
    )

    def __init__(
        self,
        trace_id: int,
        root_id: int,
        tree_id: str,
        *,
        standing: Standing = "root",
        above: Decided | None = None,
        piecewise: bool = False,
    ) -> None:
        self.trace_id = trace_id
        self.root_id = root_id
        self.tree_id = tree_id
        self.standing = standing
        self.above = above
        self.piecewise = piecewise
        self.order = 0
        self.opened_at = 0.0
        self.spans: dict[int, Any] = {}
        self.twins: list[tuple[int, Any]] = []
        self.arrived: dict[int, Any] = {}
        self.placed: Collection[int] = ()
        self.ended = 0
        self.is_doubled = False
        self.is_member = False
        self.quick = False
        self.room = 0
        self.root_ended_at: float | None = None
        self.last_end_at: float | None = None
        self.end_order: int | None = None
        self.passing = False
        self.overflowed = False
        self.cut: frozenset[int] = frozenset()
        self.weight = 0
        self.fresh: list[Any] = []
        self.spared = 0
        self.seen = -1
        self.seen_at = 0.0
        self.waits_for: Tree | None = None
        self.claims: dict[Tree, int] = {}
        self.adopted: dict[int, Standing] = {}
        self.opened: dict[int, str] = {}
        self.host: Tree | None = None
        self.bound: dict[Tree, int] = {}
        self.root: Any = None
        self.said: dict[int, str | tuple[str, Any]] = {}
        self.stamps: dict[int, Mapping[str, str | float]] = {}
        self.overheard: list[Overheard] = []
        self.unsettled: dict[int, Any] = {}
        self.received: list[Received] = []
        self.heard: list[Span] = []
        self.received_count = self.received_weight = self.record_weight = 0
        self.records: dict[int, list[Kept]] = {}
        self.exits: list[Exit] = []
        self.notes: list[tuple[int, Finding]] = []
        self.runs = 0
        self.gone = 0

    @property
    def open(self) -> int:
        """How many spans have not ended, as far as they are in their places."""
        return len(self.spans) + len(self.twins) - self.ended

    @property
    def quiet_at(self) -> float | None:
        """Since when nothing is open, in what is bound to it neither; None while something is."""
        if self.open:
            return None
        bound = [*self.bound] if self.bound else ()  # in one step: a thread may bind another meanwhile
        if any(tree.open for tree in bound):
            return None
        return max((tree.last_end_at for tree in (self, *bound) if tree.last_end_at is not None), default=None)

    @property
    def activity(self) -> int:
        """A number that grows whenever a span of the tree, or of one bound to it, starts, ends or is taken out."""
        own = len(self.spans) + len(self.twins) + self.ended + self.gone
        return own + sum(tree.activity for tree in [*self.bound]) if self.bound else own

    def count_received(self, count: int, size: int) -> None:
        """Count spans that a program has sent, in so many bytes. Under the lock of the buffer.

        They weigh what they will when they are read.
        """
        self.received_count += count
        self.received_weight += size + SPAN_OVERHEAD * count
        self.gone += count

    def uncount_received(self, count: int) -> None:
        """Count so many received spans no longer. Under the lock of the buffer."""
        self.received_weight -= self.received_weight * count // self.received_count
        self.received_count -= count

    def take_apart(self, rest: Callable[[], None]) -> None:
        """Forget the spans of a tree that was taken out and read, with rests; not what a late hook may look for."""
        for known in (self.spans, self.stamps, self.said, self.fresh, self.heard):
            take_apart(known, rest)

    def was_open_at(self, order: int) -> bool:
        """Say whether the root was open at the moment ``order``."""
        return self.order < order and (self.end_order is None or self.end_order > order)

    def __repr__(self) -> str:
        """A status line."""
        state = "root open" if self.root_ended_at is None else f"root ended, {self.open} open"
        return f"<Tree {self.tree_id} {len(self.spans)} spans, {state}>"


@dataclass(eq=False, slots=True)
class Decided:
    """What outlives a decided tree or run, so that late spans follow it.

    ``span_ids`` are its members where few enough were kept, else None and the time range (ns) must do.
    ``verdict_span_id`` is the span that carries the verdict: the verdict span of a refused run, the root of a released
    one; ``supersedes`` is such a span of an earlier decision that this one overturns. ``waiting`` are spans that ended
    late, while the decision was still pending, ``records`` the log records that share its fate, until it is ruled.
    ``earlier`` is the last decision before in this trace. ``is_entry`` says
    that the decided spans stood below a request or message handler, outside any run, ``is_cut`` that the open ones of
    them were let go at a bound: what becomes of them is to be judged, ``is_member`` that another process holds the run.
    ``programs`` are the ids of its spans of programs, kept of large runs too: these may send something yet. ``opened``
    are the ids of runs of the program's own in it, ``joined`` the decisions about trees that carried one of them: they
    share its ruling. ``end_order`` is the moment of the root's end, or of the decision if that came first,
    ``root_end_ns`` its time if it has ended.
    """

    run_id: str
    trace_id: int
    span_ids: Collection[int] | None
    start_ns: int
    end_ns: int
    order: int
    has_agent: bool
    end_order: int = 0
    root_end_ns: int = 0
    is_entry: bool = False
    is_cut: bool = False
    is_member: bool = False
    programs: Collection[int] = ()
    opened: Collection[str] = ()
    joined: Sequence[Decided] = ()
    supersedes: int | None = None
    ruling: Ruling = "pending"
    verdict_span_id: int | None = None
    waiting: list[Any] | tuple[()] = ()
    records: list[Kept] | tuple[()] = ()
    earlier: Decided | None = None

    def keep(self, spans: Iterable[Any]) -> None:
        """Have spans that ended late wait for the decision."""
        if isinstance(self.waiting, tuple):
            self.waiting = []
        self.waiting += spans

    def holds(self, span_id: int, start_ns: int | None) -> bool:
        """Say whether a span with this id and start time was a member."""
        if self.span_ids is not None:
            return span_id in self.span_ids
        return start_ns is not None and self.start_ns <= start_ns <= self.end_ns

    def holds_program(self, span_id: int) -> bool:
        """Say whether a span that programs may have been started in was a member."""
        return span_id in self.programs or (self.span_ids is not None and span_id in self.span_ids)


@dataclass(frozen=True, eq=False, slots=True)
class Glimpse:
    """The spans that a tree holds at one moment, in start order, the open ones among them; the tree stays held.

    They are read off the tree while somebody walks through them, as they are by then. A list of very many would take
    as long to make as hooks may wait, and longer for the garbage collector, which looks at all that is in a new one.
    ``activity`` tells later whether anything has started or ended since.
    """

    tree: Tree
    count: int
    twins: Sequence[Any]
    activity: int

    def __iter__(self) -> Iterator[Any]:
        return chain(self._spans(), self.twins)

    def _spans(self) -> Iterator[Any]:
        passed = 0
        while passed < self.count:
            try:
                for span in islice(self.tree.spans.values(), passed, self.count):
                    passed += 1
                    yield span
            except RuntimeError:  # a span has started: where it stands nothing that was here before has moved
                continue
            return


def glimpse_of(tree: Tree) -> Glimpse:
    """Return what a tree holds now. Under the lock of the buffer."""
    return Glimpse(tree, len(tree.spans), [twin for _, twin in tree.twins], tree.activity)


class Unseen:
    """Stands for a live span whose start was never seen, until its end puts the ended one in its place."""

    __slots__ = ("start_time",)

    def __init__(self, start_time: Any) -> None:
        self.start_time = start_time

    def end(self) -> None:
        """Mark this as something live; nobody calls it."""
