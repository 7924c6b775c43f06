"""The model calls of a run, each once, however many spans record it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spangate._dialects import dialect_of
from spangate._lineage import nested
from spangate._records import Role, Span
from spangate._run import Run
from spangate._usage.sightings import Sighting, grouped, join_answers, nest
from spangate._usage.tokens import Tokens, reading_of

_ENDS_STACK: Final[frozenset[Role]] = frozenset({"tool", "agent"})


@dataclass(slots=True, eq=False)
class Call:
    """One model call: the spans that recorded it, the innermost first, and what it used."""

    sightings: Sequence[Sighting]
    tokens: Tokens

    @property
    def span(self) -> Span:
        """The span that stands for the call: the innermost, of equals the first."""
        return self.sightings[0].span

    def has_spoken(self, side: int) -> bool:
        """Say whether any span of the call holds a value on this side (0 input, 1 output), usable or not."""
        return any(seen.reading.said[side] for seen in self.sightings)

    def has_failed(self) -> bool:
        """Say whether the call came to a bad or an early end, after which nobody can be expected to count."""
        return any(dialect_of(seen.span).outcome(seen.span) != "ok" for seen in self.sightings)


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """Model calls: those that have one span all for themselves, nearly always all of them, and the others.

    Of a ``single`` one nothing is kept, it is made of its span when it is asked for: what a long run would keep of
    its calls is what the garbage collector would walk through.
    """

    single: Sequence[Span]
    joined: Sequence[Call]

    def __len__(self) -> int:
        return len(self.single) + len(self.joined)

    def __iter__(self) -> Iterator[Call]:
        yield from self.joined
        for span in self.single:
            yield single_call(span)


def single_call(span: Span) -> Call:
    """Make the call that one span alone tells of."""
    reading = reading_of(span)
    return Call((Sighting(span, reading),), reading.counted)


def calls_of(run: Run) -> Calls:
    """Return the model calls of ``run``, each once.

    Spans record one call if one generation is nested in the other with no tool and no agent between them, if they
    share a response id, or if they have one span id. A generation around several calls is none itself: its retries
    are. Ids that one instrumentation gives to answers of different sizes are made up and prove nothing.
    """
    generations, twins = run.of_role("generation"), run.twins
    if twins:
        generations = run.walk([span for span in generations if span not in twins])
    seen: dict[Span, Sighting] = {}
    for inner, outer in nested(run, generations, "generation", _ENDS_STACK):
        nest(_sighting(seen, inner), _sighting(seen, outer))
    for stray, host in _claimed(run, generations):
        nest(_sighting(seen, stray), _sighting(seen, host))
    for same in run.walk(_with_one_answer(generations)):
        join_answers([_sighting(seen, span) for span in same])
    if not seen:
        return Calls(generations, ())
    single = run.walk([span for span in generations if span not in seen])
    sightings = run.walk([seen[span] for span in generations if span in seen])
    joined = [Call(group, _merged_tokens(group)) for group in run.walk(grouped(sightings))]
    return Calls(single, run.walk(joined))


def _sighting(seen: dict[Span, Sighting], span: Span) -> Sighting:
    if span not in seen:
        seen[span] = Sighting(span, reading_of(span))
    return seen[span]


def _claimed(run: Run, generations: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
    """Yield the generations in trees of their own that another one holds, with that one."""
    claimed = set(run.claimed)
    for stray in [span for span in generations if span in claimed] if claimed else ():
        host = next((host for host in generations if _holds(host, stray)), None)
        if host is not None:
            yield stray, host


def _holds(host: Span, stray: Span) -> bool:
    """Say whether a generation in a tree of its own lies in the time of ``host`` and used the same."""
    if host.trace_id == stray.trace_id or host.end_ns is None or stray.end_ns is None:
        return False
    if host.start_ns > stray.start_ns or stray.end_ns > host.end_ns:
        return False
    used = reading_of(stray).recorded
    return None not in used and reading_of(host).recorded == used


def _with_one_answer(generations: Iterable[Span]) -> list[list[Span]]:
    """Return the spans that share a response id, by that."""
    first: dict[str, Span] = {}
    shared: dict[str, list[Span]] = {}
    for span in generations:
        answer = dialect_of(span).response_id(span)
        if answer is not None and first.setdefault(answer, span) is not span:
            shared.setdefault(answer, [first[answer]]).append(span)
    return list(shared.values())


def _merged_tokens(group: Sequence[Sighting]) -> Tokens:
    """Return what the call used, side by side: the innermost spans that know a side tell it.

    Two spans at one depth that differ saw the call to different ends; the larger count saw more of it.
    """
    return _deepest(group, 0), _deepest(group, 1)


def _deepest(group: Sequence[Sighting], side: int) -> int | None:
    known = [(seen.depth, count) for seen in group if (count := seen.reading.counted[side]) is not None]
    return max(known)[1] if known else None
