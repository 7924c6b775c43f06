"""A run as steps inside of steps, each known by its name and digest, those inside of one in the order of causes."""

from __future__ import annotations

from typing import Final

from spangate._canonical import text_hash
from spangate._records import ABSENT, Span
from spangate._run import Run
from spangate.compare._arguments import Arguments, Digest
from spangate.compare._naming import Names
from spangate.compare._rules import Rules
from spangate.compare._step import Step, Token
from spangate.compare._taken_apart import TakenApart

_COARSE: Final = "by name"
_AGENT_NAME: Final = "gen_ai.agent.name"
_UNKNOWN: Final = Digest("", "unknown")


class Reader:
    """Reads runs as steps by the same rules, and remembers names and digests that come again.

    Args:
        rules: By which the runs are compared.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.names = Names(rules)
        self.arguments = Arguments(rules)
        self._tokens: dict[Token, Token] = {}

    def read(self, run: Run) -> Step:
        """Return a run as one step with all others inside of it."""
        apart = TakenApart(run)
        steps = [apart.top]
        for step in steps:  # it grows
            for inner in step.inside:
                self._tell(inner, apart)
                inner.agent = step.name if step.kind == "agent" else step.agent
            steps += step.inside
        for step in reversed(steps):  # the innermost first
            if isinstance(step.inside, list):
                step.inside.sort(key=lambda inner: (inner.rank, inner.token))
            if step.kind == "agent":
                said = "\n".join("\t".join(map(str, (inner.rank, *inner.token))) for inner in step.inside)
                step.token = ("agent", step.name, text_hash(said), "")
        return apart.top

    def _tell(self, step: Step, apart: TakenApart) -> None:
        """Give a step its name and, if it is a tool, its digest."""
        span = step.span
        if span is None:
            return
        if step.kind == "agent":
            step.name = self._agent_name(span)
            return
        step.name = self.names.of(step.name or span.name)
        step.is_coarse = self.rules.is_coarse(step.name)
        if step.is_coarse:
            step.token = self._one(("tool", step.name, "", _COARSE))
            return
        value, step.told = self.arguments.value(step.spans) if step.told is None else step.told, None
        if value is ABSENT:
            value = step.asked = apart.asked(step.call_id)
        step.digest = self.arguments.digest(value, step.spans)
        known = step.digest or _UNKNOWN
        step.token = self._one(("tool", step.name, known.text, known.made))

    def _one(self, token: Token) -> Token:
        """Return a token, one and the same for all steps that are alike: there may be very many."""
        return self._tokens.setdefault(token, token)

    def _agent_name(self, span: Span) -> str:
        """Return the name of an agent: its span's, with its own where that says only what it does."""
        own = span.attributes.get(_AGENT_NAME)
        name = self.names.of_span(span)
        return name if not isinstance(own, str) or own in span.name else f"{name} {self.names.of(own)}"
