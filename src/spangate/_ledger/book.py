"""A ledger with what counts in it: whether a call may be made, its row when it begins, and how it ended."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from spangate._attempts import Call, is_exempt
from spangate._errors import SpangateError
from spangate._ledger import table
from spangate._ledger.errors import RetryBlocked
from spangate._ledger.rows import Attempt, Veto
from spangate._ledger.store import Store
from spangate._ledger.trees import Seen, Tree
from spangate._records import Outcome
from spangate._redaction import Redaction

_logger = logging.getLogger("spangate")
_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that is to be made, and where: ``trace_id`` and ``span_id`` are those of the current span, or 0.

    ``session`` and ``max_age_s`` (seconds) are None where those of the ledger hold, ``tree_hash`` where the tree is the
    repository's.
    """

    call: Call
    session: str | None
    max_age_s: float | None
    tree_hash: str | None
    trace_id: int = 0
    span_id: int = 0


@dataclass(frozen=True, slots=True)
class Begun:
    """A call that is being made: its row, and the working tree as it was."""

    attempt: Attempt
    tree: Seen | None


@dataclass(frozen=True, slots=True)
class Ending:
    """How a call has ended."""

    outcome: Outcome
    exit_code: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What counts in a ledger, as :class:`spangate.ledger.RetryLedger` is told. ``repository`` is empty for none."""

    repository: str
    session: str | None
    max_age_s: float | None
    exempt: Sequence[str]
    redaction: Redaction
    clock: Callable[[], int]


class Book:
    """The ledger in the file at ``path``; whoever wants to write waits ``patience_s`` seconds for others."""

    def __init__(self, path: str, patience_s: float, terms: Terms) -> None:
        self.path = path
        self.terms = terms
        self.store = Store(path, patience_s)
        self._tree = Tree(terms.repository, path) if terms.repository else None

    def ask(self, asked: Asked) -> Veto:
        """Decide about a call, and write nothing. Raises :class:`SpangateError`."""
        if is_exempt(asked.call.tool, self.terms.exempt):
            return _exempted(asked.call)
        tree_hash = asked.tree_hash
        if tree_hash is None and self._tree is not None:
            tree_hash = self._tree.hash()
        with self.store.reading() as connection:
            return table.judged(connection, self._scope(asked), tree_hash)

    def begin(self, asked: Asked) -> Begun:
        """Write down that a call begins, in one step with the decision that it may.

        Raises:
            RetryBlocked: it may not.
            SpangateError: the ledger cannot be written, or the working tree not be read.
        """
        seen = self._tree.look() if asked.tree_hash is None and self._tree is not None else None
        attempt = self._attempt(asked, asked.tree_hash if seen is None else seen.tree_hash)
        exempt = is_exempt(asked.call.tool, self.terms.exempt)
        with self.store.writing() as connection:
            veto = None if exempt else table.judged(connection, self._scope(asked), attempt.tree_before)
            number = 0 if veto else table.insert(connection, attempt)
        if veto:
            raise RetryBlocked(asked.call.tool, veto, self.path)
        return Begun(replace(attempt, id=number), seen)

    def finish(self, begun: Begun, ending: Ending) -> None:
        """Write down how a call has ended. Raises :class:`spangate.ledger.LedgerError`."""
        ended_ns = self.terms.clock()
        tree_after, diff_stat = self._changes(begun)
        attempt = replace(
            begun.attempt,
            tree_after=tree_after,
            diff_stat=diff_stat,
            outcome=ending.outcome,
            exit_code=ending.exit_code,
            ended_ns=ended_ns,
        )
        with self.store.writing() as connection:
            table.finish(connection, attempt)

    def _changes(self, begun: Begun) -> tuple[str | None, str | None]:
        if begun.tree is None or self._tree is None:
            return None, None
        try:
            return self._tree.since(begun.tree)
        except SpangateError as error:  # the call is made, and not at fault
            _logger.warning("what %s has changed is not known: %s", begun.attempt.tool, error)
            return None, None

    def _scope(self, asked: Asked) -> table.Scope:
        age_s = self.terms.max_age_s if asked.max_age_s is None else asked.max_age_s
        since_ns = None if age_s is None else self.terms.clock() - round(age_s * _SECOND)
        session = self.terms.session if asked.session is None else asked.session
        return table.Scope(asked.call.fingerprint, session, self.terms.repository, since_ns)

    def _attempt(self, asked: Asked, tree_hash: str | None) -> Attempt:
        session = self.terms.session if asked.session is None else asked.session
        return Attempt(
            id=0,
            fingerprint=asked.call.fingerprint,
            tool=asked.call.tool,
            version=asked.call.version,
            tree_before=tree_hash,
            tree_after=None,
            outcome=None,
            exit_code=None,
            diff_stat=None,
            session=session or "",
            repository=self.terms.repository,
            trace_id=format(asked.trace_id, "032x") if asked.trace_id else "",
            span_id=format(asked.span_id, "016x") if asked.span_id else "",
            sighting="awaited" if asked.span_id else "none",
            origin="guard",
            started_ns=self.terms.clock(),
            ended_ns=None,
        )


def _exempted(call: Call) -> Veto:
    return Veto(blocked=False, reason=f"{call.tool} is exempt", fingerprint=call.fingerprint or "")
