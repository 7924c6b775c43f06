"""What a program talks to: its decisions go through a tape, which lets them happen and keeps them, or replays them."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, TypeVar

from spangate._canonical import text_hash
from spangate.tape._cassette import digest_of
from spangate.tape._errors import TapeError
from spangate.tape._keys import Steps, tape_key
from spangate.tape._outcomes import Outcome
from spangate.tape._pending import Pending
from spangate.tape._streams import arecorded, areplayed, recorded, replayed
from spangate.tape._tools import Options, Schema, taped
from spangate.tape._values import written

Own = TypeVar("Own", bound="Tape")
Value = TypeVar("Value")
Function = TypeVar("Function", bound=Callable[..., Any])
Dump = Callable[[Any], Any]

IDEMPOTENCY_KEY: Final = "idempotency_key"
ENVIRONMENT: Final = "env"


class Tape(ABC):
    """A tape that records or replays; made by :func:`record` and :func:`replay`, to be used in a ``with`` statement.

    Threads and tasks may share it. Keys do not depend on the order in which what runs in parallel decides: a payload
    that has no ``step`` of its own is numbered by how often the same was decided before.
    """

    is_recording: bool

    def __init__(self, environment: Iterable[str]) -> None:
        self._environment = frozenset(environment)
        self._steps = Steps()
        self._numbering = threading.Lock()
        self._digests: list[str] = []

    @property
    def digest(self) -> str:
        """One hash of all decisions so far and of what came of them, 16 hex digits; the same on every replay."""
        return digest_of(self._digests)

    def decide(self, kind: str, payload: Mapping[str, Any], *, idempotency_key: str | None = None) -> Pending:
        """Make a decision whose outcome comes later: what :meth:`call` and transports of clients are made of.

        Raises:
            TapeError: the payload is not JSON.
            ReplayMiss: nothing like it was recorded.
        """
        made = dict(payload) if idempotency_key is None else {**payload, IDEMPOTENCY_KEY: idempotency_key}
        with self._numbering:
            numbered = self._steps.numbered(kind, made)
        return self._decide(tape_key(kind, numbered), kind, written(numbered))

    @abstractmethod
    def _decide(self, key: str, kind: str, payload: Mapping[str, Any]) -> Pending: ...

    def call(
        self,
        kind: str,
        payload: Mapping[str, Any],
        do: Callable[[], Value],
        *,
        idempotency_key: str | None = None,
        dump: Dump | None = None,
        load: Dump | None = None,
    ) -> Value:
        """Return what ``do`` returns, now or when it was recorded. When it is replayed, ``do`` is not called.

        Args:
            kind: ``llm``, ``tool``, or a word of your own.
            payload: What the call is made from, as JSON; with its ``step``, if your loop counts them.
            do: Makes the call.
            idempotency_key: The key by which the other side knows a call that is made twice, if there is one.
            dump: Turns what ``do`` returns into JSON; needed for anything else. Tuples come back as lists.
            load: Turns that back.

        Raises:
            TapeError: the payload or the result is not JSON.
            ReplayMiss: nothing like it was recorded.
            CassetteError: it cannot be written.
        """
        pending = self.decide(kind, payload, idempotency_key=idempotency_key)
        if pending.outcome is not None:
            known: Value = _given(pending.outcome, load)
            return known
        try:
            value = do()
        except Exception as error:
            pending.observed(Outcome(error=error))
            raise
        pending.observed(Outcome(value if dump is None else dump(value)))
        return value

    async def acall(
        self,
        kind: str,
        payload: Mapping[str, Any],
        do: Callable[[], Awaitable[Value]],
        *,
        idempotency_key: str | None = None,
        dump: Dump | None = None,
        load: Dump | None = None,
    ) -> Value:
        """Await what ``do`` returns, as :meth:`call`. A call that is cancelled is not recorded."""
        pending = self.decide(kind, payload, idempotency_key=idempotency_key)
        if pending.outcome is not None:
            known: Value = _given(pending.outcome, load)
            return known
        try:
            value = await do()
        except Exception as error:
            pending.observed(Outcome(error=error))
            raise
        pending.observed(Outcome(value if dump is None else dump(value)))
        return value

    def stream(self, kind: str, payload: Mapping[str, Any], do: Callable[[], Iterable[Any]]) -> Iterator[Any]:
        """Yield what ``do`` yields, piece by piece, as it was recorded; of one that was left early, what was read."""
        pending = self.decide(kind, payload)
        return replayed(pending.outcome) if pending.outcome is not None else recorded(pending, do)

    def astream(
        self, kind: str, payload: Mapping[str, Any], do: Callable[[], AsyncIterator[Any]]
    ) -> AsyncIterator[Any]:
        """Yield what ``do`` yields, as :meth:`stream`."""
        pending = self.decide(kind, payload)
        return areplayed(pending.outcome) if pending.outcome is not None else arecorded(pending, do)

    def tool(  # noqa: PLR0913  what may be said of a tool
        self,
        function: Function | None = None,
        *,
        name: str | None = None,
        schema: Schema | None = None,
        ignore: Sequence[str] = (),
        idempotency_key: str | None = None,
        irreversible: bool = False,
        stub: Callable[..., Any] | None = None,
        dump: Dump | None = None,
        load: Dump | None = None,
    ) -> Any:
        """Have every call of a function, sync or async, go through the tape: ``@tape.tool`` or ``@tape.tool(name=…)``.

        Args:
            function: The tool.
            name: Its name, if not the function's.
            schema: What the model is told of it; by default the names and types of its parameters. It is part of the
                key, so that a tool whose schema changed misses.
            ignore: Parameters that do not decide, such as a context that frameworks hand in.
            idempotency_key: The parameter that holds the call's idempotency key.
            irreversible: True for what cannot be undone: it is not called while recording, ``stub`` is.
            stub: What stands in for it while recording.
            dump: As for :meth:`call`.
            load: As for :meth:`call`.

        Raises:
            TapeError: an irreversible tool without a stub, on a tape that records.
        """
        if irreversible and stub is None and self.is_recording:
            what = name or getattr(function, "__name__", "the tool")
            raise TapeError(f"{what} cannot be undone: give it a stub, which is recorded in its place")
        options = Options(name, schema, tuple(ignore), idempotency_key, stub if irreversible else None, dump, load)
        return taped(lambda: self, options) if function is None else taped(lambda: self, options)(function)

    def environ(self, name: str, default: str | None = None) -> str | None:
        """Return a variable of the environment, of which a hash is recorded; when it is replayed, that is compared.

        Raises:
            TapeError: the name is not on the tape's list (``environment=``).
        """
        if name not in self._environment:
            raise TapeError(f"{name} is not read through this tape: add it to environment=")
        value = os.environ.get(name, default)
        pending = self.decide(ENVIRONMENT, {"name": name})
        found = Outcome({"sha256": None if value is None else text_hash(value)})
        if pending.outcome is None:
            pending.observed(found)
        elif pending.outcome.value != found.value:
            self._told_otherwise(name)
        return value

    @abstractmethod
    def _told_otherwise(self, name: str) -> None:
        """Deal with a variable that has another value than it had."""

    @abstractmethod
    def close(self) -> None:
        """End the tape."""

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _given(outcome: Outcome, load: Dump | None) -> Any:
    if outcome.error is not None:
        raise outcome.error
    return outcome.value if load is None else load(outcome.value)
