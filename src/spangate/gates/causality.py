"""Causality: what caused what, as spans declare it; times never decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from spangate._causes import Causes, causes, in_order
from spangate._causes.derived import derived
from spangate._causes.graph import Edges, circles, effects_of, ordered
from spangate._causes.writers import (
    MAX_PASSES,
    MAX_WRITERS,
    Contest,
    Unordered,
    batches,
    contest,
    unordered,
    writers_of,
)
from spangate._lineage import nearest
from spangate._records import Finding, Span, not_evaluable
from spangate._run import Run
from spangate._units import counted

_SHOWN: Final = 8
"""Spans that one finding names."""
_MAX_STEPS: Final = 4_000_000
"""Steps up the graph over all summaries of a run."""
_NOBODY: Final = "no span declares what caused it (caused_by)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Causality:
    """Finds causes that cannot be, calls that nothing asked for, and writers that nothing puts in order.

    Judged are the spans that declare causes in ``caused_by``, and only in runs that have such spans; what a declaration
    looks like stands in :mod:`spangate._causes`. Where call ids tell what caused a tool, that counts beside what is
    declared and is called derived; by itself it fails no run. Neither starts nor ends of spans are looked at.

    A summary has to name every prompt that contributed: every one from which a path of declared causes leads to it. The
    way ends at other summaries, which answer for themselves.

    Two spans that write one path are in order if a path of causes leads from one to the other; a span counts as a cause
    of its children. A writer that declares nothing stands for the call around it that does. Spans write what they say
    in ``op`` and ``path``.

    Attributes:
        writers: Tools that write, each with the argument that holds the path: ``{"write_file": "path"}``.
        commutative: Names of tools whose writes may come in any order among each other.

    Raises:
        ValueError: ``writers`` is no mapping from names to names.
        TypeError: ``commutative`` is one text instead of names.
    """

    writers: Mapping[str, str] = field(default_factory=dict, hash=False)
    commutative: Collection[str] = field(default=(), hash=False)

    def __post_init__(self) -> None:
        writers: Any = self.writers
        if not isinstance(writers, Mapping) or not all(isinstance(one, str) for one in writers.values()):
            raise ValueError(f"writers is {writers!r}: write a mapping from a tool's name to that of an argument")
        if isinstance(self.commutative, str):
            raise TypeError(f"commutative wants a collection of names, as ({self.commutative!r},)")

    @property
    def tools_named(self) -> Iterable[str]:
        """The names of tools in the settings."""
        return [*self.writers, *self.commutative]

    def __call__(self, run: Run) -> Iterator[Finding]:
        """Yield the findings, rule by rule, in the order of span ids."""
        known = run.remember(causes)
        paths = writers_of(run, self.writers)
        if not known.of:
            yield not_evaluable("causality.not_evaluable", _NOBODY)
        else:
            by_ids = run.remember(derived)
            yield from _single(known, by_ids)
            yield from _summaries(known)
            yield from _circles(run, known)
        if paths:
            yield from self._unordered(run, known, paths)

    def _unordered(self, run: Run, known: Causes, paths: Mapping[str, Sequence[Span]]) -> Iterator[Finding]:
        """Find writers of one path that nothing puts in order. Where no span declares a cause, only say so."""
        by_ids = run.remember(derived)
        has_causes = {**by_ids, **known.of}
        above = nearest(run, lambda span: span in has_causes)
        contests = [contest(path, paths[path], has_causes, above) for path in sorted(paths)]
        passes = list(batches([one for one in contests if 1 < len(one.writers) <= MAX_WRITERS]))
        yield from (_gap(why) for why in _not_looked_at(contests, passes))
        if not passes:
            return
        effects = effects_of(run, known.of, by_ids)
        order, left = ordered(run.spans, effects)
        if left:  # what was derived contradicts what was declared, which is sure
            effects = effects_of(run, known.of)
            order, left = ordered(run.spans, effects)
        if left:
            yield _gap("causes or parents make a circle, so nothing is before anything")
            return
        for batch in passes[:MAX_PASSES]:
            for pair in unordered(batch, order, effects, frozenset(self.commutative)):
                yield _pair(pair, known.of)


def _gap(why: str) -> Finding:
    return not_evaluable("causality.unordered_writers", why)


def _not_looked_at(contests: Sequence[Contest], passes: Sequence[Sequence[Contest]]) -> Iterator[str]:
    """Say of which writers the order is not looked at, and why."""
    for one in contests:
        writers = len(one.writers) + one.unknown
        written = f"{one.path!r} is written by {counted(writers, 'span')}"
        if one.unknown:
            yield f"{written}, of which {one.unknown:,} have no known cause"
        if len(one.writers) > MAX_WRITERS:
            yield f"{written}: the order of more than {MAX_WRITERS:,} is not looked at"
    if len(passes) > MAX_PASSES:
        paths = sum(map(len, passes[MAX_PASSES:]))
        yield f"too many writers: the order at {counted(paths, 'path')} was not looked at"


def _circles(run: Run, known: Causes) -> Iterator[Finding]:
    """Find circles of causes and parents. One of parents alone is the forest's to find."""
    effects = effects_of(run, known.of)
    _, left = ordered(run.spans, effects)
    for ring in circles(left, effects):
        if any(cause in known.of.get(span, ()) for cause, span in zip(ring, [*ring[1:], ring[0]], strict=True)):
            named = f"{_named(ring)}: each causes the next, and the last the first"
            yield Finding("causality.cycle", ring[0], named if len(ring) > 1 else "is named as its own cause")


def _single(known: Causes, by_ids: Edges) -> Iterator[Finding]:
    """Find what is wrong with the causes of single spans."""
    for span in in_order(known.of):
        missing = known.missing.get(span, ())
        if missing:
            detail = f"is caused by {', '.join(map(repr, missing[:_SHOWN]))}, of which the run has no span"
            yield Finding("causality.missing_cause", span, detail)
        own = known.kinds(span)
        causing = [*known.of[span], *by_ids.get(span, ())]
        by = set().union(*(known.kinds(cause) for cause in causing))
        if missing:
            continue  # what is missing may be just what the span needs
        if "tool" in own and by.isdisjoint({"prompt", "retry"}):
            yield Finding("causality.tool_without_prompt", span, f"a tool, caused by {_named(causing)}")
        if "retry" in own and not any(_can_be_retried(known, cause) for cause in causing):
            yield Finding("causality.retry_without_origin", span, f"a retry, caused by {_named(causing)}")


def _can_be_retried(known: Causes, cause: Span) -> bool:
    """Say whether a span is a prompt or a tool; a retry that is one itself may be retried again."""
    return not known.kinds(cause).isdisjoint({"prompt", "tool"}) or cause.role in ("generation", "tool")


def _summaries(known: Causes) -> Iterator[Finding]:
    """Find summaries that do not name every prompt from which a path of declared causes leads to them."""
    steps = 0
    for summary in in_order(span for span in known.of if "summary" in known.kinds(span)):
        if summary in known.missing:
            continue
        named = known.of[summary]
        reached = dict.fromkeys(named)
        todo = [*named]
        while todo and steps < _MAX_STEPS:
            cause = todo.pop()
            steps += 1
            if "summary" not in known.kinds(cause):
                further = [one for one in known.of.get(cause, ()) if one not in reached and one is not summary]
                reached.update(dict.fromkeys(further))
                todo += further
        if steps >= _MAX_STEPS:
            why = "the summaries have too many causes to be gone through"
            yield not_evaluable("causality.summary_incomplete", why, summary)
            return
        prompts = [span for span in reached if "prompt" in known.kinds(span)]
        left_out = in_order(set(prompts).difference(named))
        if left_out:
            yield Finding("causality.summary_incomplete", summary, f"does not name {_named(left_out)}")
        elif not any("prompt" in known.kinds(cause) or "summary" in known.kinds(cause) for cause in named):
            yield Finding("causality.summary_incomplete", summary, "names no prompt")


def _pair(pair: Unordered, declared: Edges) -> Finding:
    first, second = pair.first, pair.second
    more = f"; {pair.pairs:,} such pairs" if pair.pairs > 1 else ""
    derived_ones = [one for one in (first, second) if one.anchor not in declared]
    how = " (causes derived from call ids)" if derived_ones else ""
    detail = f"{_named([first.span, second.span])} both write {pair.path!r}, and no causes put them in order{how}{more}"
    if not declared:
        return not_evaluable("causality.unordered_writers", f"{detail}; {_NOBODY}", first.span)
    return Finding("causality.unordered_writers", first.span, detail)


def _named(spans: Sequence[Span]) -> str:
    shown = [f"{span.name!r} ({span.hex_id})" for span in spans[:_SHOWN]]
    more = len(spans) - len(shown)
    return ", ".join([*shown, f"{more:,} more"] if more else shown) or "nothing"
