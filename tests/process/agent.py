"""An agent run with programs in it, recorded by a real provider and judged by a real gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan

from spangate import Gate, Verdict, default_gates
from spangate.gates import Policy
from tests.live.gated import LOOKS, Gated, said

GATES: Final[tuple[Gate, ...]] = (*default_gates(), Policy(levels={"fingerprints.no_generations": "off"}))
"""The default gates for agents that start programs and ask no model."""


@dataclass(frozen=True)
class Done:
    """What became of a run: its verdict, what has left, and the spans of its programs, in the order of their ends."""

    verdict: Verdict
    spans: Sequence[ReadableSpan]

    @property
    def said(self) -> str:
        return said(self.verdict)

    @property
    def programs(self) -> list[ReadableSpan]:
        return [span for span in self.spans if "process.executable.name" in (span.attributes or {})]

    @property
    def program(self) -> Mapping[str, Any]:
        """The attributes of the only program."""
        (span,) = self.programs
        return span.attributes or {}


class Agent:
    """Does one thing in a run."""

    def __init__(self, gated: Gated) -> None:
        self._gated = gated
        self._seen = 0

    def does(self, task: Callable[[], object]) -> Done:
        """Run ``task`` inside the span of an agent, and have the run judged."""
        gated = self._gated
        root = gated.start("agent")
        with trace.use_span(root, end_on_exit=False):
            task()
        root.end()
        before = len(gated.verdicts)
        gated.until(lambda: gated.flush() and len(gated.verdicts) > before)
        exported = gated.exported
        seen, self._seen = self._seen, len(exported)
        return Done(gated.verdicts[-1], exported[seen:])


TOOL = LOOKS["tool"]
