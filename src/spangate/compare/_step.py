"""One step of a run: a call of a tool or an agent, with what is inside of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from spangate._records import ABSENT, Span
from spangate.compare._arguments import Digest

Token: TypeAlias = tuple[str, str, str, str]
"""What a step is known by: whether it is a tool or an agent, its name, and its digest with how that was made."""


@dataclass(slots=True, eq=False)
class Step:
    """A call of a tool, or an agent, with the steps inside of it.

    ``span`` is the outermost that tells of it, ``others`` are those of other instrumentations inside; the whole run has
    none. ``agent`` is the name of the agent that made it. ``rank`` is its place among its like: those with the same
    rank are in no order. ``told`` are a tool's arguments where they are an object, until they are digested; ``asked``
    those with which a model asked for a tool whose spans record none. ``digest`` is that of a tool's arguments, None
    where they are unknown, or not compared (``is_coarse``).
    """

    kind: Literal["run", "agent", "tool"]
    name: str = ""
    span: Span | None = None
    others: tuple[Span, ...] = ()
    agent: str = ""
    rank: int = 0
    call_id: str | None = None
    told: dict[str, Any] | None = None
    asked: Any = ABSENT
    digest: Digest | None = None
    is_coarse: bool = False
    inside: list[Step] | tuple[()] = ()
    token: Token = ("", "", "", "")

    @property
    def spans(self) -> tuple[Span, ...]:
        """Every span that tells of it, the outermost first."""
        return self.others if self.span is None else (self.span, *self.others)

    def take_in(self, step: Step) -> None:
        """Put a step inside of this one."""
        if isinstance(self.inside, tuple):  # most steps hold none, and a list for each would be a lot to look after
            self.inside = [step]
        else:
            self.inside.append(step)
