"""What changed in the calls of two runs: added, dropped, reordered, or made with other arguments; agent by agent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from spangate._records import Span
from spangate.compare._arguments import NOTHING
from spangate.compare._changes import Aligned, Change
from spangate.compare._pairing import Pairing, pair_up
from spangate.compare._rules import Kind
from spangate.compare._step import Step
from spangate.compare._steps import Reader

_UNRECORDED = "its arguments are not recorded"
_TWO_KINDS = "its arguments were recorded in two ways that cannot be compared"


@dataclass(slots=True)
class Calls:
    """The changes of the calls, and every call with its counterpart, both in the order of the first run."""

    changes: list[Change] = field(default_factory=list)
    alignment: list[Aligned] = field(default_factory=list)


def compare_calls(a: Step, b: Step, reader: Reader) -> Calls:
    """Compare two runs step by step, what is inside of two steps only if they are each other's counterparts."""
    found = Calls()
    unknown: dict[tuple[str, str], int] = {}
    todo = [Pairing(a, b)]
    while todo:
        pairing = todo.pop()
        if "tool" in (_kind(pairing.a), _kind(pairing.b)):
            found.alignment.append((_span(pairing.a), _span(pairing.b)))
        for change in _changes(pairing, reader):
            place = (change.agent, change.name)
            if not change.unknown:
                found.changes.append(change)
            elif place in unknown:
                known = found.changes[unknown[place]]
                found.changes[unknown[place]] = replace(known, count=known.count + 1)
            else:
                unknown[place] = len(found.changes)
                found.changes.append(change)
        todo += reversed(_inside(pairing))
    return found


def _inside(pairing: Pairing) -> list[Pairing]:
    if pairing.a is None or pairing.b is None:
        ours, theirs = (() if step is None else step.inside for step in pairing[:2])
        return [*(Pairing(step, None) for step in ours), *(Pairing(None, step) for step in theirs)]
    return pair_up(pairing.a.inside, pairing.b.inside)


def _changes(pairing: Pairing, reader: Reader) -> Iterator[Change]:
    """Yield what changed in one step, not in those inside of it."""
    a, b, moved = pairing
    if a is None or b is None:
        if "tool" in (_kind(a), _kind(b)):
            yield _change("added" if a is None else "dropped", a, b)
        return
    if moved:
        yield _change("reordered", a, b)
    if a.kind != "tool" or a.is_coarse or a.span is b.span:
        return
    if a.digest is None or b.digest is None:
        yield replace(_change("drift", a, b), unknown=_UNRECORDED)
    elif a.digest.made != b.digest.made and NOTHING not in (a.digest.text, b.digest.text):
        yield replace(_change("drift", a, b), unknown=_TWO_KINDS)
    elif a.digest != b.digest:
        yield replace(_change("drift", a, b), keys=_moved_keys(a, b, reader))


def _moved_keys(a: Step, b: Step, reader: Reader) -> tuple[str, ...]:
    values = (reader.arguments.value(step.spans, step.asked) for step in (a, b))
    return reader.arguments.moved(*values)


def _change(kind: Kind, a: Step | None, b: Step | None) -> Change:
    step = b or a
    if step is None:
        raise ValueError("a change is about a step")
    return Change(
        kind=kind,
        name=step.name,
        agent=step.agent,
        a=_span(a),
        b=_span(b),
        digest_a=_digest(a),
        digest_b=_digest(b),
    )


def _kind(step: Step | None) -> str:
    return "" if step is None else step.kind


def _span(step: Step | None) -> Span | None:
    return None if step is None else step.span


def _digest(step: Step | None) -> str | None:
    return None if step is None or step.digest is None else step.digest.text
