"""``compact=``: what leaves by a real provider, with and without a side store; judging sees everything as before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import Status, StatusCode

from spangate import Finding, GateSpanProcessor, Run, default_gates
from spangate.archive import SideStore
from spangate.testing import GatedProvider

AGENT: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent"}
CHAT: dict[str, Any] = {
    "gen_ai.operation.name": "chat",
    "gen_ai.usage.input_tokens": 3,
    "gen_ai.usage.output_tokens": 1,
}
TOOL: dict[str, Any] = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
SECRET = "the secret of Oslo"  # noqa: S105  what must not leave
MESSAGES = '[{"role": "user", "parts": [{"type": "text", "content": "the secret of Oslo"}]}]'


def cook(provider: GatedProvider, answer: str = '{"rows": 1}') -> None:
    tracer = provider.get_tracer("kitchen")
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        tracer.start_span("chat m", attributes={**CHAT, "gen_ai.input.messages": MESSAGES}).end()
        with tracer.start_as_current_span("execute_tool search", attributes=TOOL) as tool:
            tool.set_attributes({"gen_ai.tool.call.arguments": f'"{SECRET}"', "gen_ai.tool.call.result": answer})
        with tracer.start_as_current_span("execute_tool search", attributes=TOOL) as tool:
            tool.record_exception(ValueError(SECRET))
            tool.set_status(Status(StatusCode.ERROR, f"ValueError: {SECRET}"))
        tracer.start_span("chat m", attributes={**CHAT, "gen_ai.input.messages": MESSAGES}).end()


def burn(provider: GatedProvider) -> None:
    """Run an agent whose last act is a failure that nothing above admits."""
    tracer = provider.get_tracer("kitchen")
    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        tracer.start_span("chat m", attributes=CHAT).end()
        tool = tracer.start_span("execute_tool search", attributes={**TOOL, "gen_ai.tool.call.arguments": SECRET})
        tool.record_exception(ValueError(SECRET))
        tool.set_status(Status(StatusCode.ERROR, SECRET))
        tool.end()


def text_of(spans: Sequence[ReadableSpan]) -> str:
    return "".join(span.to_json() for span in spans)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def root_of(provider: GatedProvider) -> dict[str, Any]:
    return attributes(provider.released[-1])


def test_no_payload_leaves_and_the_itinerary_does() -> None:
    with GatedProvider() as plain, GatedProvider(compact=True) as compact:
        cook(plain)
        cook(compact)
    plain.assert_released()
    compact.assert_released()
    assert SECRET in text_of(plain.released)
    assert SECRET not in text_of(compact.released)
    for whole, form in zip(plain.released, compact.released, strict=True):
        for field in ("name", "context", "parent", "start_time", "end_time", "kind", "links", "resource"):
            assert getattr(form, field) == getattr(whole, field)
        assert form.status.status_code is whole.status.status_code
        kept = {key: value for key, value in attributes(whole).items() if key in attributes(form)}
        gone = {*attributes(whole)} - {*kept}
        assert gone <= {"gen_ai.input.messages", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}
        told = {key: value for key, value in kept.items() if key != "spangate.details"}
        assert told.items() <= attributes(form).items()


def test_fingerprints_are_made_from_the_request_before_it_goes() -> None:
    with GatedProvider() as plain, GatedProvider(compact=True) as compact:
        cook(plain)
        cook(compact)
    hashes = [[attributes(span).get("prompt.hash") for span in one.released] for one in (plain, compact)]
    assert hashes[0] == hashes[1]
    assert sum(known is not None for known in hashes[0]) == 2


def test_gates_and_callback_see_everything() -> None:
    seen: list[str] = []

    def house(run: Run) -> Iterator[Finding]:
        seen.extend(str(span.attributes.get("gen_ai.tool.call.arguments")) for span in run.of_role("tool"))
        yield from ()

    with GatedProvider([*default_gates(), house], compact=True) as provider:
        cook(provider)
    assert seen == [f'"{SECRET}"', "None"]
    [verdict] = provider.verdicts
    warning = verdict.warnings[0]
    assert warning.span is not None
    assert SECRET in warning.span.status_description


@pytest.mark.parametrize("error_type", ["", "timeout"])
def test_the_root_repeats_no_message_of_an_error(error_type: str) -> None:
    with GatedProvider(compact=True) as provider:
        tracer = provider.get_tracer("kitchen")
        with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
            with tracer.start_as_current_span("execute_tool search", attributes=TOOL) as tool:
                tool.set_attribute("error.type", error_type)
                tool.set_status(Status(StatusCode.ERROR, SECRET))
            tracer.start_span("chat m", attributes=CHAT).end()
    [verdict] = provider.verdicts
    said = f"failed ({error_type or SECRET}); 'chat m' (0000000000000003) went on after it"
    assert verdict.warnings[0].detail == said
    detail = root_of(provider)["spangate.details"][0]
    assert detail.rpartition(" | ")[2] == (said if error_type else "")
    assert SECRET not in text_of(provider.released)


def test_a_refused_run_leaves_the_verdict_that_it_always_left() -> None:
    def told(**settings: Any) -> dict[str, Any]:
        with GatedProvider(**settings) as provider:
            burn(provider)
        [verdict] = provider.refused
        assert provider.released == ()
        return attributes(verdict)

    assert told(compact=True) == told()


def test_a_dry_run_leaves_compact_too() -> None:
    with GatedProvider(compact=True, dry_run=True) as provider:
        burn(provider)
    assert [verdict.verdict for verdict in provider.verdicts] == ["fail"]
    assert len(provider.released) == 3
    assert SECRET not in text_of(provider.released)


def test_what_passes_without_a_verdict_is_compact_too() -> None:
    with GatedProvider(compact=True) as provider:
        tracer = provider.get_tracer("shop")
        with tracer.start_as_current_span("GET /", attributes={"http.route": "/", "content": "mine"}):
            tracer.start_span("embed", attributes={"input.value": SECRET}).end()
    assert provider.verdicts == ()
    by_name = {span.name: attributes(span) for span in provider.released}
    assert "input.value" not in by_name["embed"]
    assert by_name["GET /"] == {"http.route": "/", "content": "mine"}


def test_the_hashes_of_two_runs_tell_data_from_contract() -> None:
    def hashes(answer: str) -> tuple[str, str]:
        with GatedProvider(compact=True) as provider:
            cook(provider, answer)
        root = root_of(provider)
        return root["spangate.tree_hash"], root["spangate.tree_schema_hash"]

    first, again = hashes('{"rows": 1, "ts": 1}'), hashes('{"ts": 2, "rows": 1}')
    data, drift = hashes('{"rows": 2, "ts": 1}'), hashes('{"rows": "1", "ts": 1}')
    assert first == again
    assert first[0] != data[0]
    assert first[1] == data[1]
    assert first[1] != drift[1]


def test_a_run_that_leaves_whole_tells_no_hashes() -> None:
    with GatedProvider() as provider:
        cook(provider)
    assert "spangate.tree_hash" not in root_of(provider)


def test_raw_payloads_are_found_in_the_side_store(tmp_path: Path) -> None:
    store = SideStore(tmp_path / "payloads")
    with GatedProvider(compact=store) as provider:
        cook(provider)
    chat = attributes(provider.released[0])
    assert store.get(chat["spangate.payload_raw_sha256.gen_ai.input.messages"]) == MESSAGES.encode()
    assert SECRET not in text_of(provider.released)
    failed = provider.released[2]
    [raised] = failed.events
    stack = store.get(str((raised.attributes or {})["spangate.payload_raw_sha256.exception.stacktrace"]))
    assert stack is not None
    assert b"ValueError" in stack


def test_a_store_that_fails_costs_no_run(tmp_path: Path) -> None:
    store = SideStore(tmp_path / "payloads")
    (tmp_path / "payloads").rmdir()
    with GatedProvider(compact=store) as provider:
        cook(provider)
    provider.assert_released()
    assert len(provider.released) == 5
    assert store.errors == 7


def test_refused_runs_are_not_stored(tmp_path: Path) -> None:
    with GatedProvider(compact=SideStore(tmp_path / "payloads")) as provider:
        burn(provider)
    provider.assert_refused()
    assert [*(tmp_path / "payloads").iterdir()] == []


@pytest.mark.parametrize("wrong", ["payloads", 1, None, Path("payloads"), SideStore])
def test_a_setting_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"compact=.*: this may be True, False, or a SideStore"):
        GateSpanProcessor([GatedProvider()._exporter], compact=wrong)
