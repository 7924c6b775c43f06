"""Which spans make a run, rule by rule, as a program's spans start and end under a real provider."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from opentelemetry.context import attach, detach
from opentelemetry.sdk.trace import Span, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, set_span_in_context

from spangate._buffer.memory import Memory
from tests.live.gated import LONG, LOOKS, Gated, What, link_to, local, remote, started, trace_of

CLIENT = "openinference.instrumentation.openai"
"""A scope whose spans are model calls, whatever they say of themselves."""


# Rule 1: no span with an agent role


@pytest.mark.parametrize("what", ["other", "process", "setup", "transport", "entry"])
def test_a_tree_without_an_agent_role_passes_at_once_untouched_and_without_a_verdict(what: What) -> None:
    gated = Gated(settle_s=LONG, grace_s=LONG)
    with gated.open(what, "root") as root:
        gated.ended("other", "below", under=root)
    gated.until_left("root", "below")
    assert gated.told == {}
    assert not any(key.startswith("spangate.") for key in gated.attributes("root"))


def test_what_is_still_open_in_such_a_tree_passes_when_it_ends() -> None:
    gated = Gated(settle_s=LONG, grace_s=LONG)
    with gated.open("other", "root") as root:
        late = gated.start("other", "late", under=root)
    gated.until_left("root")
    late.end()
    gated.until_left("root", "late")


def test_a_leaked_model_call_with_nothing_on_it_still_makes_a_run() -> None:
    gated = Gated()
    with gated.open("other", "job") as job:
        leaked = gated.start("other", "ChatCompletion", under=job, scope=CLIENT)
    gated.until(lambda: gated.told)
    assert gated.told == {"job": "fail completeness.open_span"}
    leaked.end()


# Rule 2: below a request


def test_two_agents_behind_one_request_are_two_runs_and_the_rest_passes() -> None:
    gated = Gated()
    with gated.open("entry", "POST /") as entry:
        with gated.open("other", "auth", under=entry) as middleware:
            for name in ("one", "two"):
                with gated.open("agent", name, under=middleware) as agent:
                    gated.ended("tool", f"tool of {name}", under=agent)
        gated.ended("other", "query", under=entry)
    assert gated.flush()
    assert gated.told == {"one": "pass", "two": "pass"}
    assert gated.attributes("one")["spangate.run_id"] != gated.attributes("two")["spangate.run_id"]
    for name in ("one", "two"):
        assert gated.attributes(f"tool of {name}")["spangate.run_id"] == gated.attributes(name)["spangate.run_id"]
    for outside in ("POST /", "auth", "query"):
        assert not any(key.startswith("spangate.") for key in gated.attributes(outside))


def test_a_refused_agent_takes_neither_the_request_nor_its_neighbour_along() -> None:
    gated = Gated()
    with gated.open("entry", "POST /") as entry:
        with gated.open("agent", "bad", under=entry) as bad:
            leaked = gated.start("tool", "leaked", under=bad)
        gated.ended("agent", "good", under=entry)
    gated.until(lambda: len(gated.told) == 2)
    assert gated.flush()
    assert gated.told == {"bad": "fail completeness.open_span", "good": "pass"}
    assert sorted(gated.names) == ["POST /", "good", "refused bad"]
    leaked.end()


def test_an_agent_below_a_request_is_released_before_the_request_ends() -> None:
    gated = Gated()
    with gated.open("entry", "POST /") as entry:
        with gated.open("agent", under=entry) as agent:
            gated.ended("tool", under=agent)
        gated.until_left("tool", "agent")
        assert gated.names[-1] == "agent"
    gated.until_left("tool", "agent", "POST /")


def test_a_streaming_request_may_end_before_its_agent() -> None:
    gated = Gated(grace_s=0.0)
    entry = gated.start("entry", "POST /")
    agent = gated.start("agent", under=entry)
    entry.end()
    gated.until_left("POST /")
    for name in ("one", "two"):
        gated.ended("tool", name, under=agent)
        assert gated.flush()
    assert gated.told == {}
    agent.end()
    gated.until_left("POST /", "one", "two", "agent")
    assert gated.told == {"agent": "pass"}


def test_an_agent_below_a_request_has_a_grace_of_its_own() -> None:
    gated = Gated(settle_s=0.0, grace_s=LONG)
    with gated.open("entry", "POST /") as entry:
        agent = gated.start("agent", under=entry)
        tool = gated.start("tool", under=agent)
        agent.end()
    gated.until_left("POST /")
    tool.end()
    gated.until_left("POST /", "tool", "agent")
    assert gated.told == {"agent": "pass (completeness.outlived_root)"}


def test_model_and_tool_calls_directly_below_a_request_form_one_run_anchored_there() -> None:
    gated = Gated()
    with gated.open("entry", "POST /chat") as entry:
        with gated.open("other", "auth", under=entry) as auth:
            gated.ended("generation", "chat 1", under=auth)
        gated.ended("tool", under=entry)
        gated.ended("generation", "chat 2", under=entry)
        gated.ended("agent", under=entry)
    assert gated.flush()
    assert gated.told == {"POST /chat": "pass", "agent": "pass"}
    assert gated.attributes("chat 1")["spangate.verdict"] == "pass"
    members = {gated.attributes(name)["spangate.run_id"] for name in ("chat 1", "tool", "chat 2")}
    assert len(members) == 1
    assert gated.attributes("agent")["spangate.run_id"] not in members
    for outside in ("POST /chat", "auth"):
        assert not any(key.startswith("spangate.") for key in gated.attributes(outside))


def test_a_refused_run_without_a_span_of_its_own_is_told_below_its_request() -> None:
    gated = Gated()
    with gated.open("entry", "POST /chat") as entry:
        leaked = gated.start("generation", under=entry)
    gated.until(lambda: gated.told)
    assert gated.flush()
    assert gated.told == {"POST /chat": "fail completeness.open_span"}
    verdict = gated.one("refused POST /chat")
    assert verdict.parent == gated.one("POST /chat").context
    leaked.end()


def test_a_finished_plain_branch_passes_at_once_while_the_request_is_open() -> None:
    gated = Gated(settle_s=LONG, grace_s=LONG)
    with gated.open("entry", "POST /") as entry:
        with gated.open("other", "auth", under=entry) as auth:
            gated.ended("other", "query", under=auth)
        gated.until_left("auth", "query")
    gated.until_left("auth", "query", "POST /")


def test_an_unfinished_branch_waits_for_what_it_may_yet_be() -> None:
    gated = Gated()
    with gated.open("entry", "POST /") as entry:
        unknown = gated.start("other", "invoke", under=entry)
        gated.ended("other", "step", under=unknown)
        assert gated.flush()
        assert gated.names == []
        unknown.set_attribute("gen_ai.operation.name", "invoke_agent")
        unknown.end()
        assert gated.flush()
    assert gated.told == {"invoke": "pass"}
    assert gated.attributes("step")["spangate.run_id"] == gated.attributes("invoke")["spangate.run_id"]


def test_a_message_handler_is_an_entry_too() -> None:
    gated = Gated()
    with gated.open("entry", "receive", kind=SpanKind.CONSUMER) as entry:
        gated.ended("agent", under=entry)
    assert gated.flush()
    assert gated.told == {"agent": "pass"}


def test_a_server_span_that_answers_a_tool_call_is_a_run_of_its_own() -> None:
    gated = Gated()
    with gated.open("tool", "tools/call", under=remote(), kind=SpanKind.SERVER) as answer:
        gated.ended("other", "query", under=answer)
    assert gated.flush()
    assert gated.told == {"tools/call": "pass"}
    assert gated.attributes("query")["spangate.run_id"] == gated.attributes("tools/call")["spangate.run_id"]


def test_nothing_leaves_a_request_twice() -> None:
    gated = Gated(grace_s=LONG)
    entry = gated.start("entry", "POST /")
    agent = gated.start("agent", under=entry)
    entry.end()
    gated.until_left("POST /")
    gated.ended("tool", under=agent)
    assert gated.flush()
    agent.end()
    gated.until_left("POST /", "tool", "agent")


# Rule 3: otherwise the whole local tree is one run


@pytest.mark.parametrize("what", ["agent", "workflow", "generation", "tool", "iteration", "other", "setup", "process"])
def test_a_local_tree_with_an_agent_role_is_one_run_whatever_its_root_is(what: What) -> None:
    gated = Gated()
    with gated.open(what, "root") as root:
        gated.ended("agent", "one", under=root)
        gated.ended("other", "plain", under=root)
        gated.ended("generation", "two", under=root)
    assert gated.flush()
    assert gated.told == {"root": "pass"}
    assert gated.names == ["one", "plain", "two", "root"]
    assert len({gated.attributes(name)["spangate.run_id"] for name in gated.names}) == 1


# Rule 4: parents that are not here


def test_below_a_remote_parent_each_tree_of_a_trace_is_a_run_of_its_own() -> None:
    gated = Gated()
    with gated.open("tool", "one", under=remote(span_id=1)), gated.open("tool", "two", under=remote(span_id=2)):
        pass
    assert gated.flush()
    assert gated.told == {"one": "pass", "two": "pass"}


def test_a_call_answered_in_the_same_process_is_a_run_of_its_own() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        context = agent.get_span_context()
        gated.ended("tool", "answer", under=remote(context.trace_id, context.span_id))
    assert gated.flush()
    assert gated.told == {"agent": "pass", "answer": "pass"}


EVERYTHING = {"sampler": ALWAYS_ON}
"""A provider that samples whatever its parents say."""


def test_below_an_unsampled_parent_a_span_joins_the_run_that_is_open_in_its_trace() -> None:
    gated = Gated(provider=EVERYTHING)
    with gated.open("agent") as agent:
        gated.ended("tool", under=local(trace_of(agent), sampled=False))
    assert gated.flush()
    assert gated.told == {"agent": "pass (forest.parent_unsampled)"}


def test_below_an_unsampled_parent_and_no_open_run_a_span_stands_alone() -> None:
    gated = Gated(provider=EVERYTHING)
    gated.ended("agent", under=local(7, sampled=False))
    assert gated.flush()
    assert gated.told == {"agent": "pass (forest.parent_unsampled)"}


def test_an_agent_below_an_unsampled_part_of_a_request_is_told_so() -> None:
    gated = Gated(provider=EVERYTHING)
    with gated.open("entry") as entry:
        gated.ended("agent", under=local(trace_of(entry), sampled=False))
    assert gated.flush()
    assert gated.told == {"agent": "pass (forest.parent_unsampled)"}


@pytest.mark.parametrize("above", [None, remote()], ids=["a true root", "a remote parent"])
def test_a_parent_that_was_never_started_here_is_missing_from_the_run_of_its_trace(above: None) -> None:
    gated = Gated()
    with gated.open("agent", under=above) as agent:
        gated.ended("tool", under=local(trace_of(agent)))
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.missing_parent"}
    assert gated.names == ["refused agent"]


def test_where_another_provider_owns_the_parents_each_tree_is_a_run_of_its_own() -> None:
    gated = Gated()
    other = TracerProvider(shutdown_on_exit=False)
    root = started(other, "other", "root", None)
    gated.ended("agent", "one", under=root)
    gated.ended("agent", "two", under=started(other, "other", "inside", root))
    assert gated.flush()
    assert gated.told == {"one": "pass (forest.foreign_parent)", "two": "pass (forest.foreign_parent)"}


def test_a_parent_of_another_provider_is_foreign_whether_or_not_it_has_ended() -> None:
    gated = Gated()
    root = started(TracerProvider(shutdown_on_exit=False), "other", "root", None)
    root.end()
    gated.ended("agent", under=root)
    assert gated.flush()
    assert gated.told == {"agent": "pass (forest.foreign_parent)"}


def test_two_providers_interleaved_leave_a_hole_in_the_run_of_the_one_that_is_gated() -> None:
    gated = Gated()
    other = TracerProvider(shutdown_on_exit=False)
    with gated.open("agent") as agent:
        between = started(other, "other", "between", agent)
        gated.ended("tool", under=between)
        between.end()
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.missing_parent"}


# Rule 4: what starts below a parent that has ended and is decided


def decided_agent(gated: Gated) -> Span:
    with gated.open("agent", "first") as agent:
        gated.ended("generation", under=agent)
    assert gated.flush()
    assert gated.told == {"first": "pass"}
    return agent


def refused_agent(gated: Gated) -> Span:
    with gated.open("agent", "first") as agent:
        leaked = gated.start("tool", "leaked", under=agent)
    gated.until(lambda: gated.told)
    assert gated.flush()
    leaked.end()
    assert gated.told == {"first": "fail completeness.open_span"}
    return agent


def plain_tree(gated: Gated) -> Span:
    with gated.open("other", "first") as root:
        gated.ended("other", "below", under=root)
    gated.until_left("first", "below")
    return root


def request(gated: Gated) -> Span:
    with gated.open("entry", "first") as entry:
        gated.ended("agent", "answered", under=entry)
    assert gated.flush()
    return entry


Scene = Callable[[Gated], Span]


def hex_id(span: Span) -> str:
    return format(span.get_span_context().span_id, "016x")


@pytest.mark.parametrize(
    ("scene", "leaves"),
    [(decided_agent, True), (refused_agent, False), (plain_tree, True), (request, True)],
)
def test_a_late_span_without_an_agent_role_follows_the_decision(scene: Scene, leaves: bool) -> None:  # noqa: FBT001  a column
    gated = Gated()
    above = scene(gated)
    before = list(gated.names)
    with gated.open("other", "late", under=above) as late:
        gated.ended("other", "later", under=late)
    assert gated.flush()
    assert sorted(gated.names) == sorted([*before, *(["late", "later"] if leaves else [])])
    assert "late" not in gated.told


@pytest.mark.parametrize(
    ("scene", "verdict"),
    [
        (decided_agent, "fail forest.late_child"),
        (refused_agent, "fail forest.late_child"),
        (plain_tree, "fail forest.late_child"),
        (request, "pass (forest.after_entry)"),
    ],
)
def test_a_late_span_with_an_agent_role_is_a_run_of_its_own(scene: Scene, verdict: str) -> None:
    gated = Gated()
    above = scene(gated)
    gated.ended("agent", "late", under=above)
    assert gated.flush()
    assert gated.told["late"] == verdict
    assert ("late" in gated.names) == verdict.startswith("pass")


def test_what_is_too_late_for_a_released_run_names_its_root() -> None:
    gated = Gated()
    above = decided_agent(gated)
    gated.ended("agent", "late", under=above)
    assert gated.flush()
    assert gated.attributes("refused late")["spangate.supersedes"] == hex_id(above)
    assert gated.attributes("refused late")["spangate.trigger"] == "late_span"


def test_what_is_too_late_for_a_refused_run_names_its_verdict_span() -> None:
    gated = Gated()
    above = refused_agent(gated)
    first = gated.one("refused first")
    gated.ended("tool", "late", under=above)
    assert gated.flush()
    assert gated.attributes("refused late")["spangate.supersedes"] == format(first.context.span_id, "016x")


@pytest.mark.parametrize("scene", [plain_tree, request])
def test_what_is_too_late_for_something_without_a_verdict_names_none(scene: Scene) -> None:
    gated = Gated()
    gated.ended("agent", "late", under=scene(gated))
    assert gated.flush()
    (verdict,) = [verdict for verdict in gated.verdicts if verdict.run_name == "late"]
    assert verdict.supersedes is None


def test_what_is_too_late_for_an_agent_below_a_request_is_too_late_for_that_agent() -> None:
    gated = Gated()
    with gated.open("entry") as entry:
        with gated.open("agent", under=entry) as agent:
            pass
        gated.until_left("agent")
        gated.ended("tool", "late", under=agent)
        gated.until(lambda: "late" in gated.told)
    assert gated.told["late"] == "fail forest.late_child"
    assert gated.verdicts[-1].supersedes == hex_id(agent)


@pytest.mark.parametrize("kind", [SpanKind.SERVER, SpanKind.CONSUMER])
def test_what_is_handled_too_late_for_a_refused_run_is_withheld_with_it(kind: SpanKind) -> None:
    gated = Gated()
    gated.ended("other", "handled", under=refused_agent(gated), kind=kind)
    assert gated.flush()
    assert gated.names == ["refused first"]


def test_calls_below_a_request_that_has_ended_join_those_that_still_run() -> None:
    gated = Gated(grace_s=LONG)
    entry = gated.start("entry", "POST /")
    stream = gated.start("generation", "stream", under=entry)
    entry.end()
    gated.until_left("POST /")
    gated.ended("tool", under=entry)
    stream.end()
    gated.until_left("POST /", "stream", "tool")
    assert gated.told == {"POST /": "pass"}
    assert gated.verdicts[0].totals.spans_ended == 2


def test_a_background_task_that_starts_another_is_still_after_the_request() -> None:
    gated = Gated()
    task = gated.ended("other", "task", under=request(gated))
    assert gated.flush()
    gated.ended("agent", "late", under=task)
    assert gated.flush()
    assert gated.told["late"] == "pass (forest.after_entry)"


def test_a_background_task_beside_a_stream_that_still_runs_is_after_the_request_too() -> None:
    gated = Gated()
    entry = gated.start("entry")
    stream = gated.start("agent", "stream", under=entry)
    entry.end()
    gated.until_left("entry")
    gated.ended("agent", "task", under=entry)
    assert gated.flush()
    stream.end()
    assert gated.flush()
    assert gated.told == {"task": "pass (forest.after_entry)", "stream": "pass"}


def test_what_starts_below_a_span_of_a_refused_run_that_is_still_open_shares_its_fate() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        leaked = gated.start("tool", "leaked", under=agent)
    gated.until(lambda: gated.told)
    with gated.open("generation", under=leaked) as late:
        gated.ended("tool", under=late)
    leaked.end()
    assert gated.flush()
    assert gated.names == ["refused agent"]
    assert len(gated.verdicts) == 1


def test_a_call_that_is_answered_in_this_process_meanwhile_is_a_run_of_its_own_all_the_same() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        call = gated.start("transport", "call", under=agent)
    gated.until(lambda: gated.told)
    context = call.get_span_context()
    gated.ended("tool", "answer", under=remote(context.trace_id, context.span_id))
    gated.until(lambda: "answer" in gated.told)
    assert gated.told == {"agent": "fail completeness.open_span", "answer": "pass"}
    call.end()


def test_a_late_span_is_known_for_one_though_the_decision_is_forgotten() -> None:
    gated = Gated()
    above = decided_agent(gated)
    gated.gate._buffer._memory = Memory()
    gated.ended("agent", "late", under=above)
    assert gated.flush()
    assert gated.told["late"] == "fail forest.late_child"
    assert gated.verdicts[-1].supersedes is None


def test_a_context_that_outlives_its_run_leads_what_starts_in_it_to_that_run() -> None:
    gated = Gated()
    token = attach(set_span_in_context(decided_agent(gated)))
    try:
        gated.get_tracer("test").start_span("leaked into", attributes=LOOKS["agent"]).end()
    finally:
        detach(token)
    assert gated.flush()
    assert gated.told["leaked into"] == "fail forest.late_child"


def test_a_gate_that_is_added_late_judges_what_it_has_seen() -> None:
    other = TracerProvider(shutdown_on_exit=False)
    gated = Gated()
    agent = started(other, "agent", "agent", None)
    other.add_span_processor(gated.gate)
    started(other, "tool", "tool", agent).end()
    agent.end()
    assert gated.flush()
    assert gated.told == {"tool": "pass (forest.foreign_parent)", "agent": "pass (forest.foreign_parent)"}


def test_runs_of_a_program_that_seeds_its_random_numbers_stay_apart() -> None:
    gated = Gated()
    for name in ("one", "two"):
        random.seed(7)
        with gated.open("agent", name) as agent:
            gated.ended("tool", f"tool of {name}", under=agent)
        assert gated.flush()
    assert gated.told == {"one": "pass", "two": "pass"}
    assert len({verdict.run_id for verdict in gated.verdicts}) == 2
    assert sorted(gated.names) == ["one", "tool of one", "tool of two", "two"]


def test_runs_with_the_same_ids_at_the_same_time_cannot_be_told_apart_and_are_refused() -> None:
    gated = Gated()
    random.seed(7)
    one = gated.start("agent", "one")
    random.seed(7)
    two = gated.start("agent", "two")
    one.end()
    two.end()
    assert gated.flush()
    assert gated.told["one"].startswith("fail forest.duplicate_span_id forest.multiple_roots")
    assert len(gated.told) == 1
    assert gated.verdicts[0].totals.spans_ended == 2


# Rule 6: strays


def call(name: str) -> dict[str, str]:
    return {"gen_ai.tool.call.id": name}


def answer(name: str) -> dict[str, str]:
    return {"gen_ai.response.id": name}


def cites(name: str) -> dict[str, str]:
    part = f'{{"type": "tool_call_response", "id": "{name}", "response": "ok"}}'
    return {"gen_ai.input.messages": f'[{{"role": "tool", "parts": [{part}]}}]'}


USED = {"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 3}


def test_a_parentless_tool_beside_the_only_agent_is_its_stray() -> None:
    gated = Gated()
    with gated.open("agent"):
        gated.ended("tool")
        assert gated.flush()
        assert gated.names == []
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.stray_root"}
    assert gated.names == ["refused agent"]


def test_two_strays_at_once_both_belong_to_the_only_agent() -> None:
    gated = Gated()
    with gated.open("agent"):
        first, second = gated.start("tool", "first"), gated.start("tool", "second")
        second.end()
        assert gated.flush()
        first.end()
        assert gated.flush()
        assert gated.names == []
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.stray_root"}
    assert gated.verdicts[0].totals.spans_started == 3


@pytest.mark.parametrize(
    ("inside", "stray"),
    [
        pytest.param(answer("a"), answer("a"), id="the same response"),
        pytest.param(USED, USED, id="within a call that used the same"),
    ],
)
def test_a_parentless_model_call_is_a_stray_where_there_is_evidence(
    inside: dict[str, object], stray: dict[str, object]
) -> None:
    gated = Gated()
    with gated.open("agent") as agent, gated.open("generation", under=agent, attributes=inside):
        gated.ended("generation", "lost", attributes=stray)
        assert gated.flush()
        assert gated.names == []
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.stray_root"}


def test_a_parentless_program_is_a_stray_if_the_run_cites_its_call() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        gated.ended("process", attributes=call("c1"))
        gated.ended("generation", under=agent, attributes=cites("c1"))
        assert gated.flush()
        assert gated.names == []
    assert gated.flush()
    assert gated.told["agent"].startswith("fail")
    assert "forest.stray_root" in gated.told["agent"]


def test_a_parentless_program_that_no_run_cites_passes_without_a_word() -> None:
    gated = Gated()
    with gated.open("agent") as agent:
        gated.ended("process", "cited by nobody", attributes=call("c2"))
        gated.ended("generation", under=agent, attributes=cites("c1"))
    assert gated.flush()
    assert "cited by nobody" in gated.names
    assert "stray" not in gated.told["agent"]


def test_a_parentless_program_without_a_call_id_waits_for_nobody() -> None:
    gated = Gated()
    with gated.open("agent"):
        gated.ended("process")
        gated.until_left("process")


def test_a_parentless_model_call_without_evidence_is_judged_alone_and_the_run_is_warned() -> None:
    gated = Gated()
    with gated.open("agent"):
        gated.ended("generation", "moderation")
    assert gated.flush()
    assert gated.told == {"agent": "pass (forest.stray_generation)", "moderation": "pass"}


def alone_beside_two_agents(gated: Gated) -> None:
    with gated.open("agent", "one"), gated.open("agent", "two"):
        gated.ended("tool", "lost")
        gated.until(lambda: gated.told)


def alone_beside_two_agents_behind_one_request(gated: Gated) -> None:
    with gated.open("entry") as entry, gated.open("agent", "one", under=entry), gated.open("agent", "two", under=entry):
        gated.ended("tool", "lost")
        gated.until(lambda: gated.told)


def alone_beside_no_agent(gated: Gated) -> None:
    with gated.open("other", "job"):
        gated.ended("tool", "lost")
        gated.until(lambda: gated.told)


def alone_beside_a_tree_that_cannot_own_it(gated: Gated) -> None:
    with gated.open("other", "job") as job:
        gated.start("generation", "chat", under=job).end()
        gated.ended("tool", "lost")
        gated.until(lambda: gated.told)


def alone_for_its_link(gated: Gated) -> None:
    with gated.open("agent") as agent:
        gated.ended("tool", "lost", links=[link_to(agent)])
        gated.until(lambda: gated.told)


def alone_for_what_else_it_holds(gated: Gated) -> None:
    with gated.open("agent"):
        with gated.open("tool", "lost") as lost:
            gated.ended("other", "query", under=lost)
        gated.until(lambda: gated.told)


def alone_since_its_host_ended_first(gated: Gated) -> None:
    with gated.open("agent"):
        lost = gated.start("tool", "lost")
    gated.until(lambda: gated.told)
    lost.end()
    gated.until(lambda: len(gated.told) == 2)


def alone_before_the_agent(gated: Gated) -> None:
    lost = gated.start("tool", "lost")
    with gated.open("agent"):
        lost.end()
        gated.until(lambda: gated.told)


def alone_below_a_remote_parent(gated: Gated) -> None:
    with gated.open("agent"):
        gated.ended("tool", "lost", under=remote())
        gated.until(lambda: gated.told)


@pytest.mark.parametrize(
    "scene",
    [
        alone_beside_two_agents,
        alone_beside_two_agents_behind_one_request,
        alone_beside_no_agent,
        alone_beside_a_tree_that_cannot_own_it,
        alone_for_its_link,
        alone_for_what_else_it_holds,
        alone_since_its_host_ended_first,
        alone_before_the_agent,
        alone_below_a_remote_parent,
    ],
)
def test_in_every_other_case_it_is_judged_alone_at_once(scene: Callable[[Gated], None]) -> None:
    gated = Gated()
    scene(gated)
    assert gated.flush()
    assert gated.told["lost"] == "pass"
    assert "stray" not in " ".join(gated.told.values())


def test_strays_are_not_looked_for_where_that_is_turned_off() -> None:
    gated = Gated(claim_strays=False)
    with gated.open("agent"):
        gated.ended("tool", "lost")
        gated.until(lambda: gated.told)
    assert gated.flush()
    assert gated.told == {"lost": "pass", "agent": "pass"}


@pytest.mark.parametrize("what", ["agent", "workflow", "setup", "transport", "other"])
def test_other_parentless_trees_are_never_strays(what: What) -> None:
    gated = Gated()
    with gated.open("agent", "host"):
        gated.ended(what, "beside")
        gated.until(lambda: "beside" in gated.names)
    assert gated.flush()
    assert gated.told["host"] == "pass"


def test_a_plain_job_that_runs_meanwhile_is_no_host() -> None:
    gated = Gated()
    with gated.open("other", "job"), gated.open("agent"):
        gated.ended("tool", "lost")
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.stray_root"}


@pytest.mark.parametrize("what", ["workflow", "iteration"])
def test_a_workflow_or_an_iteration_anywhere_in_a_tree_may_own_strays(what: What) -> None:
    gated = Gated()
    with gated.open("other", "job") as job:
        gated.start(what, under=job).end()
        gated.ended("tool", "lost")
    assert gated.flush()
    assert gated.told == {"job": "fail forest.stray_root"}


def test_an_agent_below_a_request_owns_its_strays() -> None:
    gated = Gated()
    with gated.open("entry") as entry, gated.open("agent", under=entry):
        gated.ended("tool", "lost")
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.stray_root"}


def test_an_agent_that_streams_on_when_its_request_has_ended_owns_its_strays() -> None:
    gated = Gated()
    entry = gated.start("entry")
    agent = gated.start("agent", under=entry)
    gated.ended("tool", "lost")
    assert gated.flush()
    entry.end()
    gated.until_left("entry")
    agent.end()
    assert gated.flush()
    assert gated.told == {"agent": "fail forest.stray_root"}


def test_a_stray_stays_with_the_agent_that_ran_when_it_started() -> None:
    gated = Gated()
    with gated.open("entry") as entry:
        one = gated.start("agent", "one", under=entry)
        gated.ended("tool", "lost")
        assert gated.flush()
        gated.ended("agent", "two", under=entry)
        assert gated.flush()
        one.end()
    assert gated.flush()
    assert gated.told == {"two": "pass", "one": "fail forest.stray_root"}


def test_what_an_agent_below_a_request_does_not_claim_is_judged_in_the_same_flush() -> None:
    gated = Gated()
    with gated.open("entry") as entry, gated.open("agent", under=entry):
        gated.ended("generation", "moderation")
    assert gated.flush()
    assert gated.told == {"agent": "pass (forest.stray_generation)", "moderation": "pass"}


def test_strays_of_the_next_agent_behind_the_same_request_are_its_own() -> None:
    gated = Gated()
    with gated.open("entry") as entry:
        gated.ended("agent", "first", under=entry)
        gated.until_left("first")
        with gated.open("agent", "second", under=entry):
            gated.ended("tool", "lost")
    assert gated.flush()
    assert gated.told == {"first": "pass", "second": "fail forest.stray_root"}


def test_a_stray_shares_the_fate_of_a_run_that_a_policy_lets_pass() -> None:
    gated = Gated(gates=())
    with gated.open("agent"):
        gated.ended("tool", "lost")
    assert gated.flush()
    assert gated.names == ["lost", "agent"]
    assert gated.attributes("lost")["spangate.run_id"] == gated.attributes("agent")["spangate.run_id"]


# Rule 7: every agent a run of its own


def test_each_topmost_agent_is_a_run_where_the_unit_is_an_agent() -> None:
    gated = Gated(unit="agent")
    with gated.open("other", "harness") as harness:
        for name in ("one", "two"):
            with gated.open("agent", name, under=harness) as agent:
                gated.ended("agent", f"inside {name}", under=agent)
            gated.until(lambda name=name: name in gated.told)  # type: ignore[misc]
        gated.ended("generation", "judge", under=harness)
    assert gated.flush()
    assert gated.told == {"one": "pass", "two": "pass"}
    for name in ("judge", "harness"):
        assert "spangate.run_id" not in gated.attributes(name)


def test_an_agent_root_is_one_run_even_where_the_unit_is_an_agent() -> None:
    gated = Gated(unit="agent")
    with gated.open("agent", "outer") as outer:
        gated.ended("agent", "inner", under=outer)
    assert gated.flush()
    assert gated.told == {"outer": "pass"}


def test_a_unit_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="unit='span'"):
        Gated(unit="span")


# Rule 8: a bound reached by a tree


def test_a_bound_reached_without_an_agent_lets_what_is_held_and_the_rest_pass() -> None:
    gated = Gated(max_run_spans=3)
    with gated.open("other", "job") as job:
        for number in range(4):
            gated.ended("other", f"step {number}", under=job)
        gated.until(lambda: len(gated.names) == 4)
        gated.ended("other", "step 4", under=job)
        gated.until(lambda: "step 4" in gated.names)
    gated.until(lambda: "job" in gated.names)
    assert gated.told == {}


def test_an_agent_that_shows_up_in_such_a_tree_later_is_refused_for_what_went_before() -> None:
    gated = Gated(max_run_spans=3)
    with gated.open("other", "job") as job:
        for number in range(4):
            gated.ended("other", f"step {number}", under=job)
        gated.until(lambda: len(gated.names) == 4)
        with gated.open("agent", under=job) as agent:
            gated.ended("tool", under=agent)
    assert gated.flush()
    assert gated.told == {"agent": "fail buffer.overflow"}
    assert sorted(gated.names) == ["job", "refused agent", "step 0", "step 1", "step 2", "step 3"]


def test_a_root_that_turns_out_to_be_the_agent_is_refused_for_what_went_before() -> None:
    gated = Gated(max_run_spans=3)
    with gated.open("other", "job") as job:
        for number in range(4):
            gated.ended("other", f"step {number}", under=job)
        gated.until(lambda: len(gated.names) == 4)
        job.set_attribute("gen_ai.operation.name", "invoke_agent")
    assert gated.flush()
    assert gated.told == {"job": "fail buffer.overflow"}


def test_a_bound_reached_below_a_request_lets_pass_what_no_agent_needs() -> None:
    gated = Gated(max_run_spans=3)
    with gated.open("entry", "socket") as entry, gated.open("other", "loop", under=entry) as loop:
        for number in range(4):
            gated.ended("other", f"step {number}", under=loop)
        gated.until(lambda: len(gated.names) == 4)


def test_a_bound_reached_below_a_request_does_not_taint_an_agent_that_starts_later() -> None:
    gated = Gated(max_run_spans=3)
    with gated.open("entry", "socket") as entry, gated.open("other", "loop", under=entry) as loop:
        for number in range(4):
            gated.ended("other", f"step {number}", under=loop)
        gated.until(lambda: len(gated.names) == 4)
        gated.ended("agent", under=loop)
    assert gated.flush()
    assert gated.told == {"agent": "pass"}


def test_a_span_below_a_request_that_turns_out_to_be_the_agent_is_refused_for_what_went_before() -> None:
    gated = Gated(max_run_spans=3)
    with gated.open("entry", "socket") as entry, gated.open("other", "loop", under=entry) as loop:
        for number in range(4):
            gated.ended("other", f"step {number}", under=loop)
        gated.until(lambda: len(gated.names) == 4)
        loop.set_attribute("gen_ai.operation.name", "invoke_agent")
    assert gated.flush()
    assert gated.told == {"loop": "fail buffer.overflow"}


def test_a_bound_reached_by_an_agent_refuses_what_is_held_and_withholds_the_rest() -> None:
    gated = Gated(max_run_spans=3)
    with gated.open("agent") as agent:
        for number in range(4):
            gated.ended("tool", f"tool {number}", under=agent)
        gated.until(lambda: gated.told)
        gated.ended("tool", "one more", under=agent)
    assert gated.flush()
    assert gated.told == {"agent": "fail buffer.overflow completeness.root_open"}
    assert gated.names == ["refused agent"]
    assert gated.attributes("refused agent")["spangate.trigger"] == "memory"


# Identity


def test_a_run_id_is_no_trace_id_and_no_attribute_of_the_user() -> None:
    gated = Gated()
    with gated.open("agent", attributes={"run_id": "mine", "gen_ai.conversation.id": "talk"}) as agent:
        pass
    assert gated.flush()
    assert gated.verdicts[0].run_id not in ("mine", "talk", format(trace_of(agent), "032x"))


def test_an_invocation_id_begins_with_the_id_of_its_tree() -> None:
    gated = Gated()
    with gated.open("entry") as entry, gated.open("agent", under=entry) as agent:
        gated.ended("tool", under=agent)
    assert gated.flush()
    stem = gated.verdicts[0].run_id.partition(".")[0]
    assert gated.attributes("tool")["spangate.invocation_id"].startswith(f"{stem}-")


def test_runs_of_one_tree_have_ids_of_one_stem() -> None:
    gated = Gated()
    with gated.open("entry") as entry:
        gated.ended("agent", "one", under=entry)
        gated.ended("agent", "two", under=entry)
    assert gated.flush()
    stems = {verdict.run_id.partition(".")[0] for verdict in gated.verdicts}
    assert len(stems) == 1
    assert len({verdict.run_id for verdict in gated.verdicts}) == 2


@pytest.mark.parametrize("above", ["other", "entry"])
def test_every_run_is_told_what_is_wrong_with_its_process(above: What, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEPARENT", "00-0-0-00")
    gated = Gated()
    with gated.open(above) as root:
        gated.ended("agent", under=root)
    assert gated.flush()
    assert list(gated.told.values()) == ["pass (context.traceparent_invalid)"]
