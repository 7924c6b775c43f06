"""A call of a tool as the ledger has it, and what it means for the same call now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final, Literal, TypeAlias

from spangate._failures import FAILED
from spangate._records import Outcome

Sighting: TypeAlias = Literal["none", "awaited", "ended", "missing"]
"""What became of the span of a call: it has none, its run has not been judged, or it had ended by then, or had not."""
Origin: TypeAlias = Literal["guard", "span"]

COLUMNS: Final = (
    *("id", "fingerprint", "tool", "version", "tree_before", "tree_after", "outcome", "exit_code", "diff_stat"),
    *("session", "repository", "trace_id", "span_id", "sighting", "origin", "started_ns", "ended_ns"),
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of a tool, as the ledger has it. Its arguments are in the fingerprint and nowhere else.

    Attributes:
        id: Its number in the ledger, never given again.
        fingerprint: 16 hex digits; None where the arguments were not recorded.
        tool: The name of the tool.
        version: Its version, empty if nobody said.
        tree_before: The hash of the working tree when it began; None where no repository was known.
        tree_after: The same when it was over.
        outcome: What became of it; None while it runs, and for good if its process was killed meanwhile.
        exit_code: As the program said or, if nobody here saw it end, as its span said; None where there was none.
        diff_stat: How many files appeared, changed and went meanwhile, as ``+1 ~2 -0``; None where nobody knows.
        session: The session it belonged to, or empty.
        repository: The directory of the working tree, or empty.
        trace_id: 32 hex digits, or empty.
        span_id: 16 hex digits, or empty.
        sighting: ``ended`` if the gate saw its span end, ``missing`` if that was still open when its run was judged,
            ``awaited`` until then, ``none`` if it was made outside of any span.
        origin: ``guard`` for one that was made under :meth:`RetryLedger.guard`, ``span`` for one that was read from a
            span when its run was judged.
        started_ns: Nanoseconds since the epoch.
        ended_ns: Nanoseconds since the epoch; None while it runs.
    """

    id: int
    fingerprint: str | None
    tool: str
    version: str
    tree_before: str | None
    tree_after: str | None
    outcome: Outcome | None
    exit_code: int | None
    diff_stat: str | None
    session: str
    repository: str
    trace_id: str
    span_id: str
    sighting: Sighting
    origin: Origin
    started_ns: int
    ended_ns: int | None

    @property
    def is_incomplete(self) -> bool:
        """True if it says nothing for or against the same call: it was never seen to end, or its span was not.

        What failed here has failed, whatever became of its span.
        """
        return self.outcome is None or (self.sighting == "missing" and self.outcome not in FAILED)

    @property
    def failed(self) -> bool:
        """True if it ended with an error or its time was up."""
        return self.outcome in FAILED

    @property
    def changed_nothing(self) -> bool:
        """True if it succeeded and certainly left the working tree as it was."""
        is_same = self.tree_before is not None and self.tree_before == self.tree_after
        return is_same and self.outcome == "ok" and not self.is_incomplete

    def told(self) -> str:
        """Say in words how and when it ended."""
        if self.outcome is None:
            return f"began on {moment(self.started_ns)} and has not been seen to end"
        code = "" if self.exit_code is None else f" with exit code {self.exit_code}"
        unseen = ", and its span was never seen to end" if self.sighting == "missing" else ""
        return f"{_WORDS[self.outcome]}{code} on {moment(self.ended_ns or self.started_ns)}{unseen}"


@dataclass(frozen=True, slots=True)
class Veto:
    """Whether a call may be made, which is true if it is blocked.

    Attributes:
        blocked: Whether the same evidence is on record.
        reason: Why, in words.
        fingerprint: Of the call that was asked about; 16 hex digits.
        earlier: The call that decided; None where there was none.
    """

    blocked: bool
    reason: str
    fingerprint: str
    earlier: Attempt | None = None

    def __bool__(self) -> bool:
        """Whether the call is blocked."""
        return self.blocked


_WORDS: Final = {
    "ok": "succeeded",
    "error": "failed",
    "timeout": "took too long",
    "cancelled": "was cancelled",
    "control_flow": "handed control back",
}


def moment(ns: int) -> str:
    """Write nanoseconds since the epoch as a person reads them."""
    try:
        return datetime.fromtimestamp(ns / 1_000_000_000, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return f"{ns} ns after the epoch"


def ruling(fingerprint: str, decisive: Attempt | None, latest: Attempt | None) -> Veto:
    """Decide about a call that is to be made.

    ``decisive`` is the last call with this fingerprint, on the same tree, that tells something; ``latest`` the last one
    on whatever tree, told or not.
    """
    if decisive is not None:
        blocked = decisive.failed or decisive.changed_nothing
        return Veto(blocked, f"the same call {decisive.told()}{_consequence(decisive)}", fingerprint, decisive)
    reason = "no such call is on record" if latest is None else f"the same call {latest.told()}{_why_not(latest)}"
    return Veto(blocked=False, reason=reason, fingerprint=fingerprint, earlier=latest)


def _consequence(decisive: Attempt) -> str:
    if decisive.failed:
        return ", and nothing is known to have changed since" if decisive.tree_before is None else ", on this very tree"
    return " and changed nothing" if decisive.changed_nothing else ", and may have changed something"


def _why_not(latest: Attempt) -> str:
    """Say why an earlier call does not count."""
    if latest.is_incomplete:
        return ", which is no evidence"
    if latest.outcome in ("cancelled", "control_flow"):
        return ", which is no failure"
    return ", on a tree that nobody has recorded" if latest.tree_before is None else ", on another tree"


def attempt_of(row: Any) -> Attempt:
    """Make an attempt of a row of the table."""
    return Attempt(*row)
