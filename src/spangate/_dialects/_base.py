"""What a dialect answers about a span: the questions, and the plain data that the answers are made of.

A dialect reads names, it does not judge: values come back as they were recorded, ``ABSENT`` where nothing was. What
cannot be parsed is unknown, never an exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Protocol

from spangate._records import ABSENT, Outcome, Role, Span


@dataclass(slots=True)
class TokenCounts:
    """Token counts exactly as recorded: numbers, text, NaN, None or ``ABSENT``. Making sense of them is not done here.

    ``cached`` counts tokens read from a cache, ``cache_written`` those written to it, ``reasoning`` those of hidden
    thought. Whether these lie inside ``input`` and ``output`` differs by vendor.
    """

    input: Any = ABSENT
    output: Any = ABSENT
    total: Any = ABSENT
    cached: Any = ABSENT
    cache_written: Any = ABSENT
    reasoning: Any = ABSENT


NO_USAGE: Final = TokenCounts()


@dataclass(slots=True)
class Request:
    """What a generation asked for, from request attributes only: never the response's model, never the completion.

    ``system`` is the system text (or its parts) where it is recorded apart from the messages. ``messages`` and
    ``tools`` are parsed JSON. ``params`` are all decoding parameters but the temperature, by their short names.
    """

    model: Any = ABSENT
    temperature: Any = ABSENT
    system: Any = ABSENT
    messages: Any = ABSENT
    tools: Any = ABSENT
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ToolCall:
    """One call of a tool, as a generation asked for it, received its result, or a tool span executed it.

    ``call_id`` and ``name`` are None where they are not recorded. ``at_provider`` marks a call that ran inside the
    model call (web search, code interpreter): no span of ours can exist for it.
    """

    call_id: str | None = None
    name: str | None = None
    arguments: Any = ABSENT
    result: Any = ABSENT
    at_provider: bool = False


@dataclass(slots=True)
class Turn:
    """The tool traffic of one generation. None where the messages are not recorded: unknown, not "none".

    ``asked`` are the calls in its output, ``received`` the results in its input (of the whole history that was sent),
    ``offered`` the names of the tool definitions.
    """

    asked: Sequence[ToolCall] | None = None
    received: Sequence[ToolCall] | None = None
    offered: frozenset[str] | None = None


NO_TURN: Final = Turn()
"""Of which nothing is recorded."""


class Dialect(Protocol):
    """One convention of writing agent spans. Chosen per span, by scope name first and attributes second.

    ``scopes`` maps the tracer scopes that speak it (a name stands for all below it, dot by dot) to the role of a span
    that says nothing yet. ``marks`` are attributes that show it in a span of a scope that nobody knows. Attributes and
    event attributes named in ``payload_keys``, or that start with one of ``payload_prefixes``, hold prompts, messages,
    arguments or results.
    """

    name: ClassVar[str]
    scopes: ClassVar[Mapping[str, Role]]
    marks: ClassVar[tuple[str, ...]]
    payload_keys: ClassVar[frozenset[str]]
    payload_prefixes: ClassVar[tuple[str, ...]]

    def role(self, span: Span) -> Role:
        """Say what the span is. An open span or one without attributes takes its role from its scope."""

    def outcome(self, span: Span) -> Outcome:
        """Say what became of the span, whatever status its framework wrote."""

    def usage(self, span: Span) -> TokenCounts:
        """Return the token counts on this very span: a leaf's own, or the roll-up on an agent or workflow."""

    def request(self, span: Span) -> Request:
        """Return what a generation span asked for."""

    def response_id(self, span: Span) -> str | None:
        """Return the id that the model's server gave the answer."""

    def turn(self, span: Span) -> Turn:
        """Return the tool calls that a generation asked for and the results that it received."""

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a tool span executed."""

    def tool_result(self, span: Span) -> Any:
        """Return the result of that call by itself."""

    def answered(self, span: Span) -> bool:
        """Say whether a generation span shows any completion (so that a token count of zero is suspicious)."""
