"""What an instrumentation of the openai client can and cannot see, and what the gate makes of it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from typing import Final

import pytest
from openai import APITimeoutError
from opentelemetry.trace import INVALID_SPAN, Span, Tracer

from tests.frameworks import openai_agent
from tests.frameworks.clients import client_of
from tests.frameworks.gated import Account, Gated, passed
from tests.frameworks.openai_agent import (
    GENAI,
    GENAI_WITH_CONTENT,
    MODEL,
    OPENINFERENCE,
    SLOW_MODEL,
    TRACINGS,
    Asked,
    Tracing,
    handler,
)
from tests.frameworks.scenes import TWO_CITIES, rain
from tests.model_server import USAGE, ModelServer, Usage, fails, says

every_tracing = pytest.mark.parametrize("tracing", TRACINGS.values(), ids=TRACINGS.keys())

TWICE: Final = (2 * USAGE.input, 2 * USAGE.output)
ONE_TOOL_MISSING: Final = Account("fail", ("completeness.cited_tool_missing",), (), TWICE)


@pytest.mark.parametrize(
    ("tracing", "account"),
    [
        pytest.param(GENAI, passed(TWICE), id="genai"),  # no messages, so no evidence
        pytest.param(GENAI_WITH_CONTENT, ONE_TOOL_MISSING, id="genai+content"),
        pytest.param(OPENINFERENCE, ONE_TOOL_MISSING, id="openinference"),
    ],
)
def test_a_tool_that_ran_without_a_span_is_missed_where_the_messages_are_recorded(
    tracing: Tracing, account: Account, gated: Gated
) -> None:
    def only_paris(tracer: Tracer, asked: Asked) -> AbstractContextManager[Span]:
        return tracing.tool_span(tracer, asked) if "Paris" in asked.arguments else nullcontext(INVALID_SPAN)

    with openai_agent.agent(gated, {"model-a": TWO_CITIES}, tracing=replace(tracing, tool_span=only_paris)) as run:
        run("model-a", rain)
    assert (gated.released() if account.verdict == "pass" else gated.refused()) == account


@every_tracing
def test_a_call_without_a_program_around_it_is_a_run_of_its_own(tracing: Tracing, gated: Gated) -> None:
    with (
        ModelServer({MODEL: [says("Yes."), says("No.")]}) as server,
        client_of(server.url) as client,
        tracing.instrumented(gated.provider),
    ):
        for _ in range(2):
            client.chat.completions.create(model=MODEL, messages=[])
    assert gated.released_runs() == [passed(USAGE[:2])] * 2


@every_tracing
def test_what_the_client_retries_by_itself_is_one_call(tracing: Tracing, gated: Gated) -> None:
    answers = fails(429, retry_after_s=0.01), fails(500, retry_after_s=0.01), says("Yes.")
    with handler(gated, tracing, *answers, max_retries=2) as client:
        client.chat.completions.create(model=MODEL, messages=[])
    assert gated.released() == passed(USAGE[:2])
    assert len(gated.ended) == 2


@every_tracing
def test_a_call_that_timed_out_and_was_made_again_is_a_warning(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing, says("Yes.")) as client:
        with suppress(APITimeoutError):
            client.chat.completions.create(model=SLOW_MODEL, messages=[], timeout=0.1)
        client.chat.completions.create(model=MODEL, messages=[])
    assert gated.released() == passed(None, "budget.lower_bound", "completeness.recovered_error")


@every_tracing
def test_a_call_that_timed_out_at_last_refuses_a_run_whose_root_keeps_silent(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing) as client, suppress(APITimeoutError):
        client.chat.completions.create(model=SLOW_MODEL, messages=[], timeout=0.1)
    assert gated.refused() == Account("fail", ("completeness.unrecovered_error",), ("budget.lower_bound",))


@every_tracing
def test_cached_and_reasoning_tokens_are_inside_the_sums(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing, says("Yes.", usage=Usage(100, 20, cached=64, reasoning=5))) as client:
        client.chat.completions.create(model=MODEL, messages=[])
    assert gated.released() == passed((100, 20))


@every_tracing
def test_an_answer_that_does_not_say_what_it_used_is_released_with_no_sum(tracing: Tracing, gated: Gated) -> None:
    with handler(gated, tracing, says("Yes.", usage=None)) as client:
        client.chat.completions.create(model=MODEL, messages=[])
    assert gated.released() == passed(None, "budget.usage_missing")
