"""Laws of a loop: whatever legal sequence of steps passes the halt gate, and an illegal step changes nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from opentelemetry import context

import spangate
from spangate import SpangateError
from spangate.gates import Completeness, Forest, Halt
from spangate.testing import GatedProvider

MAX_ITERS = 3
TOOLS = st.sampled_from(["look", "taste"])
REASONS = st.sampled_from(["done", "budget_exhausted", "timeout", "cancelled", "tool_error"])
BOOM = RuntimeError("boom")


class Loops(RuleBasedStateMachine):
    """One run, driven step by step; ``work`` is what is open in its iteration, the last one entered last."""

    @initialize()
    def begin(self) -> None:
        self.before = context.get_current()
        self.provider = GatedProvider([Completeness(), Forest(), Halt()], grace_s=0.0)
        self.run = spangate.run("a goal", max_iters=MAX_ITERS, tracer_provider=self.provider)
        self.run.__enter__()
        self.loop = self.run.iterations()
        self.it: Any = None
        self.turns = 0
        self.work: list[Any] = []
        self.is_over = False

    @property
    def is_iterating(self) -> bool:
        return self.it is not None and self.run.halted is None and not self.is_over

    def refuses(self, step: Any) -> None:
        """Take an illegal step: it raises, and nothing else has happened."""
        state = self.run.halted, self.turns, len(self.work)
        with pytest.raises(SpangateError):
            step()
        assert (self.run.halted, self.turns, len(self.work)) == state

    @precondition(lambda self: not self.is_over and not self.work)
    @rule()
    def next(self) -> None:
        it = next(self.loop, None)
        expected = self.run.halted is None and self.turns < MAX_ITERS
        assert (it is not None) is expected
        self.turns += it is not None
        self.it = it

    @precondition(lambda self: self.is_iterating)
    @rule(tool=TOOLS, value=st.integers(0, 2))
    def enter(self, tool: str, value: int) -> None:
        self.work.append(self.it.tool(tool, {"value": value}, schema={"tool": tool}).__enter__())

    @precondition(lambda self: self.is_iterating)
    @rule()
    def ask(self) -> None:
        with self.it.llm("small", "hello") as call:
            call.answer("hi", input_tokens=1, output_tokens=1)

    @precondition(lambda self: self.work)
    @rule(fails=st.booleans())
    def leave(self, fails: bool) -> None:  # noqa: FBT001  drawn
        self.work.pop().__exit__(*((RuntimeError, BOOM, None) if fails else (None, None, None)))

    @precondition(lambda self: not self.is_over and not self.work and self.run.halted is None)
    @rule(reason=REASONS)
    def halt(self, reason: str) -> None:
        self.run.halt(reason)
        assert self.run.halted == reason

    @precondition(lambda self: self.work and self.is_iterating)
    @rule()
    def go_on_around_open_work(self) -> None:
        self.refuses(lambda: next(self.loop))
        self.refuses(lambda: self.run.halt("done"))
        self.refuses(self.it.end)

    @precondition(lambda self: self.is_iterating)
    @rule()
    def begin_another(self) -> None:
        self.refuses(lambda: self.run.iteration().__enter__())
        self.refuses(self.run.iterations)

    @precondition(lambda self: self.run.halted is not None or self.is_over)
    @rule(reason=REASONS)
    def do_something_after_the_end(self, reason: str) -> None:
        self.refuses(lambda: self.run.halt(reason))
        self.refuses(lambda: self.run.iteration().__enter__())
        if self.it is not None:
            self.refuses(lambda: self.it.tool("look").__enter__())

    @precondition(lambda self: not self.is_over and not self.work and self.run.halted is None and self.turns)
    @rule()
    def leave_by_an_exception(self) -> None:
        self.run.__exit__(RuntimeError, BOOM, None)
        assert self.run.halted == "tool_error"
        self.is_over = True

    @precondition(lambda self: not self.is_over and not self.work and self.run.halted is not None)
    @rule()
    def leave_the_run(self) -> None:
        self.run.__exit__(None, None, None)
        self.is_over = True

    @invariant()
    def an_iteration_is_open_or_none(self) -> None:
        assert self.turns <= MAX_ITERS

    def teardown(self) -> None:
        if not hasattr(self, "run"):
            return
        while self.work:
            self.work.pop().__exit__(None, None, None)
        if not self.is_over:
            with suppress(SpangateError):
                self.run.halt("done")
            self.run.__exit__(None, None, None)
        assert context.get_current() == self.before
        self.provider.shutdown()
        (verdict,) = self.provider.verdicts
        assert verdict.gates["halt"] == "pass", verdict.failures
        assert verdict.totals.spans_started == verdict.totals.spans_ended
        codes = {finding.code for finding in verdict.failures}
        assert codes <= {"completeness.unrecovered_error"}, codes


TestLoops = Loops.TestCase
TestLoops.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
