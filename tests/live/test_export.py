"""What leaves: a released run whole and stamped, a refused one as its verdict span; what the gate says of itself."""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode

from spangate import _telemetry
from spangate._release.tries import TRIES
from spangate._repeatable import NEW_YEAR_NS, CountingIds
from spangate._verdict.account import verdict_span_id
from spangate.gates import Budget, Cardinality, Completeness, Forest
from tests.live.gated import LOOKS, Gated, Probe, context_of, remote

HALF = "half an emoji \ud83e"
SECOND = 1_000_000_000
USED = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3}


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spangate._release.tries.BACKOFF_S", 0.0)


def encoded(spans: Iterable[ReadableSpan]) -> list[Any]:
    """Encode spans as OTLP exporters do."""
    request = encode_spans(list(spans))
    request.SerializeToString()
    return [span for of in request.resource_spans for within in of.scope_spans for span in within.spans]


# A run that passes


def test_a_released_run_leaves_whole_with_its_root_last() -> None:
    gated = Gated(exporter=Probe())
    with gated.open("agent") as agent:
        for number in range(1200):
            gated.ended("tool", f"tool {number}", under=agent)
    assert gated.flush()
    assert isinstance(gated.memory, Probe)
    left = [span for chunk in gated.memory.calls for span in chunk]
    assert [span.name for span in left] == [*(f"tool {number}" for number in range(1200)), "agent"]
    assert [len(chunk) for chunk in gated.memory.calls] == [512, 512, 177]


def test_every_released_span_names_its_run() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        gated.ended("other", under=agent)
        gated.ended("generation", under=agent)
    assert gated.flush()
    run_id = gated.verdicts[0].run_id
    assert [(span.attributes or {})["spangate.run_id"] for span in gated.exported] == [run_id] * 3


def test_the_root_of_a_released_run_bears_its_verdict() -> None:
    gated = Gated(gates=(Completeness(), Forest(), Budget()))
    with gated.open("agent", attributes={"mine": 1}) as agent:
        tool = gated.start("tool", "search", under=agent)
        used = {"gen_ai.usage.input_tokens": 12, "gen_ai.usage.output_tokens": 3}
        gated.ended("generation", under=agent, attributes=used)
    tool.end()
    assert gated.flush()
    found = {key: value for key, value in gated.attributes("agent").items() if key.startswith("spangate.")}
    details = found.pop("spangate.details")
    assert len(details) == 1
    assert details[0].startswith(f"completeness.outlived_root | search | {context_of(tool).span_id:016x} | ")
    assert len(found.pop("spangate.policy")) == 12
    assert found == {
        "spangate.verdict": "pass",
        "spangate.run_id": gated.verdicts[0].run_id,
        "spangate.run_name": "agent",
        "spangate.trigger": "force_flush",
        "spangate.findings": [],
        "spangate.warnings": ["completeness.outlived_root"],
        "spangate.gates": ["completeness=pass", "forest=pass", "budget=pass", "encoding=pass"],
        "spangate.spans_started": 3,
        "spangate.spans_ended": 3,
        "spangate.spans_withheld": 0,
        "spangate.input_tokens": 12,
        "spangate.output_tokens": 3,
    }
    assert gated.attributes("agent")["mine"] == 1


@pytest.mark.parametrize(
    ("what", "start", "stamps"),
    [
        ("tool", {}, ["spangate.invocation_id"]),
        ("process", {}, ["spangate.invocation_id"]),
        (
            "generation",
            {"gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]'},
            ["prompt.hash", "fingerprint.tuple", "fingerprint.source", "fingerprint.missing_model"],
        ),
    ],
)
def test_stamps_are_there_though_the_sdk_evicted_them(what: Any, start: dict[str, Any], stamps: Sequence[str]) -> None:
    gated = Gated()
    with gated.open("agent") as agent, gated.open(what, "full", under=agent, attributes=start) as full:
        for number in range(SpanLimits().max_span_attributes or 0):
            full.set_attribute(f"mine.{number}", number)
        if what == "process":
            full.set_attribute("process.exit.code", 0)  # known when it has ended
    assert gated.flush()
    found = gated.attributes("full")
    assert set(stamps) <= set(found)
    assert found["mine.127"] == 127
    assert found["spangate.run_id"] == gated.verdicts[0].run_id


@pytest.mark.parametrize(("more", "told"), [(127, "pass"), (128, "fail cardinality.attributes_dropped")])
def test_a_stamp_that_the_sdk_evicted_is_no_loss_but_what_else_went_with_it_is(more: int, told: str) -> None:
    gated = Gated(gates=(Cardinality(),))
    with gated.open("agent") as agent, gated.open("tool", under=agent) as tool:
        tool.set_attributes(LOOKS["tool"])  # again, so that the stamp is the oldest
        for number in range(more):
            tool.set_attribute(f"mine.{number}", number)
    assert gated.flush()
    assert gated.told == {"agent": told}


def test_an_agent_is_known_for_one_though_the_sdk_evicted_what_it_said() -> None:
    gated = Gated()
    with gated.open("agent", "talkative") as agent:
        for number in range(SpanLimits().max_span_attributes or 0):
            agent.set_attribute(f"llm.input_messages.{number}.message.content", "hi")
    assert gated.flush()
    assert gated.told == {"talkative": "pass"}
    assert "gen_ai.operation.name" not in gated.attributes("talkative")
    assert gated.one("talkative").dropped_attributes == 1


def test_counts_of_what_was_dropped_stay_true() -> None:
    limits = SpanLimits(max_span_attributes=4, max_events=1, max_links=1)
    gated = Gated(provider={"span_limits": limits})
    link = Link(SpanContext(1, 2, is_remote=False))
    with gated.open("agent", links=[link, link, link]) as agent:
        for number in range(9):
            agent.set_attribute(f"mine.{number}", number)
            agent.add_event("event")
    assert gated.flush()
    left = gated.one("agent")
    assert (left.dropped_attributes, left.dropped_events, left.dropped_links) == (6, 8, 2)
    (written,) = encoded([left])
    assert (written.dropped_attributes_count, written.dropped_events_count, written.dropped_links_count) == (6, 8, 2)


def test_what_a_user_wrote_is_never_overwritten() -> None:
    mine = {
        "spangate.run_id": "mine",
        "spangate.verdict": "mine",
        "spangate.invocation_id": "mine",
        "prompt.hash": "mine",
    }
    gated = Gated()
    with gated.open("agent", attributes=mine) as agent:
        gated.ended("tool", under=agent, attributes=mine)
        gated.ended("generation", under=agent, attributes=mine)
    assert gated.flush()
    for span in gated.exported:
        assert {**(span.attributes or {}), **mine} == span.attributes


def test_a_released_span_is_as_it_was_but_for_its_stamps() -> None:
    gated = Gated()
    with gated.open("agent"), gated.open("agent", "copy") as copy:
        copy.add_event("event", {"k": [1, 2]})
        copy.add_link(SpanContext(1, 2, is_remote=False), {"k": "v"})
        copy.set_status(Status(StatusCode.ERROR, "why"))
    assert gated.flush()
    left, live = gated.one("copy"), copy
    for field in ("name", "context", "parent", "kind", "start_time", "end_time", "events", "links", "resource"):
        assert getattr(left, field) == getattr(live, field), field
    assert left.status.description == "why"
    assert left.instrumentation_scope == live.instrumentation_scope


def test_a_released_span_writes_itself_with_its_stamps() -> None:
    gated = Gated()
    with gated.open("agent", attributes={"mine": b"\xff", "odd": float("inf")}) as agent:
        agent.add_event("event", {"k": "v"})
    assert gated.flush()
    written = json.loads(gated.one("agent").to_json())
    assert written["name"] == "agent"
    assert written["attributes"]["spangate.verdict"] == "pass"
    assert written["events"][0]["name"] == "event"
    assert written["events"][0]["attributes"] == {"k": "v"}
    assert gated.one("agent").to_json(indent=None).count("\n") == 0


# Exporters that do not take everything


def refuses(calls: Callable[[int], bool]) -> Probe:
    return Probe(lambda call, _spans: SpanExportResult.FAILURE if calls(call) else None)


def test_a_chunk_that_is_refused_once_is_offered_again() -> None:
    probe = refuses(lambda call: call == 1)
    gated = Gated(exporter=probe)
    gated.ended("agent")
    assert gated.flush()
    assert [[span.name for span in spans] for spans in probe.calls] == [["agent"], ["agent"]]
    assert gated.gate.losses == {}


def test_a_chunk_that_is_finally_refused_stops_the_rest_and_a_verdict_says_so(caplog: pytest.LogCaptureFixture) -> None:
    probe = refuses(lambda call: 1 < call <= 1 + TRIES)
    gated = Gated(exporter=probe)
    with gated.open("agent") as agent:
        for number in range(1500):
            gated.ended("tool", f"tool {number}", under=agent)
    assert not gated.flush()
    accepted = [probe.calls[0], *probe.calls[1 + TRIES :]]
    assert [len(spans) for spans in accepted] == [512, 1]
    assert "agent" not in [span.name for spans in probe.calls for span in spans]
    ((verdict,),) = accepted[1:]
    told: Mapping[str, Any] = verdict.attributes or {}
    assert verdict.name == "refused agent"
    assert told["spangate.verdict"] == "fail"
    assert told["spangate.findings"] == ["export.partial"]
    assert "512 of 1501" in told["spangate.details"][0]
    assert told["spangate.run_id"] == gated.verdicts[0].run_id
    assert gated.gate.losses == {"refused": 989}
    assert [record.message for record in caplog.records if "lost" in record.message] == [
        "989 spans lost so far: the exporter refused them (reason 'refused')"
    ]


def test_a_dead_exporter_loses_nothing_silently(caplog: pytest.LogCaptureFixture) -> None:
    gated = Gated(exporter=refuses(lambda _call: True))
    for _ in range(20):
        gated.ended("agent")
        gated.ended("other")
    assert not gated.flush()
    assert gated.gate.losses == {"refused": 60}  # twenty runs, their verdicts, twenty spans beside them
    assert len([record for record in caplog.records if "lost" in record.message]) <= 7


def test_an_exporter_that_raises_is_tried_again_and_named(caplog: pytest.LogCaptureFixture) -> None:
    def breaks(_call: int, _spans: Sequence[ReadableSpan]) -> SpanExportResult:
        raise PermissionError("no route")

    probe = Probe(breaks)
    gated = Gated(exporter=probe)
    gated.ended("other")
    assert not gated.flush()
    assert len(probe.calls) == TRIES
    assert gated.gate.losses == {"raised PermissionError": 1}
    told = "1 span lost so far: the exporter raised PermissionError (reason 'raised PermissionError')"
    assert told in [record.message for record in caplog.records]


def test_a_span_that_no_exporter_can_write_costs_its_own_run_only() -> None:
    def chokes(_call: int, spans: Sequence[ReadableSpan]) -> None:
        if any(span.name == "poison" for span in spans):
            raise ValueError("cannot write this")

    probe = Probe(chokes)
    gated = Gated(exporter=probe, settle_s=3600.0)
    for name in ("good", "poison", "better"):
        gated.ended("agent", name)
    assert not gated.flush()
    assert gated.gate.losses == {"raised ValueError": 1}
    arrived = [span.name for spans in probe.calls for span in spans if all(one.name != "poison" for one in spans)]
    assert sorted(arrived) == ["better", "good", "refused poison"]


def test_the_exporter_is_never_called_twice_at_once() -> None:
    probe = Probe()
    gated = Gated(exporter=probe, settle_s=0.0)

    def agents() -> None:
        for _ in range(40):
            with gated.open("agent") as agent:
                gated.ended("tool", under=agent)
            gated.ended("other")
            gated.flush()

    threads = [threading.Thread(target=agents) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gated.shutdown()
    assert probe.overlaps == 0
    left = [context_of(span).span_id for spans in probe.calls for span in spans]
    assert len(left) == len(set(left)) == 4 * 40 * 3


# A run that fails


def refused(**more: Any) -> Gated:
    gated = Gated(
        gates=(Completeness(), Forest(), Budget(max_input_tokens=10)),
        provider={"id_generator": CountingIds()},
        **more,
    )
    gated.gate._placer._random = random.Random(0)  # noqa: S311  ids that repeat
    agent = gated.start("agent", "invoke_agent cook", under=remote(), start_time=NEW_YEAR_NS)
    used = {**USED, "gen_ai.usage.input_tokens": 12}
    chat = gated.start("generation", "chat", under=agent, attributes=used, start_time=NEW_YEAR_NS + SECOND)
    chat.end(NEW_YEAR_NS + 2 * SECOND)
    leaked = gated.start("tool", "search", under=agent, start_time=NEW_YEAR_NS + 3 * SECOND)
    agent.end(NEW_YEAR_NS + 4 * SECOND)
    assert gated.flush()
    leaked.end()
    return gated


def test_a_refused_run_leaves_one_verdict_span_and_nothing_else() -> None:
    gated = refused()
    (span,) = gated.exported
    attributes: dict[str, Any] = dict(span.attributes or {})
    run_id = "629f6fbed82c07cd"
    leaked, over = attributes["spangate.details"]
    assert leaked.startswith("completeness.open_span | search | 0000000000000003 | ")
    assert over.startswith("budget.ceiling | invoke_agent cook | 0000000000000001 | ")
    said = "; ".join(f"{finding.code}: {finding.detail}" for finding in gated.verdicts[0].failures)
    assert attributes == {
        "spangate.verdict": "fail",
        "spangate.run_id": run_id,
        "spangate.run_name": "invoke_agent cook",
        "spangate.trigger": "root_end",
        "spangate.findings": ["budget.ceiling", "completeness.open_span"],
        "spangate.warnings": [],
        "spangate.details": attributes["spangate.details"],
        "spangate.gates": ["completeness=fail", "forest=pass", "budget=fail", "encoding=pass"],
        "spangate.cluster": attributes["spangate.cluster"],
        "spangate.spans_started": 3,
        "spangate.spans_ended": 2,
        "spangate.spans_withheld": 2,
        "spangate.input_tokens": 12,
        "spangate.output_tokens": 3,
        "spangate.policy": gated.verdicts[0].policy,
        "openinference.span.kind": "GUARDRAIL",
        "input.value": "invoke_agent cook",
        "output.value": f"fail: {said}",
    }
    assert len(attributes["spangate.cluster"]) == 12
    (event,) = span.events
    assert (event.name, dict(event.attributes or {}), event.timestamp) == (
        "gen_ai.evaluation.result",
        {
            "gen_ai.evaluation.name": "spangate",
            "gen_ai.evaluation.score.label": "fail",
            "gen_ai.evaluation.explanation": said,
        },
        NEW_YEAR_NS + 4 * SECOND,
    )
    (link,) = span.links
    assert (link.context.trace_id, link.context.span_id) == (0xFEED, 1)
    scope, parent = span.instrumentation_scope, span.parent
    assert scope is not None
    assert parent is not None
    assert {
        "name": span.name,
        "trace id": context_of(span).trace_id,
        "span id": context_of(span).span_id,
        "sampled": bool(context_of(span).trace_flags.sampled),
        "parent": (parent.span_id, parent.is_remote),
        "kind": span.kind,
        "status": (span.status.status_code, span.status.description),
        "start": span.start_time,
        "end": span.end_time,
        "scope": scope.name,
        "resource": dict(span.resource.attributes),
    } == {
        "name": "refused invoke_agent cook",
        "trace id": 0xFEED,
        "span id": verdict_span_id(run_id, 0),
        "sampled": True,
        "parent": (0xBEEF, True),
        "kind": SpanKind.INTERNAL,
        "status": (StatusCode.ERROR, said.partition("; ")[0]),
        "start": NEW_YEAR_NS,
        "end": NEW_YEAR_NS + 4 * SECOND,
        "scope": "spangate",
        "resource": {"service.name": "test"},
    }


def test_a_verdict_span_is_the_same_whenever_it_is_sent() -> None:
    first, second = refused(), refused()
    assert context_of(first.exported[0]) == context_of(second.exported[0])


def test_the_verdict_of_a_root_without_a_parent_is_the_root_of_its_trace() -> None:
    gated = Gated()
    agent = gated.start("agent")
    gated.shutdown()
    assert gated.one("refused agent").parent is None
    agent.end()


def test_a_verdict_span_can_be_sent() -> None:
    (written,) = encoded(refused().exported)
    assert written.name == "refused invoke_agent cook"
    assert {attribute.key for attribute in written.attributes} >= {"spangate.verdict", "spangate.details"}
    assert written.events[0].name == "gen_ai.evaluation.result"


def test_details_are_bounded() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        leaked = [gated.start("tool", f"tool {number} {'x' * 4096}", under=agent) for number in range(40)]
    gated.until(lambda: gated.told)
    assert gated.flush()
    details = gated.attributes("refused agent")["spangate.details"]
    assert len(details) == 32
    assert max(map(len, details)) <= 1024
    assert len(gated.verdicts[0].findings) == 40
    for span in leaked:
        span.end()


# Values that no encoder takes


def name(value: Any) -> Callable[[Span], None]:
    return lambda span: span.update_name(value)


def status(value: Any) -> Callable[[Span], None]:
    return lambda span: span.set_status(Status(StatusCode.ERROR, value))


def event(value: Any = "event", at: Any = None) -> Callable[[Span], None]:
    return lambda span: span.add_event(value, timestamp=at)


def attribute(value: Any, key: str = "k") -> Callable[[Span], None]:
    return lambda span: span.set_attribute(key, value)


def end(at: Any) -> Callable[[Span], None]:
    return lambda span: span.end(at)


def nothing(_span: Span) -> None:
    pass


BAD_TIMES = [1.5, 1e18, -3, 1 << 70, float("nan"), float("inf"), "now", True]
HOSTILE = [
    pytest.param({}, name(HALF), id="name"),
    pytest.param({}, name(7), id="name that is none"),
    pytest.param({}, status(HALF), id="status"),
    pytest.param({}, event(HALF), id="event name"),
    pytest.param({}, event(7), id="event name that is none"),
    pytest.param({}, attribute(HALF), id="value"),
    pytest.param({}, attribute("v", HALF), id="key"),
    pytest.param({}, attribute(float("nan")), id="NaN"),
    pytest.param({}, attribute(1 << 70), id="huge number"),
    pytest.param({}, attribute({"a": [None, b"\xff", {"b": HALF}]}), id="nested value"),
    pytest.param({"scope": HALF}, nothing, id="scope"),
    pytest.param({"scope": 7}, nothing, id="scope that is none"),
    pytest.param({"kind": "server"}, nothing, id="kind that is none"),
    pytest.param({"kind": None}, nothing, id="no kind"),
    pytest.param({"links": [Link(SpanContext(1, 2, is_remote=False), {"k": HALF})]}, nothing, id="link"),
    *(pytest.param({"start_time": time}, nothing, id=f"starts at {time}") for time in BAD_TIMES),
    *(pytest.param({}, end(time), id=f"ends at {time}") for time in BAD_TIMES),
    *(pytest.param({}, event(at=time), id=f"event at {time}") for time in BAD_TIMES),
]


def with_hostile(gated: Gated, start: Mapping[str, Any], act: Callable[[Span], None]) -> None:
    """Play an agent that is fine but for one span."""
    with gated.open("agent") as agent:
        gated.ended("tool", "before", under=agent)
        hostile = gated.start("generation", "hostile", under=agent, **start)
        act(hostile)
        if hostile.is_recording():
            hostile.end()
        gated.ended("tool", "after", under=agent)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("start", "act"), HOSTILE)
def test_one_odd_span_costs_no_other_its_export(
    start: Mapping[str, Any], act: Callable[[Span], None], caplog: pytest.LogCaptureFixture
) -> None:
    gated = Gated(gates=())
    with_hostile(gated, start, act)
    assert gated.flush()
    assert len(gated.exported) == 4
    caplog.clear()
    left = encoded(gated.exported)
    assert len(left) == 4
    assert {span.name for span in left} >= {"before", "after", "agent"}
    for span in gated.exported:
        json.loads(span.to_json())


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("start", "act"), HOSTILE)
def test_the_verdict_of_an_odd_root_can_be_sent(start: Mapping[str, Any], act: Callable[[Span], None]) -> None:
    gated = Gated()
    root = gated.start("agent", "hostile", **start)
    leaked = gated.start("tool", f"leaked {HALF}", under=root)
    act(root)
    if root.is_recording():
        root.end()
    gated.until(lambda: gated.told)
    assert gated.flush()
    (verdict,) = encoded(gated.exported)
    assert verdict.name.startswith("refused ")
    assert verdict.start_time_unix_nano <= verdict.end_time_unix_nano
    leaked.end()


def test_an_odd_span_that_passes_without_a_verdict_can_be_sent_too() -> None:
    gated = Gated()
    gated.ended("other", HALF)
    assert gated.flush()
    (left,) = encoded(gated.exported)
    assert left.name == "half an emoji ?"


# Dry run, and runs that were not sampled


def test_a_dry_run_exports_everything_and_refuses_nothing() -> None:
    gated = refused(dry_run=True)
    gated.until(lambda: len(gated.names) == 4)
    assert sorted(gated.names) == ["chat", "invoke_agent cook", "refused invoke_agent cook", "search"]
    assert gated.attributes("invoke_agent cook")["spangate.verdict"] == "fail"
    assert gated.attributes("refused invoke_agent cook")["spangate.spans_withheld"] == 0
    assert [verdict.verdict for verdict in gated.verdicts] == ["fail"]
    assert gated.gate._telemetry.withheld == 0


class RecordOnly(Sampler):
    def should_sample(self, *_asked: Any, attributes: Any = None, **_more: Any) -> SamplingResult:
        return SamplingResult(Decision.RECORD_ONLY, attributes)

    def get_description(self) -> str:
        return "records, samples nothing"


@pytest.mark.parametrize("leaks", [False, True])
def test_a_run_that_was_not_sampled_is_judged_and_exported_by_nobody(leaks: bool) -> None:  # noqa: FBT001  a column
    gated = Gated(provider={"sampler": RecordOnly()})
    with gated.open("agent", attributes=LOOKS["agent"]) as agent:
        agent.set_attributes(LOOKS["agent"])
        leaked = gated.start("tool", under=agent)
        if not leaks:
            leaked.end()
    gated.until(lambda: gated.told)
    assert gated.flush()
    assert gated.told == {
        "agent": "fail completeness.open_span (export.unsampled_run)" if leaks else "pass (export.unsampled_run)"
    }
    assert gated.names == []
    assert gated.gate.losses == {}
    leaked.end()


# What the gate says of itself


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> Iterable[InMemoryMetricReader]:
    found = InMemoryMetricReader()
    provider = MeterProvider([found], shutdown_on_exit=False)
    monkeypatch.setattr(_telemetry, "get_meter", provider.get_meter)
    yield found
    provider.shutdown()


def measured(reader: InMemoryMetricReader) -> dict[str, dict[str, float]]:
    """Return each metric's values by their attributes."""
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: {_described(point): _value(point) for point in metric.data.data_points}
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def _described(point: Any) -> str:
    return " ".join(str(value) for _, value in sorted((point.attributes or {}).items()))


def _value(point: Any) -> float:
    value: float = point.value if hasattr(point, "value") else point.count
    return value


def test_metrics_tell_what_became_of_every_span(reader: InMemoryMetricReader) -> None:
    gated = refused()
    with gated.open("agent", "good") as good:
        gated.ended("generation", under=good, attributes=USED)
    gated.ended("other")
    assert gated.flush()
    live = gated.start("agent", "live")
    assert measured(reader) == {
        "spangate.runs": {"root_end fail": 1, "force_flush pass": 1},
        "spangate.findings": {"completeness.open_span fail": 1, "budget.ceiling fail": 1},
        "spangate.spans.withheld": {"": 3},
        "spangate.spans.released": {"": 3},
        "spangate.judge.duration": {"": 2},
        "spangate.spans.held": {"": 1},
    }
    live.end()


def test_metrics_tell_of_losses_by_their_reason(reader: InMemoryMetricReader) -> None:
    gated = Gated(exporter=refuses(lambda _call: True))
    gated.ended("other")
    assert not gated.flush()
    assert measured(reader)["spangate.spans.lost"] == {"refused": 1}


def test_without_a_meter_provider_nothing_is_measured() -> None:
    assert type(metrics.get_meter_provider()).__name__ != "MeterProvider"
    assert refused().told


def test_one_log_line_tells_of_a_refused_run(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "spangate"):
        gated = refused()
        with gated.open("agent", "good") as good:
            gated.ended("generation", under=good, attributes=USED)
        assert gated.flush()
    (line,) = [record.message for record in caplog.records if record.name == "spangate"]
    assert line.startswith("fail: invoke_agent cook")
    assert "completeness.open_span" in line
    assert "\n" not in line


def test_the_callback_gets_the_whole_verdict() -> None:
    gated = refused()
    (verdict,) = gated.verdicts
    assert (verdict.verdict, verdict.run_id, verdict.spans_withheld) == ("fail", "629f6fbed82c07cd", 2)
    assert verdict.root.name == "invoke_agent cook"
