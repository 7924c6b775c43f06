"""The turns of one agent: what the model asked for, and whether the results came back to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from spangate._dialects._base import ToolCall, Turn
from spangate._dialects._langgraph import is_structured_answer
from spangate._records import Span

Key: TypeAlias = tuple[str, str]
"""What a call and its result are joined by: the call id, else the name."""

_HAND_OFFS: Final = ("transfer_to_", "transfer_back_to_", "handoff")


@dataclass(eq=False, slots=True)
class Call:
    """What one turn of ``agent`` asked for under one call id (or name), once or several times.

    ``answered`` counts the results that came back to a later generation of the agent, the last of them to
    ``receiver``; ``unserved`` holds the arguments of each time that no tool span stands for. ``went_on`` says that some
    result of the turn came back at all. ``unchecked`` says why spans and results cannot be compared, if so.
    """

    asker: Span
    agent: Span | None
    call_id: str | None
    name: str | None
    asked: int = 0
    answered: int = 0
    receiver: Span | None = None
    unserved: list[Any] = field(default_factory=list)
    went_on: bool = False
    unchecked: str = ""

    @property
    def executed(self) -> int:
        """How many tool spans stand for it."""
        return self.asked - len(self.unserved)

    @property
    def missing(self) -> int:
        """How many results the model received that no tool span produced."""
        return max(0, self.answered - self.executed)

    @property
    def lost(self) -> int:
        """How many of the calls neither ran nor were answered, in a turn that was otherwise dealt with."""
        dealt_with = self.went_on or (self.asked > 1 and self.executed > 0)
        return self.asked - max(self.answered, self.executed) if dealt_with else 0


@dataclass(eq=False, slots=True)
class _Asked:
    """The calls of one turn by their keys."""

    asker: Span
    offered: frozenset[str] | None = None
    calls: dict[Key, Call] = field(default_factory=dict)
    went_on: bool = False


class Conversation:
    """Follows the generations of one agent; those with no agent above them share a conversation, for want of better."""

    def __init__(self, agent: Span | None) -> None:
        self._agent = agent
        self._turns: list[_Asked] = []
        self._silent: _Asked | None = None
        self._seen: Counter[Key] = Counter()
        # calls that wait for results, with the number of results under their key that stood there before they were made
        self._waiting: dict[Key, tuple[_Asked, Call, int]] = {}

    def follow(self, span: Span, turn: Turn) -> None:
        """Take in the next generation: the results in its input first, then what it asks for."""
        counts = self._receive(span, turn.received or ())
        if turn.asked:
            self._ask(span, turn.asked, turn.offered, counts)
        elif turn.asked is None and self._agent is not None:
            self._silent = _Asked(span, turn.offered)
            self._turns.append(self._silent)

    def _receive(self, span: Span, results: Sequence[ToolCall]) -> Counter[Key]:
        named = {key: result for result in results if (key := _key(result)) is not None}
        counts = Counter(key for result in results if (key := _key(result)) is not None)
        for key, count in counts.items():
            new = count - self._seen[key]
            self._seen[key] = max(count, self._seen[key])
            by_name = ("name", named[key].name or "")
            if key in self._waiting:
                self._answer(key, count - self._waiting[key][2], span, named[key])
            elif new > 0 and by_name in self._waiting:  # the id was not recorded with the call
                self._answer(by_name, self._waiting[by_name][1].answered + new, span, named[key])
            elif new > 0 and self._silent is not None:
                self._add_unrecorded(self._silent, named[key], new, span)
        return counts

    def _answer(self, key: Key, results: int, receiver: Span, result: ToolCall) -> None:
        turn, call, _ = self._waiting[key]
        answered = min(results, call.asked)
        if answered > call.answered:
            call.unchecked = call.unchecked or _why_not_run(result)
            call.answered, call.receiver, turn.went_on = answered, receiver, True
            if answered == call.asked:
                del self._waiting[key]

    def _add_unrecorded(self, turn: _Asked, result: ToolCall, times: int, receiver: Span) -> None:
        """Note a call that nobody recorded when it was asked for, and of which the result tells."""
        call = Call(turn.asker, self._agent, result.call_id, result.name, times, times, receiver)
        call.unchecked = _why_unchecked(result.name, turn.offered) or _why_not_run(result)
        call.unserved.extend([result.arguments] * times)
        turn.calls["unrecorded", str(len(turn.calls))] = call

    def _ask(
        self, span: Span, wanted: Sequence[ToolCall], offered: frozenset[str] | None, history: Counter[Key]
    ) -> None:
        """Note what a generation asks for; a key that is asked for anew closes what waited under it."""
        turn = _Asked(span)
        for tool_call in wanted:
            key = _key(tool_call)
            if key is not None:
                if key not in turn.calls:
                    turn.calls[key] = Call(span, self._agent, tool_call.call_id, tool_call.name)
                    turn.calls[key].unchecked = _why_unchecked(tool_call.name, offered)
                turn.calls[key].asked += 1
                turn.calls[key].unserved.append(tool_call.arguments)
        for key, call in turn.calls.items():
            if key in self._waiting and not self._waiting[key][0].went_on:
                rival = self._waiting[key][1]
                rival.unchecked = call.unchecked = "two turns use its call id at the same time"
            self._waiting[key] = turn, call, history[key]
        self._turns.append(turn)

    def finished(self) -> Iterator[Call]:
        """Yield every call in the order of asking, with the last word on whether its turn went on."""
        for turn in self._turns:
            for call in turn.calls.values():
                call.went_on = turn.went_on
                yield call


def _key(call: ToolCall) -> Key | None:
    """Return the key of a call of ours; None if it ran at the provider, or says nothing of itself."""
    if call.at_provider:
        return None
    if call.call_id is not None:
        return "id", call.call_id
    return None if call.name is None else ("name", call.name)


def _why_unchecked(name: str | None, offered: frozenset[str] | None) -> str:
    if name is not None and name.startswith(_HAND_OFFS):
        return "a hand-off runs no tool"
    if offered is not None and name not in offered:
        return "it is not among the recorded tool definitions"
    return ""


def _why_not_run(result: ToolCall) -> str:
    return "it carries the agent's answer, which runs no tool" if is_structured_answer(result.result) else ""
