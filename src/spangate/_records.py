"""What a run is made of, as data: spans, their events and links, findings and verdicts.

Nothing here asks a question; the layers above do. Absent is never zero: a value that was not recorded is ``ABSENT``
(in an attribute) or ``None`` (in a field), and a gate whose evidence is absent says so instead of passing.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from spangate._run import Run


class Absent(enum.Enum):
    """The type of ``ABSENT``, the value of something that was not recorded at all."""

    ABSENT = "absent"

    def __bool__(self) -> Literal[False]:
        """Absent counts as false, so that ``value or default`` reads as one expects."""
        return False

    def __repr__(self) -> str:
        """Read like the name it is imported by."""
        return "ABSENT"


ABSENT: Final = Absent.ABSENT

Role: TypeAlias = Literal[
    "agent", "workflow", "generation", "tool", "iteration", "process", "setup", "transport", "entry", "other"
]
AGENT_ROLES: Final[frozenset[str]] = frozenset({"agent", "workflow", "generation", "tool", "iteration"})
"""The roles that make a run. A ``process`` span belongs to the run it is in and makes none."""

SpanStatus: TypeAlias = Literal["UNSET", "OK", "ERROR"]
Outcome: TypeAlias = Literal["ok", "error", "timeout", "cancelled", "control_flow"]
"""Effective status: what became of a span, whatever status its framework wrote."""

Level: TypeAlias = Literal["fail", "warn", "off", "not_evaluable"]
GateResult: TypeAlias = Literal["pass", "fail", "not_evaluable"]
Trigger: TypeAlias = Literal[
    "root_end", "force_flush", "shutdown", "idle", "age", "memory", "late_span", "recovery", "offline"
]


@dataclass(frozen=True, slots=True)
class Event:
    """A span event. ``time_ns`` is nanoseconds since the epoch."""

    name: str
    attributes: Mapping[str, Any]
    time_ns: int = 0


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another span."""

    trace_id: int
    span_id: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Span:
    """One span of a run. Read-only by agreement: frozen dataclasses cost three times as much to make.

    Times are nanoseconds since the epoch; ``end_ns`` is None while the span is open. ``role`` is what the span's
    dialect makes of it. ``parent_remote`` says that the parent lives in another process, ``parent_sampled`` that the
    parent's context had the sampled flag; both mean nothing where ``parent_id`` is None.
    ``source`` is what the span was read from, for whoever sends it on: None for one from a recording; ``is_verbatim``
    says that name, kind, times and status stand there as they stand here. ``weight`` is in
    bytes, None until somebody has measured it (:func:`spangate._payload.span_bytes`), ``dialect`` is the reader of its
    convention, None until somebody has asked for it (:func:`spangate._dialects.dialect_of`).
    ``sender_id`` is the id of the span of the program that sent this one, None for a span of this process.
    """

    trace_id: int
    span_id: int
    parent_id: int | None
    name: str
    start_ns: int
    end_ns: int | None = None
    kind: str = "INTERNAL"
    scope: str = ""
    status: SpanStatus = "UNSET"
    status_description: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[Event] = ()
    links: Sequence[Link] = ()
    resource: Mapping[str, Any] = field(default_factory=dict)
    parent_remote: bool = False
    parent_sampled: bool = True
    sampled: bool = True
    dropped_attributes: int = 0
    dropped_events: int = 0
    dropped_links: int = 0
    scope_version: str = ""
    source: Any = None
    is_verbatim: bool = False
    role: Role = "other"
    weight: int | None = None
    dialect: Any = None
    sender_id: int | None = None

    @property
    def is_open(self) -> bool:
        """True if the span was started and has not ended."""
        return self.end_ns is None

    @property
    def hex_id(self) -> str:
        """The span id as 16 hex digits."""
        return format(self.span_id, "016x")

    @property
    def hex_trace_id(self) -> str:
        """The trace id as 32 hex digits."""
        return format(self.trace_id, "032x")

    def __repr__(self) -> str:
        """One line for a person: role, name, id and whether it is open."""
        state = "open" if self.end_ns is None else self.status
        return f"<Span {self.role} {self.name!r} {self.hex_id} {state}>"


@dataclass(frozen=True, slots=True)
class Exit:
    """A program that ran and ended, as the operating system tells it, whatever its span says.

    ``code`` is the exit code; killed by signal N is -N. ``timed_out`` says that it was killed because its time was up,
    ``ended_ns`` is when that was seen, nanoseconds since the epoch. ``trace_id`` and ``span_id`` are those of the span
    that was opened for it. ``output_sha256`` is the hash of what it wrote, stdout NUL stderr, and ``output_bytes`` how
    much that was; None where nobody here has read it.
    """

    invocation_id: str
    code: int
    timed_out: bool = False
    ended_ns: int = 0
    trace_id: int = 0
    span_id: int = 0
    output_sha256: str | None = None
    output_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Delta:
    """What became of one path of a working tree: the hash of what was there and of what is, None for nothing.

    Hashes are SHA-256 in hex, of a link that of the text of its target. ``before`` is ``git:`` with an object id where
    git had seen no difference from the last commit, and nothing was hashed. Both are equal where only the mode, or the
    kind, has changed. ``is_whole`` says that the path is a directory that git names as one, a submodule for example.
    """

    before: str | None
    after: str | None
    is_whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What became of a working tree during a run. Paths are relative to its top, ``root``, with slashes.

    ``on_disk`` has the hash of what stands under each path that a span claims to have written, None for nothing.
    ``written`` has, by trace id and span id, the paths that tools of the policy's table wrote, each with the hash of
    what stood there when the tool ended; ``ABSENT`` where that is not known. ``unknown`` says why nothing is known;
    ``since_earlier`` why ``deltas`` may hold what had changed before the run began.
    """

    root: str = ""
    deltas: Mapping[str, Delta] = field(default_factory=dict)
    on_disk: Mapping[str, str | None] = field(default_factory=dict)
    written: Mapping[tuple[int, int], Sequence[tuple[str, str | Absent | None]]] = field(default_factory=dict)
    ignores_case: bool = False
    unknown: str = ""
    since_earlier: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a gate saw: ``code`` is stable and dotted (grouped on), ``detail`` is for people.

    ``level`` is None where the default of the code holds (:mod:`spangate._codes`); a gate sets it where the rule
    depends on its settings. ``not_evaluable`` marks evidence that is absent: with the code ``<gate>.not_evaluable``
    it is the whole gate's answer, with another code only that rule's.
    """

    code: str
    span: Span | None = None
    detail: str = ""
    level: Level | None = None

    @property
    def gate(self) -> str:
        """The gate's name: what stands before the first dot of the code."""
        return self.code.partition(".")[0]


@dataclass(slots=True, eq=False)
class LogRecord:
    """A log record that belongs to a run, as data. Read-only by agreement.

    ``trace_id`` and ``span_id`` are 0 where it names no span. ``time_ns`` is nanoseconds since the epoch: when it
    happened, else when it was seen; ``severity`` OpenTelemetry's number, 1 to 24, 0 if none was given. ``event_name``
    is empty unless the record is an event. ``span_ended`` says that the span it names had ended when it was emitted.
    """

    trace_id: int
    span_id: int
    time_ns: int = 0
    severity: int = 0
    severity_text: str = ""
    body: Any = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    event_name: str = ""
    span_ended: bool = False


def not_evaluable(code: str, why: str, span: Span | None = None) -> Finding:
    """Make the finding that says which evidence is absent. ``code`` is ``<gate>.not_evaluable`` or one rule's code."""
    return Finding(code, span, why, "not_evaluable")


@dataclass(frozen=True, slots=True)
class Totals:
    """What a run used and held. A token or byte sum is None where it cannot be evaluated: never zero for absent."""

    spans_started: int
    spans_ended: int
    input_tokens: int | None = None
    output_tokens: int | None = None
    tool_payload_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for one run.

    ``findings`` holds failures first, then warnings, each with its level in force; ``gaps`` what could not be
    evaluated and why; ``gates`` the three-valued result of every gate by name. ``spans_withheld`` counts the ended
    spans that a refusal keeps from the exporter. ``supersedes`` is the span id (16 hex digits) of the earlier verdict
    of the same run, or None.
    """

    verdict: Literal["pass", "fail"]
    run_id: str
    run_name: str
    trigger: Trigger
    root: Span
    findings: tuple[Finding, ...]
    gaps: tuple[Finding, ...]
    gates: Mapping[str, GateResult]
    totals: Totals
    policy: str
    cluster: str | None = None
    spans_withheld: int = 0
    supersedes: str | None = None

    @property
    def passed(self) -> bool:
        """True if the run may be believed."""
        return self.verdict == "pass"

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that refuse the run."""
        return tuple(finding for finding in self.findings if finding.level == "fail")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that travel with the run."""
        return tuple(finding for finding in self.findings if finding.level == "warn")


Gate: TypeAlias = "Callable[[Run], Iterator[Finding]]"
"""A pure question to a run. A function, or a frozen keyword-only dataclass with ``__call__`` where it has settings.

Its name (``gate_name`` in :mod:`spangate._judge`) is the function's or, in lower case, the class's. It yields findings
and never raises, reads no clock and does no I/O; one that raises all the same fails the run with ``gate.error``.
"""
