"""A tape that records: decisions happen, and what came of them is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Any

from spangate._redaction import Redaction
from spangate.tape._cassette import Decision, Header
from spangate.tape._outcomes import Outcome, why_not_kept
from spangate.tape._pending import Pending
from spangate.tape._tape import Tape
from spangate.tape._values import read, written
from spangate.tape._writer import Writer

Redact = Callable[[str, Any], Any]
"""A user's own redaction: it is given the kind and a value, and returns what may be kept of it."""


class Recording(Tape):
    """Lets decisions happen and keeps them.

    Args:
        path: The cassette.
        existing: What becomes of one that is there: ``refuse``, ``overwrite`` or ``append``.
        header: What its first line says.
        redact: Takes away what may not be kept beside the secrets.
        environment: Variables that may be read.
    """

    is_recording = True

    def __init__(
        self,
        path: str | PathLike[str],
        existing: str,
        header: Header,
        redact: Redact | None,
        environment: Iterable[str],
    ) -> None:
        super().__init__(environment)
        self._redaction = Redaction(header.redacted)
        self._redact = redact
        self._writing = threading.Lock()
        self._failure: BaseException | None = None
        self._writer = Writer(path, existing, header)
        for decision in self._writer.known:
            self._steps.numbered(decision.kind, _unnumbered(decision.payload))
            self._digests.append(decision.digest)

    def _decide(self, key: str, kind: str, payload: Mapping[str, Any]) -> Pending:
        if self._failure is not None:
            raise self._failure  # a recording that goes on without what came is a lie
        return _Kept(key, kind, payload, self)

    def keep(self, key: str, kind: str, payload: Mapping[str, Any], outcome: Outcome) -> None:
        """Write down what came of a decision, without secrets."""
        allowed = self._allowed(kind, payload)
        decision = Decision(key, kind, allowed, self._allowed_outcome(kind, outcome), is_redacted=allowed != payload)
        try:
            digest = decision.digest
        except (TypeError, ValueError, RecursionError):
            raise why_not_kept(outcome.value if outcome.chunks is None else [outcome.value, outcome.chunks]) from None
        with self._writing:
            try:
                self._writer.add(decision)
            except BaseException as error:
                self._failure = error
                raise
            self._digests.append(digest)

    def _allowed(self, kind: str, value: Any) -> Any:
        without = self._redaction.of(value)
        return without if self._redact is None else written(self._redact(kind, without))

    def _allowed_outcome(self, kind: str, outcome: Outcome) -> Outcome:
        chunks = outcome.chunks
        return replace(
            outcome,
            value=self._allowed_value(kind, outcome.value),
            chunks=None if chunks is None else [self._allowed_value(kind, chunk) for chunk in chunks],
        )

    def _allowed_value(self, kind: str, value: Any) -> Any:
        return value if isinstance(value, (str, bytes)) and self._redact is None else self._allowed(kind, value)

    def _told_otherwise(self, name: str) -> None:
        """Nothing was recorded before."""

    def close(self) -> None:
        """Close the cassette."""
        with self._writing:
            self._writer.close()


class _Kept(Pending):
    def __init__(self, key: str, kind: str, payload: Mapping[str, Any], tape: Recording) -> None:
        self.key = key
        self.outcome = None
        self._kind = kind
        self._payload = payload
        self._tape = tape

    def observed(self, outcome: Outcome) -> None:
        self._tape.keep(self.key, self._kind, self._payload, outcome)


def _unnumbered(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was decided from without the step, so that counting goes on where a cassette ends."""
    return {key: read(value) for key, value in payload.items() if key != "step"}
