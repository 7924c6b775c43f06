"""``spangate.generation``: what the program itself says of its next model call, and which span gets it."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.trace import Tracer

import spangate
from spangate._canonical import canonical_hash
from spangate.gates import Fingerprints
from spangate.testing import GatedProvider

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
AGENT = {"gen_ai.operation.name": "invoke_agent"}
HASH = "prompt.text_hash"


def text_hash(user: str, system: str = "") -> str:
    return canonical_hash({"system": system, "user": user})


@pytest.fixture
def provider() -> Iterator[GatedProvider]:
    with GatedProvider() as provider:
        yield provider


@pytest.fixture
def tracer(provider: GatedProvider) -> Tracer:
    return provider.get_tracer("app")


@contextmanager
def agent(tracer: Tracer) -> Iterator[None]:
    with tracer.start_as_current_span("invoke_agent", attributes=AGENT):
        yield


def call(tracer: Tracer, name: str = "chat", **more: Any) -> None:
    with tracer.start_as_current_span(name, attributes={**CHAT, **more}):
        pass


def hashes(provider: GatedProvider) -> dict[str, Any]:
    """Return the hash of the text on each released span that has one."""
    provider.assert_released()
    known = {span.name: (span.attributes or {}).get(HASH) for span in provider.released}
    return {name: value for name, value in known.items() if value is not None}


def attributes(provider: GatedProvider, name: str = "chat") -> dict[str, Any]:
    provider.assert_released()
    return next(dict(span.attributes or {}) for span in provider.released if span.name == name)


def test_the_next_call_gets_it_and_no_other(provider: GatedProvider, tracer: Tracer) -> None:
    with agent(tracer):
        call(tracer, "before")
        with spangate.generation(system="s", user="u", tools=[], temperature=0, seed=7):
            call(tracer)
            call(tracer, "after")
        call(tracer, "outside")
    assert hashes(provider) == {"chat": text_hash("u", "s")}
    known = attributes(provider)
    assert known["fingerprint.source"] == "explicit"
    assert known["prompt.hash"] == canonical_hash({"system": "s", "user": "u", "tools": []})
    assert known["tool.schema_hash"] == canonical_hash([])
    assert known["gen_ai.request.temperature"] == 0.0
    assert known["gen_ai.request.model"] == "m"
    assert known["fingerprint.missing_model"] == "false"
    assert known["fingerprint.params_hash"] == canonical_hash({"seed": 7})


def test_it_is_on_the_live_span_from_its_start(tracer: Tracer) -> None:
    with agent(tracer), spangate.generation(user="u"), tracer.start_as_current_span("chat", attributes=CHAT) as live:
        known: Any = live
        assert known.attributes[HASH] == text_hash("u")


def test_the_call_may_be_the_root(provider: GatedProvider, tracer: Tracer) -> None:
    with spangate.generation(user="u"):
        call(tracer)
    assert hashes(provider) == {"chat": text_hash("u")}


def test_the_agent_may_start_inside(provider: GatedProvider, tracer: Tracer) -> None:
    with spangate.generation(user="u"), agent(tracer), tracer.start_as_current_span("node"):
        call(tracer)
    assert hashes(provider) == {"chat": text_hash("u")}


def test_messages_are_the_whole_list(provider: GatedProvider, tracer: Tracer) -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    with spangate.generation(messages=messages):
        call(tracer)
    assert hashes(provider) == {"chat": canonical_hash({"system": "", "user": messages})}


def test_the_innermost_block_speaks_and_those_around_it_are_spent(provider: GatedProvider, tracer: Tracer) -> None:
    with agent(tracer), spangate.generation(user="outer"):
        with spangate.generation(user="inner"):
            call(tracer)
            call(tracer, "second")
        call(tracer, "third")
    assert hashes(provider) == {"chat": text_hash("inner")}


def test_an_inner_block_without_a_call_leaves_the_outer_one_its_own(provider: GatedProvider, tracer: Tracer) -> None:
    with agent(tracer), spangate.generation(user="outer"):
        with pytest.warns(RuntimeWarning, match="no model call"), spangate.generation(user="inner"):
            pass
        call(tracer)
    assert hashes(provider) == {"chat": text_hash("outer")}


def test_tasks_each_have_their_own(provider: GatedProvider, tracer: Tracer) -> None:
    async def one(name: str) -> None:
        with spangate.generation(user=name):
            await asyncio.sleep(0)
            call(tracer, name)

    async def both() -> None:
        with agent(tracer):
            await asyncio.gather(one("a"), one("b"))

    asyncio.run(both())
    assert hashes(provider) == {"a": text_hash("a"), "b": text_hash("b")}


def test_a_task_started_inside_makes_the_call(provider: GatedProvider, tracer: Tracer) -> None:
    async def late() -> None:
        await asyncio.sleep(0)
        call(tracer)

    async def main() -> None:
        with agent(tracer), spangate.generation(user="u"):
            await asyncio.create_task(late())

    asyncio.run(main())
    assert hashes(provider) == {"chat": text_hash("u")}


def test_a_task_that_outlives_the_block_gets_nothing(provider: GatedProvider, tracer: Tracer) -> None:
    async def late(go_on: asyncio.Event) -> None:
        await go_on.wait()
        call(tracer)

    async def main() -> None:
        go_on = asyncio.Event()
        with agent(tracer):
            with pytest.warns(RuntimeWarning, match="no model call"), spangate.generation(user="u"):
                task = asyncio.create_task(late(go_on))
            go_on.set()
            await task

    asyncio.run(main())
    assert hashes(provider) == {}


def test_of_threads_with_a_copied_context_one_call_gets_it(provider: GatedProvider, tracer: Tracer) -> None:
    with agent(tracer), ThreadPoolExecutor(8) as pool, spangate.generation(user="u"):
        started = [pool.submit(contextvars.copy_context().run, call, tracer, f"chat {number}") for number in range(32)]
        for one in started:
            one.result()
    assert list(hashes(provider).values()) == [text_hash("u")]


def test_a_thread_of_another_context_knows_nothing_of_it(provider: GatedProvider, tracer: Tracer) -> None:
    with agent(tracer), ThreadPoolExecutor(1) as pool, spangate.generation(user="u"):
        pool.submit(call, tracer, "elsewhere").result()
        call(tracer)
    assert hashes(provider) == {"chat": text_hash("u")}


def test_a_span_that_says_only_at_its_end_what_it_is_gets_it_when_released(
    provider: GatedProvider, tracer: Tracer
) -> None:
    langchain = provider.get_tracer("openinference.instrumentation.langchain")
    with agent(tracer), spangate.generation(user="u"), langchain.start_as_current_span("chain") as chain:
        for name in ("first", "second"):
            with langchain.start_as_current_span(name) as model:
                started: Any = model
                assert HASH not in started.attributes
                model.set_attribute("openinference.span.kind", "LLM")
        chain.set_attribute("openinference.span.kind", "CHAIN")
    assert hashes(provider) == {"first": text_hash("u")}
    assert attributes(provider, "first")["fingerprint.source"] == "explicit"


def test_a_span_that_is_a_call_by_its_scope_gets_it_at_once(provider: GatedProvider) -> None:
    tracer = provider.get_tracer("openinference.instrumentation.openai")
    with spangate.generation(user="u"), tracer.start_as_current_span("ChatCompletion") as live:
        started: Any = live
        assert started.attributes[HASH] == text_hash("u")
        live.set_attribute("openinference.span.kind", "LLM")
    assert hashes(provider) == {"ChatCompletion": text_hash("u")}


def test_a_span_outside_the_context_is_found_by_its_parent(provider: GatedProvider) -> None:
    """Some instrumentations do not make their spans current, so the block cannot know in which tree it stands."""
    tracer = provider.get_tracer("openinference.instrumentation.langchain")
    root = tracer.start_span("chain", attributes={"openinference.span.kind": "CHAIN"})
    inside = trace.set_span_in_context(root)
    tracer.start_span("tool", inside, attributes={"openinference.span.kind": "TOOL"}).end()
    with spangate.generation(user="u"):
        tracer.start_span("model", inside, attributes={"openinference.span.kind": "LLM"}).end()
    root.end()
    assert hashes(provider) == {"model": text_hash("u")}


def test_the_span_completes_what_the_program_left_out(provider: GatedProvider, tracer: Tracer) -> None:
    """The model and temperature that a span records by its end count, and are in its tuple."""
    for block in (spangate.generation(user="u"), spangate.generation(user="u", model="m", temperature=0.5)):
        with block, tracer.start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}) as span:
            span.set_attributes({"gen_ai.request.model": "m", "gen_ai.request.temperature": 0.5})
    provider.assert_released()
    first, second = (dict(span.attributes or {}) for span in provider.released)
    assert first["fingerprint.missing_model"] == "false"
    assert first["fingerprint.tuple"] == second["fingerprint.tuple"]


def test_a_prompt_that_is_on_the_span_from_the_start_is_better(provider: GatedProvider, tracer: Tracer) -> None:
    with agent(tracer), spangate.generation(user="said"):
        call(tracer, **{"gen_ai.input.messages": '[{"role": "user", "content": "started"}]'})
    assert hashes(provider) == {"chat": text_hash("started")}
    assert attributes(provider)["fingerprint.source"] == "start"


def test_it_is_better_than_what_the_span_records_later(provider: GatedProvider, tracer: Tracer) -> None:
    with spangate.generation(user="said"), tracer.start_as_current_span("chat", attributes=CHAT) as span:
        span.set_attribute("gen_ai.input.messages", '[{"role": "user", "content": "recorded"}]')
    assert hashes(provider) == {"chat": text_hash("said")}


def test_an_attribute_of_the_program_stays(provider: GatedProvider, tracer: Tracer) -> None:
    with agent(tracer), spangate.generation(user="u", model="other"):
        call(tracer, **{"prompt.hash": "mine"})
    known = attributes(provider)
    assert known["prompt.hash"] == "mine"
    assert known["gen_ai.request.model"] == "m"


def test_stamps_that_later_attributes_pushed_out_are_put_back(provider: GatedProvider, tracer: Tracer) -> None:
    with spangate.generation(user="u"), tracer.start_as_current_span("chat", attributes=CHAT) as span:
        span.set_attributes({f"key {number}": number for number in range(128)})
    provider.assert_refused("cardinality.attributes_dropped")
    (finding,) = provider.verdicts[0].failures
    assert "2 attributes" in finding.detail  # its own, not the stamps


@pytest.mark.parametrize("ends_with", [None, KeyError])
def test_a_block_without_a_call_says_so_unless_an_exception_ends_it(
    ends_with: type[Exception] | None, tracer: Tracer
) -> None:
    with warnings.catch_warnings(record=True) as told, agent(tracer):
        warnings.simplefilter("always")
        try:
            with spangate.generation(user="u"):
                if ends_with is not None:
                    raise ends_with
        except KeyError:
            pass
    assert [one.category for one in told] == ([] if ends_with else [RuntimeWarning])
    assert [one.filename for one in told] == ([] if ends_with else [__file__])


ALONE = """
import spangate
from opentelemetry.sdk.trace import TracerProvider

with spangate.generation(user="u"):
    TracerProvider().get_tracer("app").start_span("chat", attributes={"gen_ai.operation.name": "chat"}).end()
with spangate.generation(user="u"):
    pass
print("nothing")
"""


def test_without_a_gate_it_does_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "nothing\n"), done.stderr


def test_a_block_is_entered_once(provider: GatedProvider, tracer: Tracer) -> None:  # noqa: ARG001  there is a gate
    block = spangate.generation(user="u")
    with block:
        call(tracer)
    with pytest.raises(RuntimeError, match="entered before"), block:
        pass


@pytest.mark.parametrize("given_", [{}, {"user": "u", "messages": []}, {"system": "s"}])
def test_it_wants_one_prompt(given_: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"either user=.* or messages="):
        spangate.generation(**given_)


HOSTILE = {
    "NaN": (float("nan"), "NaN"),
    "bytes": (b"u", "bytes, a set"),
    "a set": ({"u"}, "bytes, a set"),
}


@pytest.mark.parametrize(("user", "why"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_not_json_gives_a_reason_and_no_hash(user: Any, why: str, provider: GatedProvider) -> None:
    tracer = provider.get_tracer("app")
    with agent(tracer), spangate.generation(messages=[{"role": "user", "content": ["x", user]}]):
        call(tracer)
    assert hashes(provider) == {}
    (told,) = [finding for finding in provider.verdicts[0].warnings if finding.code == "fingerprints.missing_prompt"]
    assert "explicit: it holds" in told.detail
    assert why in told.detail
    assert attributes(provider)["fingerprint.gap"] in told.detail


def test_half_an_emoji_and_ten_megabytes_have_hashes(provider: GatedProvider, tracer: Tracer) -> None:
    for name, user in (("half", "\ud83e"), ("long", "x" * (10 << 20))):
        with spangate.generation(user=user):
            call(tracer, name)
    assert hashes(provider) == {"half": text_hash("\ud83e"), "long": text_hash("x" * (10 << 20))}


def test_a_required_prompt_that_nobody_knows_refuses_the_run() -> None:
    with GatedProvider([Fingerprints(required=True)]) as provider:
        tracer = provider.get_tracer("app")
        with agent(tracer):
            with spangate.generation(user="u"):
                call(tracer)
            call(tracer)
    provider.assert_refused("fingerprints.missing_prompt")


@given(st.lists(st.sampled_from(["in", "out", "call", "chain"]), max_size=12))
def test_every_block_stamps_at_most_one_span(steps: list[str]) -> None:
    with GatedProvider() as provider, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tracer = provider.get_tracer("app")
        blocks: list[spangate.generation] = []
        with agent(tracer):
            for number, step in enumerate(steps):
                if step == "in":
                    blocks.append(spangate.generation(user=str(number)))
                    blocks[-1].__enter__()
                elif step == "out" and blocks:
                    blocks.pop().__exit__(None, None, None)
                elif step == "call":
                    call(tracer, f"chat {number}")
                elif step == "chain":
                    tracer.start_span(f"chain {number}").end()
            while blocks:
                blocks.pop().__exit__(None, None, None)
    stamped = list(hashes(provider).values())
    assert len(stamped) == len({*stamped})
