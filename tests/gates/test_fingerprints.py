"""Fingerprints: model calls whose model or prompt nobody knows, and agents without any model call."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from spangate import default_gates, judge
from spangate._fingerprint.known import READ, READ_OTHERS
from spangate._pinned import pinned_model, with_environment
from spangate._records import Event, Span
from spangate._usage import count
from spangate.gates import Fingerprints, Forest
from tests.spans import run_of, span

CHAT = {"gen_ai.operation.name": "chat"}
MODEL = {"gen_ai.request.model": "m"}
HI = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": "hi"}]}])}
HELD_BACK = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text"}]}])}
NAN = {"gen_ai.input.messages": '[{"role": "user", "content": "hi", "weight": NaN}]'}
NAN_GAP = "attributes: it holds NaN, infinity or itself, which JSON does not have"
MANY = 5 * (READ + READ_OTHERS)
STAMPED = {"fingerprint.source": "wire", "fingerprint.missing_model": "false", "prompt.hash": "0" * 16}
UNREAD = {"fingerprint.gap": "wire: the body that was sent is not JSON"}


def agent() -> Span:
    return span("agent", end=100.0)


def call(parent: Span, *attributes: Mapping[str, Any], **fields: Any) -> Span:
    known = {key: value for part in (CHAT, *attributes) for key, value in part.items()}
    return span("generation", parent=parent, attributes=known, **fields)


def run(*calls: Sequence[Mapping[str, Any]]) -> list[Span]:
    root = agent()
    return [root, *(call(root, *parts, start=number, end=number + 0.5) for number, parts in enumerate(calls))]


def stacked(outer: Sequence[Mapping[str, Any]], inner: Sequence[Mapping[str, Any]]) -> list[Span]:
    root = agent()
    above = call(root, *outer)
    return [root, above, call(above, *inner)]


FINDS = [
    pytest.param(run([HI]), {}, ("missing_model", 1, "in 1 of 1 model call no model is named"), id="no model"),
    pytest.param(
        run([MODEL, HI], [HI], [HI, {"gen_ai.request.model": ""}]),
        {},
        ("missing_model", 2, "in 2 of 3 model calls no model is named"),
        id="one finding with a count, on the first",
    ),
    pytest.param(
        run([MODEL]),
        {},
        ("missing_prompt", 1, "in 1 of 1 model call the prompt has no hash: no messages are recorded"),
        id="no prompt",
    ),
    pytest.param(
        run([MODEL, HI], [MODEL, HELD_BACK]),
        {},
        ("missing_prompt", 2, "in 1 of 2 model calls the prompt has no hash: no messages are recorded"),
        id="words that were held back",
    ),
    pytest.param(
        run([MODEL, NAN]),
        {},
        (
            "missing_prompt",
            1,
            f"in 1 of 1 model call the prompt has no hash: {NAN_GAP}",
        ),
        id="NaN",
    ),
    pytest.param(
        run([MODEL, UNREAD]),
        {},
        (
            "missing_prompt",
            1,
            "in 1 of 1 model call the prompt has no hash: wire: the body that was sent is not JSON",
        ),
        id="a reason that a source gave",
    ),
    pytest.param(
        stacked([HI], []), {}, ("missing_model", 2, "in 1 of 1 model call no model is named"), id="stacked spans"
    ),
    pytest.param([agent()], {}, ("no_generations", 0, "an agent, and no model call of it in the trace"), id="no calls"),
    pytest.param(
        run([HI]),
        {"model_from_config": "pinned"},
        ("model_from_config", 1, "in 1 of 1 model call the model is declared, not observed"),
        id="a pin that was needed",
    ),
    pytest.param(
        run([{**STAMPED, "fingerprint.model_source": "config"}]),
        {},
        ("model_from_config", 1, "in 1 of 1 model call the model is declared, not observed"),
        id="a pin that was stamped",
    ),
]

STAYS_SILENT = [
    pytest.param(run([MODEL, HI]), {}, id="both known"),
    pytest.param(run([STAMPED]), {}, id="stamped from another source, nothing recorded"),
    pytest.param(run([MODEL, HI]), {"model_from_config": "pinned"}, id="a pin that nobody needed"),
    pytest.param(run([MODEL, HI, UNREAD]), {}, id="one source knows what another does not"),
    pytest.param(stacked([HI], [MODEL]), {}, id="spans of one call know it together"),
    pytest.param(stacked([], [STAMPED]), {}, id="only the inner span is stamped"),
    pytest.param([span("workflow"), span("tool")], {}, id="no agent, so nobody misses a model call"),
    pytest.param(
        [
            root := agent(),
            call(root, MODEL, events=[Event("gen_ai.user.message", {"content": "hi"})]),
        ],
        {},
        id="messages in events",
    ),
]


@pytest.mark.parametrize("required", [False, True], ids=["by default", "required"])
@pytest.mark.parametrize(("spans", "settings", "found"), FINDS)
def test_finds(spans: list[Span], settings: dict[str, Any], found: tuple[str, int, str], *, required: bool) -> None:
    gate = Fingerprints(required=required, **settings)
    what, place, detail = found
    findings = [finding for finding in gate(run_of(spans)) if finding.level != "not_evaluable"]
    level = "fail" if required else None
    assert [(one.code, one.span, one.detail, one.level) for one in findings] == [
        (f"fingerprints.{what}", spans[place], detail, level)
    ]
    assert judge(run_of(spans), [gate]).verdict == ("fail" if required else "pass")


@pytest.mark.parametrize(("spans", "settings"), STAYS_SILENT)
def test_stays_silent(spans: list[Span], settings: dict[str, Any]) -> None:
    findings = Fingerprints(required=True, **settings)(run_of(spans))
    assert [finding for finding in findings if finding.level != "not_evaluable"] == []


@pytest.mark.parametrize("spans", [[agent()], [span("workflow"), span("tool")]], ids=["an agent", "a workflow"])
def test_without_model_calls_there_is_nothing_to_compare(spans: list[Span]) -> None:
    verdict = judge(run_of(spans), [Fingerprints()])
    assert verdict.gates["fingerprints"] == "not_evaluable"
    assert [gap.detail for gap in verdict.gaps] == ["the run has no generation spans"]


def test_in_a_long_run_a_call_that_records_less_than_the_others_is_found_all_the_same() -> None:
    calls: list[list[dict[str, str]]] = [[MODEL, HI]] * MANY + [[HI]] + [[MODEL, HI]] * MANY
    found = [finding.detail for finding in Fingerprints()(run_of(run(*calls)))]
    assert found == [f"in 1 of {2 * MANY + 1} model calls no model is named"]


def test_it_does_not_read_every_prompt_of_a_long_run() -> None:
    root = agent()
    long = {"gen_ai.input.messages": json.dumps([{"role": "user", "content": "word " * 20_000}])}
    few, many = (run_of([root, *(call(root, MODEL, long) for _ in range(size))]) for size in (READ, MANY))

    def seconds(of: Any) -> float:
        count(of)  # which every gate shares
        start = time.thread_time()
        assert list(Fingerprints()(of)) == []
        return time.thread_time() - start

    seconds(few)
    assert seconds(many) < MANY / READ / 10 * seconds(few)


@pytest.mark.parametrize("wrong", ["", 3, b"m", "m\ud83e"])
def test_a_model_that_is_no_name_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"model_from_config is .*: write the name of a model"):
        Fingerprints(model_from_config=wrong)


def test_the_environment_pins_a_model_where_the_gate_has_none() -> None:
    gates = with_environment(default_gates(), {"AGENT_MODEL_ID": " by-environment "})
    assert pinned_model(gates) == "by-environment"
    assert pinned_model(with_environment(default_gates(), {"AGENT_MODEL_ID": ""})) is None
    named = with_environment([Forest(), Fingerprints(model_from_config="named")], {"AGENT_MODEL_ID": "other"})
    assert pinned_model(named) == "named"
    assert pinned_model([Forest()]) is None
