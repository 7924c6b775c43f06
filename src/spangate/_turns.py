"""What the model asked for in each turn, and whether the results came back to it: read from the generations alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from spangate._dialects import dialect_of
from spangate._dialects._base import ToolCall
from spangate._lineage import nearest
from spangate._records import Span
from spangate._run import Run

Key: TypeAlias = tuple[str, str]
"""What a call and its result are joined by: the call id, else the name."""

_HAND_OFFS: Final = ("transfer_to_", "handoff")
FRAMES: Final = frozenset({"generation", "tool", "agent"})
"""Roles of spans that part what is inside them from what is around: a span in one of another belongs to its call."""


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


def read_calls(run: Run) -> list[Call] | None:
    """Return the calls of every turn in the order of asking; None if no generation records what it asked for."""
    agent_above = nearest(run, lambda span: span.role == "agent")
    frame_above = nearest(run, lambda span: span.role in FRAMES)
    conversations: dict[Span | None, _Conversation] = {}
    told: set[Span | None] = set()
    responses: set[str | None] = set()
    recorded = False
    for span in run.of_role("generation"):
        if told and frame_above(span) in told:
            told.add(span)  # another instrumentation of a call that was read
            continue
        dialect = dialect_of(span)
        turn = dialect.turn(span)
        recorded = recorded or turn.asked is not None
        if not turn.asked and not turn.received:
            continue
        agent = agent_above(span)
        conversation = conversations.setdefault(agent, _Conversation(agent))
        history = conversation.receive(span, turn.received or ())
        if turn.asked:
            told.add(span)
            response_id = dialect.response_id(span)
            if response_id is None or response_id not in responses:
                conversation.ask(span, turn.asked, turn.offered, history)
            responses.add(response_id)
    if not recorded:
        return None
    return [call for conversation in conversations.values() for call in conversation.finished()]


@dataclass(eq=False, slots=True)
class _Turn:
    calls: dict[Key, Call] = field(default_factory=dict)
    went_on: bool = False


class _Conversation:
    """The turns of one agent. Generations with no agent above them share one: some stand alone in their trees."""

    def __init__(self, agent: Span | None) -> None:
        self._agent = agent
        self._turns: list[_Turn] = []
        # calls that wait for results, with the number of results under their key that stood there before they were made
        self._waiting: dict[Key, tuple[_Turn, Call, int]] = {}

    def receive(self, span: Span, results: Iterable[ToolCall]) -> Counter[Key]:
        """Note which waiting calls the results in a generation's input answer; return how many stand under each key."""
        counts = Counter(_keys(results))
        for key, count in counts.items():
            if key in self._waiting:
                turn, call, before = self._waiting[key]
                new = min(count - before, call.asked)
                if new > call.answered:
                    call.answered, call.receiver, turn.went_on = new, span, True
                    if new == call.asked:
                        del self._waiting[key]
        return counts

    def ask(
        self, span: Span, wanted: Sequence[ToolCall], offered: frozenset[str] | None, history: Counter[Key]
    ) -> None:
        """Note what a generation asks for; a key that is asked for anew closes what waited under it."""
        turn = _Turn()
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


def _keys(calls: Iterable[ToolCall]) -> Iterator[Key]:
    for call in calls:
        key = _key(call)
        if key is not None:
            yield key


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
