"""The errors that spangate raises. Each says what is wrong, where, and what to do about it."""

from __future__ import annotations


class SpangateError(Exception):
    """The base of every error that spangate raises on purpose."""


class RecordingError(SpangateError):
    """A recording that cannot be read.

    Whoever notices knows least about the place; those above it add what they know (:meth:`within`, :meth:`at`).

    Args:
        what: what is wrong.
        field: the field inside the record, as ``resourceSpans[0].resource``.
        place: the line or message, as ``line 3``.
        source: the name of the file.
    """

    def __init__(self, what: str, *, field: str = "", place: str = "", source: str = "") -> None:
        super().__init__(what, field, place, source)
        self.what = what
        self.field = field
        self.place = place
        self.source = source

    def within(self, step: str) -> RecordingError:
        """Return the same error seen from the record that holds ``step``."""
        field = f"{step}.{self.field}" if self.field else step
        return RecordingError(self.what, field=field, place=self.place, source=self.source)

    def at(self, source: str, place: str = "") -> RecordingError:
        """Return the same error with the file it is in, and the line or message if that is not known yet."""
        return RecordingError(self.what, field=self.field, place=self.place or place, source=source)

    def __str__(self) -> str:
        """Read as ``file: line 3: field: what is wrong``, without the parts that nobody knows."""
        return ": ".join(part for part in (self.source, self.place, self.field, self.what) if part)


class PolicyError(SpangateError):
    """A policy file that cannot mean what it says.

    Args:
        what: what is wrong, and what would be right.
        source: the name of the file.
        key: the key in it, as ``budget.max_input_tokens``; empty where the whole file is meant.
    """

    def __init__(self, what: str, *, source: str, key: str = "") -> None:
        super().__init__(what, source, key)
        self.what = what
        self.source = source
        self.key = key

    def __str__(self) -> str:
        """Read as ``file: key: what is wrong``."""
        return ": ".join(part for part in (self.source, self.key, self.what) if part)


class LoopError(SpangateError):
    """A step of a loop of yours that its rules refuse. Nothing has happened but what the message says.

    Args:
        what: what was refused, and what to do instead.
        halt_reason: for what the run halts if this error leaves it.
    """

    def __init__(self, what: str, halt_reason: str = "tool_error") -> None:
        super().__init__(what)
        self.halt_reason = halt_reason
