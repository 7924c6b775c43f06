"""Which tools a run cites, and which tool spans executed them.

A call is *cited* if a later generation of the same agent received its result. What stands in an agent's first
generation was asked for by none of its generations: history, which cites nothing. Call ids are no keys, since some
providers number them anew in every turn; so calls and tool spans are matched as multisets, one turn at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spangate._run import Run
from spangate._tool_match import invocations, match
from spangate._turns import Call, read_calls


@dataclass(frozen=True, slots=True, eq=False)
class Cites:
    """The calls of all turns, compared with the tool spans; ``blind`` says why they cannot be, where none can."""

    calls: Sequence[Call] = ()
    blind: str = ""


def cites(run: Run) -> Cites:
    """Compare what the model asked for and received with what the tool spans of the run executed."""
    if not run.of_role("generation"):
        return Cites(blind="the run has no generation spans, so nothing shows which tools the model called")
    calls = read_calls(run)
    if calls is None:
        return Cites(blind="no generation records its messages, so nothing shows which tools the model called")
    if not any(call.answered or call.went_on or call.asked > 1 for call in calls):
        return Cites(calls)
    if not run.of_role("tool"):
        return Cites(blind="the model received results of tools, but the run has no tool spans at all")
    match(calls, invocations(run))
    return Cites(calls)
