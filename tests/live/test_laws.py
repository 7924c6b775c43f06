"""Two laws that hold whatever a program does: no span is lost in silence, and no run leaves in part."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, get_args

import pytest
from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from spangate import _release
from tests.live.gated import Above, Gated, What, context_of, local, remote

WHATS: list[What] = list(get_args(What))


class FewIds(IdGenerator):
    """Gives ids that come again and again, as in a program that seeds its random numbers."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def generate_trace_id(self) -> int:
        return self._chance.randint(1, 3)

    def generate_span_id(self) -> int:
        return self._chance.randint(1, 9)


class Program:
    """Starts and ends spans at random: nested, late, lost, orphaned and leaked. Each has a name of its own."""

    def __init__(self, gated: Gated, chance: random.Random, name: str = "") -> None:
        self.gated = gated
        self.chance = chance
        self.name = name
        self.started: list[Span] = []
        self.open: list[Span] = []

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        dice = self.chance.random()
        if dice < 0.5 or not self.open:
            self.start()
        elif dice < 0.96:
            self.open.pop(self.chance.randrange(len(self.open))).end()
        elif dice < 0.98:
            self.gated.flush(0.02)
        else:
            self.gated.nudge()

    def start(self) -> None:
        name = f"{self.name}{len(self.started)}"
        span = self.gated.start(self.chance.choice(WHATS), name, under=self.above())
        self.started.append(span)
        self.open.append(span)

    def above(self) -> Above:
        dice = self.chance.random()
        if not self.started or dice < 0.2:
            return None
        near = self.started[-8:] if dice < 0.8 else self.started
        known = self.chance.choice(self.open or near) if dice < 0.5 else self.chance.choice(near)
        if dice < 0.93:
            return known
        trace_id = context_of(known).trace_id
        return self.chance.choice([remote(trace_id), local(trace_id), local(trace_id, sampled=False)])

    def end_all(self) -> None:
        while self.open:
            self.open.pop().end()


def check(gated: Gated, programs: list[Program]) -> None:
    left = check_spans(gated, programs)
    assert gated.gate.losses.keys() <= {"after_shutdown"}
    of_run = Counter((span.attributes or {}).get("spangate.run_id") for span in gated.exported if span.name in left)
    for verdict in gated.verdicts:
        if verdict.verdict == "fail":
            assert of_run[verdict.run_id] == 0, verdict
        else:
            assert of_run[verdict.run_id] >= verdict.totals.spans_ended, verdict


def check_spans(gated: Gated, programs: list[Program], *, lost_verdicts: int = 0) -> Counter[str]:
    """Make sure that each span is accounted for once. Returns those that have left."""
    started = {span.name for program in programs for span in program.started}
    left = Counter(name for name in gated.names if name in started)
    assert all(times == 1 for times in left.values()), [name for name, times in left.items() if times > 1]
    losses = gated.gate.losses
    lost = sum(losses.values()) - lost_verdicts
    assert len(left) + gated.gate._telemetry.withheld + lost == len(started), (left, losses)
    return left


SETTINGS: list[dict[str, Any]] = [
    {},
    {"settle_s": 0.0, "grace_s": 0.0},
    {"settle_s": 0.001, "grace_s": 0.001, "claim_strays": False},
    {"settle_s": 0.001, "grace_s": 0.05, "unit": "agent"},
    {"settle_s": 0.001, "grace_s": 0.001, "max_run_spans": 5},
    {"settle_s": 0.001, "grace_s": 0.001, "gates": ()},
    {"settle_s": 0.001, "grace_s": 0.001, "idle_timeout_s": 0.001, "max_run_age_s": 0.002, "gates": ()},
]


def gated_with(ids: IdGenerator, **settings: Any) -> Gated:
    return Gated(provider={"id_generator": ids, "sampler": ALWAYS_ON}, **settings)


@pytest.mark.parametrize("few_ids", [False, True], ids=["ids of its own", "ids that repeat"])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: ",".join(settings) or "default")
@pytest.mark.parametrize("seed", range(3))
def test_every_span_is_exported_withheld_or_counted_as_lost(
    seed: int,
    settings: dict[str, Any],
    few_ids: bool,  # noqa: FBT001  a column
) -> None:
    chance = random.Random(seed)  # noqa: S311  a test that repeats
    gated = gated_with(FewIds(chance) if few_ids else RandomIdGenerator(), **settings)
    program = Program(gated, chance)
    program.run(300)
    if chance.random() < 0.5:
        program.end_all()
        gated.flush()
    gated.shutdown()
    program.end_all()
    check(gated, [program])


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: ",".join(settings) or "default")
def test_so_it_is_when_many_threads_share_the_gate(settings: dict[str, Any]) -> None:
    gated = gated_with(RandomIdGenerator(), **settings)
    programs = [Program(gated, random.Random(number), f"{number}.") for number in range(6)]  # noqa: S311  it repeats
    in_threads([lambda program=program: program.run(200) for program in programs])  # type: ignore[misc]
    gated.shutdown()
    for program in programs:
        program.end_all()
    check(gated, programs)


class Picky(InMemorySpanExporter):
    """Refuses whatever comes with a span whose number ends in 7."""

    def __init__(self) -> None:
        super().__init__()
        self.offered: set[int] = set()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.offered.update(context_of(span).span_id for span in spans if is_verdict(span))
        if any(span.name.endswith("7") and not is_verdict(span) for span in spans):
            return SpanExportResult.FAILURE
        return super().export(spans)


def is_verdict(span: ReadableSpan) -> bool:
    return span.name.startswith(("refused ", "passed "))


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: ",".join(settings) or "default")
def test_so_it_is_when_the_exporter_refuses_some(settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.0)
    monkeypatch.setattr(_release, "CHUNK_SPANS", 3)
    exporter = Picky()
    gated = gated_with(RandomIdGenerator(), exporter=exporter, **settings)
    program = Program(gated, random.Random(1))  # noqa: S311  it repeats
    program.run(300)
    gated.shutdown()
    program.end_all()
    told = {context_of(span).span_id: span.attributes or {} for span in gated.exported if is_verdict(span)}
    left = check_spans(gated, [program], lost_verdicts=len(exporter.offered - told.keys()))
    whole = {(span.attributes or {}).get("spangate.run_id") for span in gated.exported if has_verdict(span)}
    partial = {one["spangate.run_id"] for one in told.values() if "export.partial" in one["spangate.findings"]}  # type: ignore[operator]
    for span in gated.exported:
        run_id = (span.attributes or {}).get("spangate.run_id")
        if span.name in left and run_id is not None:
            assert run_id in whole | partial or len(exporter.offered) > len(told)


def has_verdict(span: ReadableSpan) -> bool:
    return "spangate.verdict" in (span.attributes or {})


def in_threads(tasks: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
