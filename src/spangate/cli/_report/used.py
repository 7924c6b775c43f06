"""What a run used and where its time went, as bars: against a ceiling where one is set, else beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spangate._records import Gate, Verdict
from spangate._run import Run
from spangate._timing import Times, times
from spangate._units import counted, duration
from spangate._usage import Usage, count
from spangate._usage.sums import Sum
from spangate._verdict.levels import split
from spangate.cli._report.texts import Texts
from spangate.cli._report.tree import MAX_HOLES
from spangate.cli._timing_report import between, longest
from spangate.gates.budget import Budget
from spangate.gates.timing import Timing


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: what it measures, in words how much that is, how full it is (0 to 1; None: no bar), and what is not known.

    ``is_over`` says that a ceiling is exceeded.
    """

    what: str
    words: str
    fraction: float | None = None
    is_over: bool = False
    gap: str = ""


@dataclass(frozen=True, slots=True)
class Clock:
    """Where the time of a run went. ``blind`` says why that cannot be told; everything else is empty then."""

    blind: str = ""
    wall: str = ""
    parts: Sequence[Bar] = ()
    roles: Sequence[Bar] = ()
    holes: Sequence[str] = ()
    hole_count: str = ""
    left_out: Sequence[str] = ()


def budget_bars(run: Run, gates: Iterable[Gate], texts: Texts) -> list[Bar]:
    """Return a bar for each ceiling on the run, and a line without a bar for each total that has none."""
    budget = next((gate for gate in split(gates)[1] if isinstance(gate, Budget)), Budget())
    usage = count(run)
    ceilings = budget.ceilings(run)
    bars = [_against(texts.name(what), limit, used) for what, limit, used, _ in ceilings]
    named = {ceiling.what for ceiling in ceilings}
    return bars + [bar for what, bar in _totals(usage) if what not in named]


def _against(what: str, limit: float, used: Sum[int] | Sum[float]) -> Bar:
    known = used.known
    share = f", {known / limit:.0%} of it" if limit and known else ""
    floor = "at least " if used.gap else ""
    is_known = known or not used.gap
    words = f"{floor}{_number(known)} of {_number(limit)} allowed{share}" if is_known else f"{_number(limit)} allowed"
    return Bar(what, words, min(1.0, known / limit) if limit else float(known > 0), known > limit, used.gap)


def _totals(usage: Usage) -> Iterator[tuple[str, Bar]]:
    sums = (
        ("input tokens", usage.input),
        ("output tokens", usage.output),
        ("tool payload bytes", usage.payload),
    )
    for what, used in sums:
        floor = f"at least {_number(used.known)}" if used.known else "not known"
        yield what, Bar(what, floor if used.gap else _number(used.known), gap=used.gap)
    yield "model calls", Bar("model calls", _number(len(usage.calls)), gap=usage.unseen)
    yield "tool calls", Bar("tool calls", _number(len(usage.invocations)))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4f}".rstrip("0").rstrip(".")


def clock_of(run: Run, gates: Iterable[Gate], texts: Texts) -> Clock:
    """Return where the time of the run went."""
    account = run.remember(times)
    if account.blind:
        return Clock(account.blind)
    shown = longest(account.holes, MAX_HOLES)
    return Clock(
        wall=duration(account.wall_ns),
        parts=[*_parts(account, gates)],
        roles=[*_roles(account)],
        holes=[f"{duration(hole.length_ns)} {texts.name(between(hole))}" for hole in shown],
        hole_count=_hole_count(len(account.holes), len(shown)),
        left_out=[f"{texts.name(span.name)}: {why}" for span, why in account.left_out[:MAX_HOLES]],
    )


def _hole_count(holes: int, shown: int) -> str:
    count = f"{holes:,} untraced stretch{'' if holes == 1 else 'es'}"
    return count if holes == shown else f"{count}, the {shown:,} longest of them"


def _parts(account: Times, gates: Iterable[Gate]) -> Iterator[Bar]:
    wall = account.wall_ns or 1
    covered = duration(account.covered_ns)
    yield Bar("Covered by model calls, tools and programs", covered, account.covered_ns / wall)
    fraction = account.untraced_fraction
    most = next((gate.max_untraced_fraction for gate in gates if isinstance(gate, Timing)), None)
    allowed = "" if most is None else f", {most:.0%} allowed"
    words = f"{duration(account.untraced_ns)}, {fraction:.1%} of the run{allowed}"
    yield Bar("Untraced", words, fraction, most is not None and fraction > most)


def _roles(account: Times) -> Iterator[Bar]:
    most = max(account.by_role.values(), default=0) or 1
    for role, taken in sorted(account.by_role.items(), key=lambda item: -item[1]):
        yield Bar(role, duration(taken), taken / most)


def size_of(verdict: Verdict) -> str:
    """Say how many spans a run has, and how many of them ended."""
    totals = verdict.totals
    some = "" if totals.spans_ended == totals.spans_started else f", {totals.spans_ended:,} of them ended"
    return counted(totals.spans_started, "span") + some
