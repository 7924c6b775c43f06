"""Which run a span belongs to that a program has sent, and what becomes of it: before, at and after a decision."""

from __future__ import annotations

import time
from typing import Any

import pytest
from opentelemetry.trace import StatusCode

from spangate import process
from spangate.process import Receiver
from tests.live.gated import Gated
from tests.receiver.sender import Sender, as_what, open_run, running_in, sender_in

OTHER_TRACE = {"trace_id": b"\7" * 16, "parent_span_id": b""}
IDS = [bytes(7) + bytes([number]) for number in range(1, 9)]


class TestRequestHandlers:
    """Below a request each agent is a run of its own, and gets what its own programs sent."""

    def test_each_run_gets_what_its_programs_sent(self, gated: Gated) -> None:
        request = gated.start("entry", "request")
        one, two = (sender_in(gated, gated.start("agent", name, under=request)) for name in ("one", "two"))
        one.call(one.request("of one"))
        two.call(two.request("stray of two", **OTHER_TRACE))
        for span in (one.root, two.root, request):
            span.end()
        gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
        assert gated.told == {"one": "pass", "two": "fail forest.stray_root"}
        gated.until(lambda: "request" in gated.names)
        assert "of one" in gated.names
        assert "stray of two" not in gated.names

    def test_without_an_agent_it_passes_with_the_request(self, gated: Gated) -> None:
        request = gated.start("entry", "request")
        sender = sender_in(gated, request)
        sender.call(sender.request("work"))
        sender.call(sender.request("elsewhere", **OTHER_TRACE))
        request.end()
        gated.until(lambda: gated.flush() and {"work", "elsewhere", "request"} <= {*gated.names})
        assert gated.verdicts == []

    @pytest.mark.parametrize(("operation", "name"), [("invoke_agent", "work"), ("execute_tool", "request")])
    def test_a_run_that_a_program_alone_recorded_is_judged(self, gated: Gated, operation: str, name: str) -> None:
        request = gated.start("entry", "request")
        with running_in(gated, request) as sender:
            sender.call(as_what(operation, sender.request("work")))
        request.end()
        gated.until(lambda: {"work", "request"} <= {*gated.names})
        assert gated.told == {name: "pass"}
        assert gated.verdicts[0].run_id.count("-") == 0  # decided with its request, not among what was left of it
        assert gated.gate._buffer._count == 0

    def test_nothing_of_a_program_leaves_before_it_has_ended(self, gated: Gated) -> None:
        request = gated.start("entry", "request")
        with running_in(gated, request) as sender:
            sender.call(sender.request("inner", parent_span_id=IDS[1], span_id=IDS[0]))  # as SDKs do: children first
            gated.ended("other", "beside", under=request)
            gated.until(lambda: "beside" in gated.names)
            assert "inner" not in gated.names
            sender.call(as_what("invoke_agent", sender.request("agent", span_id=IDS[1], start_time_unix_nano=1)))
            sender.call(sender.request("lost", span_id=IDS[2], parent_span_id=IDS[0], end_time_unix_nano=0))
        gated.until(lambda: gated.verdicts)
        request.end()
        gated.until(lambda: gated.flush() and "request" in gated.names)
        assert gated.told == {"agent": "fail completeness.open_span"}
        assert not {"agent", "inner", "lost"} & {*gated.names}

    def test_what_hangs_in_the_air_waits_for_the_end_of_the_request(self, gated: Gated) -> None:
        request = gated.start("entry", "request")
        with running_in(gated, request) as sender:
            sender.call(sender.request("orphan", parent_span_id=IDS[1]))
        gated.until(lambda: len(gated.names) == 1)  # the program
        assert "orphan" not in gated.names
        request.end()
        gated.until(lambda: gated.flush() and {"orphan", "request"} <= {*gated.names})

    def test_what_comes_in_the_very_moment_of_a_decision_follows_it(
        self, gated: Gated, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No test can wait for that moment: it is made, between the look at a run and its being taken."""
        request = gated.start("entry", "request")
        sender = sender_in(gated, gated.start("agent", under=request))
        gated.start("tool", "leaked", under=sender.root)
        take, program = gated.gate._buffer.take, sender.parent[1]

        def late(tree: Any, members: Any, *more: Any) -> int | None:
            if any(span_id == program for span_id, _ in members) and not gated.gate.received:
                sender.call(sender.request("secret"))
            return take(tree, members, *more)

        monkeypatch.setattr(gated.gate._buffer, "take", late)
        sender.root.end()
        gated.until(lambda: gated.verdicts)
        request.end()
        gated.until(lambda: gated.flush() and "request" in gated.names)
        assert gated.gate._telemetry.withheld == 3  # the agent, the program, and the secret
        assert sorted(gated.names) == ["refused agent", "request"]


class TestNobodyHonouredTheContext:
    """A tree without an agent whose program recorded some: each is a run of its own, and no parent is made up."""

    def test_each_trace_is_a_run(self, gated: Gated) -> None:
        sender = sender_in(gated, gated.start("other", "script"))
        for number, name in enumerate(("one", "two"), 1):
            ids = {"trace_id": bytes([number]) * 16, "span_id": bytes([number]) * 8, "parent_span_id": b""}
            end = {} if name == "one" else {"end_time_unix_nano": 0}
            sender.call(as_what("invoke_agent", sender.request(name, **ids, **end)))
        sender.root.end()
        gated.until(lambda: gated.flush() and len(gated.verdicts) == 2)
        assert gated.told["one"] == "pass"
        assert "completeness.root_open" in gated.told["two"] or "completeness.open_span" in gated.told["two"]
        gated.until(lambda: {"script", "one", "refused two"} <= {*gated.names})
        assert "two" not in gated.names

    def test_one_that_honours_it_makes_strays_of_the_others(self, gated: Gated) -> None:
        sender = sender_in(gated, gated.start("other", "script"))
        sender.call(as_what("invoke_agent", sender.request("agent")))
        sender.call(sender.request("stray", **OTHER_TRACE))
        sender.root.end()
        gated.until(lambda: gated.flush() and len(gated.verdicts) == 1)
        assert gated.told == {"script": "fail forest.stray_root"}


class TestSentTwice:
    """A request may come again, when its answer was lost on the way."""

    def test_it_is_there_once(self, sender: Sender) -> None:
        for _ in range(3):
            sender.call(sender.request("work"))
        assert sender.finish() == "pass"
        assert sender.gated.names.count("work") == 1
        assert sender.gated.gate._buffer._count == 0

    def test_one_that_was_open_and_has_ended_is_not_open(self, sender: Sender) -> None:
        sender.call(sender.request("work", end_time_unix_nano=0))
        sender.call(sender.request("work"))
        sender.call(sender.request("work", end_time_unix_nano=0))
        assert sender.finish() == "pass"
        assert sender.gated.names.count("work") == 1

    def test_another_span_with_its_id_is_another(self, sender: Sender) -> None:
        sender.call(sender.request("work"))
        sender.call(sender.request("other"))
        assert sender.finish() == "fail forest.duplicate_span_id"

    def test_it_is_taken_in_whole_or_not_at_all(self) -> None:
        gated = Gated(receiver=Receiver(), max_held_bytes=1 << 20)
        process.instrument(gated)
        with open_run(gated) as sender:
            body = sender.request(*map(str, range(600)))
            body.MergeFrom(sender.request(*map(str, range(600)), **OTHER_TRACE))
            assert sender.post(body.SerializeToString()).status_code == 503
            assert gated.gate.received == 0
        process.uninstrument()
        gated.shutdown()


class TestAfterTheRun:
    def test_what_comes_late_for_a_released_run_follows_it(self, sender: Sender) -> None:
        gated = sender.gated
        assert sender.finish() == "pass"
        assert sender.post(sender.request("late").SerializeToString()).status_code == 200
        gated.until(lambda: "late" in gated.names)
        assert gated.attributes("late")["spangate.run_id"] == gated.verdicts[0].run_id
        assert len(gated.verdicts) == 1

    def test_a_tool_that_began_in_time_belongs_to_it_however_late_it_is_sent(self, sender: Sender) -> None:
        gated = sender.gated
        assert sender.finish() == "pass"
        sender.call(as_what("execute_tool", sender.request("late")))
        gated.until(lambda: "late" in gated.names)
        assert len(gated.verdicts) == 1

    def test_an_agent_that_begins_after_it_is_judged_and_says_so(self, sender: Sender) -> None:
        """What came with it, and is not below it, is not judged with it."""
        gated = sender.gated
        assert sender.finish() == "pass"
        after = {"start_time_unix_nano": time.time_ns(), "end_time_unix_nano": time.time_ns() + 1}
        late = as_what("invoke_agent", sender.request("late", span_id=IDS[0], **after))
        late.MergeFrom(sender.request("in time", span_id=IDS[1]))
        late.MergeFrom(sender.request("no agent", span_id=IDS[2], **after))
        sender.call(late)
        gated.until(lambda: {"in time", "no agent", "refused late"} <= {*gated.names})
        assert "forest.late_child" in gated.told["late"]
        assert len(gated.verdicts) == 2
        assert gated.verdicts[1].supersedes == f"{sender.root.get_span_context().span_id:016x}"
        assert "late" not in gated.names

    def test_what_comes_late_for_a_large_refused_run_does_not_follow_another(self, gated: Gated) -> None:
        """The ids of its members are not kept, but those of its programs are."""
        request = gated.start("entry", "request")
        sender = sender_in(gated, gated.start("agent", "large", under=request))
        for _ in range(300):
            gated.ended("other", "step", under=sender.root)
        gated.ended("tool", "broken", under=sender.root)
        gated.start("tool", "leaked", under=sender.root)
        sender.root.end()
        gated.until(lambda: len(gated.verdicts) == 1)
        gated.ended("agent", "small", under=request)
        gated.until(lambda: len(gated.verdicts) == 2)
        withheld = gated.gate._telemetry.withheld
        sender.call(sender.request("late"))
        gated.until(lambda: gated.gate._telemetry.withheld == withheld + 1)
        assert gated.told == {"large": "fail completeness.open_span", "small": "pass"}
        assert "late" not in gated.names
        request.end()

    def test_what_comes_when_a_run_was_judged_as_it_stood_knows_its_end(self, sender: Sender) -> None:
        """At a bound, or at a shutdown, a run is taken before it is read."""
        gated = sender.gated
        sender.root.set_status(StatusCode.OK)
        sender.root.end()
        tree = gated.gate._buffer.held()[0]
        decided, _ = gated.gate._worker._settler._looks.seize(tree, "run") or (None, None)
        assert decided is not None
        assert decided.root_end_ns == sender.root.end_time
