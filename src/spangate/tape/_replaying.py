"""A tape that replays: what was recorded comes again, nothing else happens, and every difference is told."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Any, Final, Literal, TypeAlias

from spangate._redaction import Redaction
from spangate._units import counted
from spangate.tape._cassette import Cassette, Decision
from spangate.tape._errors import LeftOverError, ReplayMiss, TapeError
from spangate.tape._outcomes import Outcome
from spangate.tape._pending import Pending
from spangate.tape._tape import Tape
from spangate.tape._values import first_difference

Severity: TypeAlias = Literal["ignore", "warn", "raise"]
"""What a difference between then and now does."""

_LOOKED_AT: Final = 256
"""So many recorded decisions are looked at to find the nearest to one that missed."""
_NAMED: Final = 3
_logger = logging.getLogger("spangate")


@dataclass(frozen=True, slots=True)
class Report:
    """How far a replay agreed with its recording.

    Attributes:
        agreed: Decisions that were replayed.
        recorded: Decisions in the cassette.
        left: Those that were never made, in their order.
        misses: What was decided and not recorded.
        environment: Variables that have other values than they had.
        commit: How the program itself differs, in words; empty if it does not, or that is not known.
    """

    agreed: int
    recorded: int
    left: tuple[Decision, ...]
    misses: tuple[ReplayMiss, ...]
    environment: tuple[str, ...]
    commit: str

    @property
    def is_same(self) -> bool:
        """True if every recorded decision was made, no other one, and the environment was the same."""
        return not (self.left or self.misses or self.environment)


class Replaying(Tape):
    """Replays a cassette.

    Args:
        cassette: What was recorded.
        commit: How the program itself differs, in words.
        left_over: What recorded decisions do that were never made, at the end.
        environment: Variables that may be read.
        changed_environment: What a variable with another value does.
    """

    is_recording = False

    def __init__(
        self,
        cassette: Cassette,
        commit: str,
        left_over: Severity,
        environment: Iterable[str],
        changed_environment: Severity,
    ) -> None:
        super().__init__(environment)
        self._decisions = cassette.decisions
        self._redaction = Redaction(cassette.header.redacted)
        self._commit = commit
        self._left_over = left_over
        self._changed_environment = changed_environment
        self._looking = threading.Lock()
        self._waiting: dict[str, deque[Decision]] = defaultdict(deque)
        for decision in self._decisions:
            self._waiting[decision.key].append(decision)
        self._misses: list[ReplayMiss] = []
        self._hidden: list[ReplayMiss] = []
        self._other: dict[str, None] = {}

    def _decide(self, key: str, kind: str, payload: Mapping[str, Any]) -> Pending:
        with self._looking:
            waiting = self._waiting.get(key)
            if waiting:
                decision = waiting.popleft()
                self._digests.append(decision.digest)
                return _Known(key, decision.outcome)
            miss = self._miss(key, kind, self._redaction.of(payload))
            self._misses.append(miss)
        raise miss

    def _miss(self, key: str, kind: str, payload: Mapping[str, Any]) -> ReplayMiss:
        left = (one for one in self._left() if one.kind == kind)
        nearest = max(islice(left, _LOOKED_AT), key=partial(_likeness, payload), default=None)
        return ReplayMiss(
            key,
            agreed=len(self._digests),
            recorded=len(self._decisions),
            nearest=None if nearest is None else nearest.key,
            difference=None if nearest is None else first_difference(nearest.payload, payload),
        )

    def hide(self, miss: ReplayMiss) -> None:
        """Keep a miss that somebody else's client turns into an error of its own, to be raised at the end."""
        with self._looking:
            self._hidden.append(miss)

    def _left(self) -> list[Decision]:
        waiting = {id(one) for decisions in self._waiting.values() for one in decisions}
        return [one for one in self._decisions if id(one) in waiting]

    def _told_otherwise(self, name: str) -> None:
        self._other[name] = None
        told = f"{name} has another value than when the cassette was recorded"
        if self._changed_environment == "raise":
            raise TapeError(told)
        if self._changed_environment == "warn":
            _logger.warning("%s", told)

    @property
    def report(self) -> Report:
        """How far the replay agrees with the recording so far."""
        with self._looking:
            left = tuple(self._left())
            misses = tuple(self._misses)
        agreed, recorded = len(self._decisions) - len(left), len(self._decisions)
        return Report(agreed, recorded, left, misses, tuple(self._other), self._commit)

    def close(self) -> None:
        """End the replay, and deal with what is left over as the tape was told to.

        Raises:
            LeftOverError: something is, and it was told to raise.
        """
        left = self.report.left
        if not left or self._left_over == "ignore":
            return
        names = [one.key for one in left[:_NAMED]] + ([f"{len(left) - _NAMED} more"] if len(left) > _NAMED else [])
        told = f"{counted(len(left), 'recorded decision')} never made: {', '.join(names)}"
        if self._left_over == "raise":
            raise LeftOverError(told)
        _logger.warning("%s", told)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._hidden and not isinstance(error, ReplayMiss):
            raise self._hidden[0] from error
        if error is None:  # what ended the program early says more than what was left
            self.close()


def _likeness(payload: Mapping[str, Any], decision: Decision) -> int:
    return sum(payload.get(key) == value for key, value in decision.payload.items())


class _Known(Pending):
    def __init__(self, key: str, outcome: Outcome) -> None:
        self.key = key
        self.outcome: Outcome | None = outcome

    def observed(self, outcome: Outcome) -> None:
        """Keep nothing: it is known."""
