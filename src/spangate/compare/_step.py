"""One step of a run: a call of a tool or an agent, with what is inside of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from spangate._records import ABSENT, Span
from spangate.compare._arguments import Digest

Token: TypeAlias = tuple[str, str, str, str]
"""What a step is known by: whether it is a tool or an agent, its name, and its digest with how that was made."""


@dataclass(slots=True, eq=False)
class Step:
    """A call of a tool, or an agent, with the steps inside of it.

    ``spans`` are those that tell of it, the outermost first; the whole run is a step without one. ``agent`` is the name
    of the agent that made it. ``rank`` is its place among its like: those with the same rank are in no order.
    ``asked`` are the arguments with which a model asked for a tool whose spans record none. ``digest`` is that of a
    tool's arguments, None where they are unknown, or not compared (``is_coarse``).
    """

    kind: Literal["run", "agent", "tool"]
    name: str = ""
    spans: list[Span] = field(default_factory=list)
    agent: str = ""
    rank: int = 0
    call_id: str | None = None
    asked: Any = ABSENT
    digest: Digest | None = None
    is_coarse: bool = False
    inside: list[Step] = field(default_factory=list)
    token: Token = ("", "", "", "")

    @property
    def span(self) -> Span | None:
        """The outermost span that tells of it."""
        return self.spans[0] if self.spans else None
