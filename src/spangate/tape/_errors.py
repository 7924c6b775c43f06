"""What can go wrong with a tape, each with its own class."""

from __future__ import annotations

from spangate._errors import SpangateError


class TapeError(SpangateError):
    """A tape was asked for what it cannot do. The message says what, and what to do instead."""


class CassetteError(TapeError):
    """A cassette that cannot be read or written.

    Args:
        what: what is wrong.
        source: the name of the file.
        line: the line, from 1; 0 where the whole file is meant.
    """

    def __init__(self, what: str, *, source: str, line: int = 0) -> None:
        super().__init__(what, source, line)
        self.what = what
        self.source = source
        self.line = line

    def __str__(self) -> str:
        """Read as ``file: line 3: what is wrong``."""
        return ": ".join(part for part in (self.source, f"line {self.line}" if self.line else "", self.what) if part)


class CassetteLockedError(CassetteError):
    """Another process, or another tape of this one, is recording to the same file."""


class ReplayMiss(TapeError):  # noqa: N818  the name by which the field knows it
    """A replayed program decided something that was not recorded.

    Args:
        key: The key that was looked for.
        agreed: How many decisions had been replayed before.
        recorded: How many there are in the cassette.
        nearest: The key of the recorded decision of that kind that is most like it; None where there is none left.
        difference: Where the two first differ.
    """

    def __init__(
        self, key: str, *, agreed: int, recorded: int, nearest: str | None = None, difference: str | None = None
    ) -> None:
        super().__init__(key, agreed, recorded, nearest, difference)
        self.key = key
        self.agreed = agreed
        self.recorded = recorded
        self.nearest = nearest
        self.difference = difference

    def __str__(self) -> str:
        """Read as one sentence after the other: what missed, how far the run agreed, what is nearest."""
        kind = self.key.partition(":")[0]
        said = f"{self.key} was not recorded; {self.agreed} of {self.recorded} decisions agreed before it"
        if self.nearest is None:
            return f"{said}; no recorded decision of kind {kind!r} is left"
        return f"{said}; nearest is {self.nearest}: {self.difference or 'it differs in what was redacted'}"


class ReplayedError(TapeError):
    """What was recorded is an error, of a type that is not made again when it is replayed.

    Args:
        kind: The type by its full name, as ``openai.RateLimitError``.
        message: What it said.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        """Read as the recorded error did."""
        return f"{self.kind}: {self.message}"


class LeftOverError(TapeError):
    """A replay is over, and recorded decisions were never made."""
