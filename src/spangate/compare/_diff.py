"""The bounded diff: closed first, comparable second, and then every change, with what allows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from spangate._run import Run
from spangate._units import shown
from spangate.compare._allowing import Allowances, with_calls
from spangate.compare._calls import compare_calls
from spangate.compare._changes import Difference
from spangate.compare._closed import why_not_closed
from spangate.compare._generations import REASONS, Comparison, Reason, compare
from spangate.compare._noise import LEAST, Band, Portrait
from spangate.compare._rules import Allowance, Changed, Rules
from spangate.compare._steps import Reader
from spangate.compare._tree import edge_changes, faults, log_changes, recounted, tree_of

_DEFAULTS: Final = Rules()
_MEANT: Final[Mapping[Changed, Reason]] = {
    "prompt": "prompt",
    "tools": "tool_schema",
    "model": "model",
    "params": "decoding",
}
"""The reason for which two runs are incomparable where this was changed."""


def diff(  # noqa: PLR0913  each of them is a decision of its own
    a: Run,
    b: Run,
    *,
    today: date,
    rules: Rules = _DEFAULTS,
    allowed: Sequence[Allowance] = (),
    changed: Changed | None = None,
    baselines: Sequence[Run] = (),
    model_from_config: str | None = None,
) -> Difference:
    """Say what changed from run ``a`` to run ``b``, and whether all of it is allowed.

    Pure: it reads no file and no clock. The time is linear in the spans, but for what
    :func:`spangate.compare._alignment.align` takes where an agent made very many calls in another order.

    Args:
        a: The run before. Its spans have their roles, as those of a recording and of a gate have.
        b: The run after.
        today: The day by which entries expire.
        rules: What is compared, and how exactly.
        allowed: The changes that are accepted.
        changed: The one thing that was meant to change: it may differ, and nothing else of what was asked.
        model_from_config: The model of calls that name none, as for :func:`compare`.
        baselines: Three or more runs that nobody changed anything about; what differs among them is known to vary.

    Returns:
        The difference; one with a ``refusal`` if a run is not closed, or the two cannot be compared.

    Raises:
        ValueError: one or two baselines, which are no band, or a ``changed`` that does not exist.
    """
    if changed is not None and changed not in _MEANT:
        raise ValueError(f"changed is {changed!r}: it may be {', '.join(_MEANT)}")
    if 0 < len(baselines) < LEAST:
        raise ValueError(f"{len(baselines)} baseline(s) are no band: what varies is known from {LEAST} runs or more")
    comparison = compare(a, b, model_from_config=model_from_config)
    found = Difference(a=a, b=b, comparison=comparison, rules=rules)
    for side, run in (("A", a), ("B", b)):
        why = why_not_closed(run)
        if why is not None:
            return replace(found, closed=False, refusal=f"{side} is not closed, and is not diffed: {why}")
    refusal = _why_incomparable(comparison, changed) or _why_no_band(a, baselines, model_from_config)
    if refusal is not None:
        return replace(found, refusal=refusal)
    return _diffed(found, Allowances(allowed, today), changed, baselines)


def _diffed(found: Difference, allowances: Allowances, changed: Changed | None, baselines: Sequence[Run]) -> Difference:
    reader = Reader(found.rules)
    before, after = _portrait(found.a, reader), _portrait(found.b, reader)
    calls = compare_calls(before.steps, after.steps, reader)
    trees = before.tree, after.tree
    changes = [*calls.changes, *edge_changes(*trees), *log_changes(*trees)]
    changes = [allowances.of(change) for change in changes]
    if baselines:
        band, made = Band([_portrait(run, reader) for run in baselines], reader), after.calls()
        changes = [replace(one, varies=True) if band.covers(one, after, made) else one for one in changes]
    of_calls, of_tree = changes[: len(calls.changes)], changes[len(calls.changes) :]
    roles = sorted(trees[0].roles | trees[1].roles)
    return replace(
        found,
        changes=(*of_calls, *with_calls(of_tree, of_calls, (found.a, found.b), reader.names)),
        alignment=calls.alignment,
        roles={role: (trees[0].roles[role], trees[1].roles[role]) for role in roles},
        recounted=recounted(*trees),
        faults=tuple(faults(*trees)),
        notes=tuple(_notes(found, changed)),
        unused=allowances.unused(),
        expired=allowances.expired(),
    )


def _portrait(run: Run, reader: Reader) -> Portrait:
    return Portrait(reader.read(run), tree_of(run, reader.names, logs=reader.rules.logs))


def _why_incomparable(comparison: Comparison, changed: Changed | None) -> str | None:
    """Say what differs in what was asked beside the one thing that was meant to."""
    meant = None if changed is None else _MEANT[changed]
    against = [reason for reason in comparison.reasons if reason != meant]
    if not against:
        return None
    what = "; ".join(f"{reason} ({REASONS[reason]})" for reason in against)
    if meant is None or meant not in comparison.reasons:
        return f"the runs cannot be compared: {what}"
    return f"the runs cannot be compared: beside the {changed}, which was meant to change: {what}"


def _why_no_band(a: Run, baselines: Sequence[Run], model: str | None) -> str | None:
    for number, run in enumerate(baselines, 1):
        comparison = compare(a, run, model_from_config=model)
        why = why_not_closed(run) or _why_incomparable(comparison, None)
        if why is not None:
            return f"baseline {number} ({shown(run.run_id)}) is none of A's: {why}"
    return None


def _notes(found: Difference, changed: Changed | None) -> Iterator[str]:
    if changed is not None and _MEANT[changed] not in found.comparison.reasons:
        yield f"the {changed} was meant to change, and did not"
    if found.rules.logs and not found.a.records and not found.b.records:
        yield "neither run has log records, so they are not compared"
