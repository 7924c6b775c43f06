"""Causes that nobody declared and that follow from call ids: who asked for a call, and who received its result."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TypeAlias

from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._run import Run

Askers: TypeAlias = dict[Span, str | None]
"""Model calls that asked for a call, each with the id of its answer."""


def derived(run: Run) -> dict[Span, Sequence[Span]]:
    """Return the causes of tools and model calls that follow from the call ids that dialects record.

    A tool span is caused by the model call that asked for its call id, a model call by the tools whose results it
    received. Only ids that one model call of the run asked for count: some providers number the calls of every turn
    anew, and which turn a call belongs to would then be a matter of times.
    """
    tools: dict[str | None, list[Span]] = {}
    for span in run.of_role("tool"):
        tools.setdefault(dialect_of(span).tool_call(span).call_id, []).append(span)
    return derived_of(run, tools)


def derived_of(run: Run, tools: Mapping[str | None, Sequence[Span]]) -> dict[Span, Sequence[Span]]:
    """Do the same for whoever knows the tool spans by their call ids already."""
    tools = {call_id: spans for call_id, spans in tools.items() if call_id is not None}
    asked, received = _traffic(run, tools) if tools else ({}, {})
    found: dict[Span, dict[Span, None]] = {}
    for call_id, askers in asked.items():
        for tool in tools[call_id] if _is_one(run, askers) else ():
            found.setdefault(tool, {}).update(dict.fromkeys(askers))
            for receiver in received.get(call_id, ()):
                found.setdefault(receiver, {})[tool] = None
    return {span: list(by) for span, by in found.items()}


def _traffic(run: Run, tools: Container[str | None]) -> tuple[dict[str | None, Askers], dict[str | None, list[Span]]]:
    """Return the model calls that asked for each call of ``tools``, and those that received its result."""
    asked: dict[str | None, Askers] = {}
    received: dict[str | None, list[Span]] = {}
    for span in run.of_role("generation"):
        dialect = dialect_of(span)
        turn = dialect.turn(span)
        for call in turn.asked or ():
            if call.call_id in tools:
                asked.setdefault(call.call_id, {})[span] = dialect.response_id(span)
        for call in turn.received or ():
            if call.call_id in tools:
                received.setdefault(call.call_id, []).append(span)
    return asked, received


def _is_one(run: Run, askers: Askers) -> bool:
    """Say whether spans are one model call, seen by several instrumentations: by one answer, or one inside another."""
    first, *others = askers
    answers = set(askers.values())
    if not others or (len(answers) == 1 and None not in answers):
        return True
    return all(_are_nested(run, first, other) for other in others)


def _are_nested(run: Run, one: Span, other: Span) -> bool:
    return _is_in(other, run.ancestors(one)) or _is_in(one, run.ancestors(other))


def _is_in(span: Span, spans: Iterable[Span]) -> bool:
    return any(one is span for one in spans)
