"""Which tools a run cites, and which tool spans executed them.

A call is *cited* if a later generation of the same agent received its result. What stands in an agent's first
generation was asked for by none of its generations: history, which cites nothing. Call ids are no keys, since some
providers number them anew in every turn; so calls and tool spans are matched as multisets, one turn at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spangate._cites.conversation import Call, Conversation
from spangate._cites.match import FRAMES, invocations, match
from spangate._dialects import dialect_of
from spangate._lineage import nearest
from spangate._records import Span
from spangate._run import Run


@dataclass(frozen=True, slots=True, eq=False)
class Cites:
    """The calls of all turns, compared with the tool spans; ``blind`` says why they cannot be, where none can."""

    calls: Sequence[Call] = ()
    blind: str = ""


def cites(run: Run) -> Cites:
    """Compare what the model asked for and received with what the tool spans of the run executed."""
    if not run.of_role("generation"):
        return Cites(blind="the run has no generation spans, so nothing shows which tools the model called")
    calls = _read(run)
    if calls is None:
        return Cites(blind="no generation records its messages, so nothing shows which tools the model called")
    if not any(call.answered or call.went_on or call.asked > 1 for call in calls):
        return Cites(calls)
    if not run.of_role("tool"):
        return Cites(blind="the model received results of tools, but the run has no tool spans at all")
    match(calls, invocations(run))
    return Cites(calls)


def _read(run: Run) -> Sequence[Call] | None:
    """Return the calls of every turn, agent by agent; None if no generation records what it asked for or received."""
    agent_above = nearest(run, lambda span: span.role == "agent")
    frame_above = nearest(run, lambda span: span.role in FRAMES)
    conversations: dict[Span | None, Conversation] = {}
    told: set[Span | None] = set()
    responses: set[str | None] = {None}
    recorded = False
    for span in run.of_role("generation"):
        if told and frame_above(span) in told:
            told.add(span)  # another instrumentation of a call that was read
            continue
        dialect = dialect_of(span)
        turn = dialect.turn(span)
        if turn.asked is None and turn.received is None:
            continue
        if turn.asked:
            told.add(span)
            response_id = dialect.response_id(span)
            if response_id is not None and response_id in responses:
                continue
            responses.add(response_id)
        agent = agent_above(span)
        recorded = recorded or turn.asked is not None or agent is not None
        conversations.setdefault(agent, Conversation(agent)).follow(span, turn)
    if not recorded:
        return None
    return run.walk([call for conversation in conversations.values() for call in conversation.finished()])
