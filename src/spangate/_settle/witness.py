"""What became of a working tree during a run, and whether that can be told: between two looks, by this run alone.

A run begins with the first look that began after its root had started, and ends with one that began after its root had
ended: taken when it is judged or, if another has begun meanwhile, the one that this other begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from spangate._buffer import Buffer
from spangate._buffer.tree import Tree
from spangate._forest import has_agent
from spangate._git import GitError, Repository, Snapshot, changes, content_at, name_of, shown
from spangate._journal import Journal, is_entry, journal, touched
from spangate._paced import strides
from spangate._records import ABSENT, Changes, Span
from spangate._run import Run
from spangate._settle.look import read
from spangate._settle.place import Placer
from spangate._settle.watches import Watch, Watches
from spangate._settle.writers import Writers
from spangate._telemetry import logger
from spangate._worktree import Look
from spangate.gates.worktree import Worktree

_UNSEEN: Final = "nobody looked at the working tree when it began"
_OTHER_RUN: Final = "another run went on at the same time, and both may have changed the working tree"
_SHARED: Final = "other runs share its request, and all may have changed the working tree"
_TOO_SOON: Final = "a tool began to write before the look at the working tree was over that the run begins with"
_DEFECT: Final = "the working tree could not be compared, which is a defect of spangate"


class Unknown(Exception):  # noqa: N818  it is an answer
    """Why nothing can be said of a run."""


class Witness:
    """Tells what became of the working tree that a gate is about. The worker asks, others have it know."""

    def __init__(self, gate: Worktree, buffer: Buffer) -> None:
        self._buffer = buffer
        self._tools = gate.writers
        self._watches = Watches(buffer, gate.repo, with_ignored=gate.ignored)
        self._looker = self._watches.looker
        self._writers = Writers(gate.writers, self._looker)

    @property
    def has_writers(self) -> bool:
        """Whether what tools wrote is to be hashed when their spans end."""
        return bool(self._tools)

    def watch(self, placer: Placer) -> None:
        """Learn of each tree that begins."""
        self._watches.learn_from(placer)

    def hashing_first(self, on_end: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the hook at the end of spans, with a hash of what a tool wrote before it."""
        ended = self._writers.ended

        def end(span: Any) -> None:
            ended(span)
            on_end(span)

        return end

    def reset(self) -> None:
        """Know nothing: what a forked child starts with."""
        self._watches.reset()
        self._writers.reset()

    def changes(self, run: Run) -> Changes:
        """Return what became of the working tree during a run that is over. Waits for git, for minutes at worst."""
        try:
            return self._changes(run)
        except (GitError, Unknown) as why:
            return Changes(unknown=str(why))
        except Exception:  # noqa: BLE001  the run must get its verdict
            logger.exception("run %s: %s", run.run_id, _DEFECT)
            return Changes(unknown=_DEFECT)

    def _changes(self, run: Run) -> Changes:
        written = self._writers.take(run)
        watch, end = self._watch_of(run)
        base, since_earlier = self._base(watch, run)
        told = journal(replace(run, changes=Changes(written=written)), self._tools)
        last, repository = self._last(end, run, told).snapshot, self._looker.repository
        if repository is None or last is None:
            raise Unknown(_UNSEEN)
        deltas = changes(repository, base, last)
        on_disk = dict(_on_disk(told, repository, last))
        for other in self._watches.after(end):  # looked at last: what it has written by now, its spans tell
            for path in touched(self._spans_of(other.tree), self._tools):
                if name_of(path) not in last.differing:
                    on_disk.pop(path, None)
        return Changes(
            root=repository.root,
            deltas={shown(name): delta for name, delta in deltas.items()},
            on_disk=on_disk,
            written=written,
            ignores_case=repository.ignores_case,
            since_earlier=since_earlier,
        )

    def _watch_of(self, run: Run) -> tuple[Watch, float]:
        """Return what is known of a run's tree, and the moment of its end."""
        known = self._watches.close(run)
        if known is None:
            raise Unknown(_UNSEEN)
        watch, end, overlaps = known
        if watch.tree.piecewise and (watch.judged > 1 or self._is_run(watch.tree)):
            raise Unknown(_SHARED)
        if overlaps or any(self._is_rival(other.tree, watch.tree, end) for other in self._watches.others(watch)):
            raise Unknown(_OTHER_RUN)
        return watch, end

    def _is_rival(self, other: Tree, tree: Tree, end: float) -> bool:
        """Say whether another run, which is not decided yet, went on at the same time."""
        overlaps = other.order < end and (other.end_order is None or other.end_order > tree.order)
        return overlaps and self._buffer.is_held(other) and self._is_run(other)

    def _is_run(self, tree: Tree) -> bool:
        """Say whether an agent role is visible in a tree: mostly in its first spans."""
        return any(has_agent(read(stride, tree=tree).spans) for stride in strides([*tree.spans.values()]))

    def _base(self, watch: Watch, run: Run) -> tuple[Snapshot, str]:
        """Return the snapshot that the run is compared with, and why it may be too old."""
        self._looker.wait(watch.baseline)
        if watch.baseline.snapshot is None:
            raise Unknown(watch.baseline.error)
        if not any(_is_early(span, watch) for span in run.spans if is_entry(span, self._tools)):
            return watch.baseline.snapshot, ""
        if watch.before is None or watch.before.snapshot is None:
            raise Unknown(_TOO_SOON)
        return watch.before.snapshot, _TOO_SOON

    def _last(self, end: float, run: Run, told: Journal) -> Look:
        """Return the look that the run ends with, if nobody else can have written before it was over."""
        after = self._watches.after(end)
        look = after[0].baseline if after else self._looker.ask()
        self._looker.wait(look)
        if look.snapshot is None:
            raise Unknown(look.error)
        if after and any((span.end_ns or 0) > (run.root.end_ns or 0) for span in _writing(told)):
            raise Unknown(_OTHER_RUN)
        for other in self._watches.after(end):
            if other.began < look.done and self._has_written(other):
                raise Unknown(_OTHER_RUN)
        return look

    def _has_written(self, other: Watch) -> bool:
        """Say whether a tree that is still held had begun to write when the look that it begins with was over."""
        self._looker.wait(other.baseline)
        spans = self._spans_of(other.tree, other.present)
        return any(is_entry(span, self._tools) for span in spans)

    def _spans_of(self, tree: Tree, span_ids: Sequence[int] | None = None) -> Sequence[Span]:
        held = tree.spans
        ids = [*held] if span_ids is None else span_ids
        return read([span for span_id in ids if (span := held.get(span_id)) is not None], tree=tree).spans


def _is_early(span: Span, watch: Watch) -> bool:
    """Say whether a span had begun when the look was over. When a lost piece of the run began is not known."""
    if span.sender_id is not None:
        return span.start_ns < watch.baseline.done_ns
    return watch.present is None or span.span_id in watch.present or span.trace_id != watch.tree.trace_id


def _on_disk(told: Journal, repository: Repository, last: Snapshot) -> Iterator[tuple[str, str | None]]:
    """Yield what stands, as of the last look, under each path of which a span says what it left there."""
    for path in dict.fromkeys(claim.path for claim in told.claims if claim.after is not ABSENT):
        name = name_of(path)
        if name in last.differing:
            content = last.differing[name]
        elif ".." in path.split("/") or path.startswith("/"):
            continue
        else:
            content = content_at(repository, name)
        yield path, None if content is None else content.sha256


def _writing(told: Journal) -> Iterator[Span]:
    yield from (claim.span for claim in told.claims)
    yield from (span for span, _ in told.outputs)
    yield from told.mute
