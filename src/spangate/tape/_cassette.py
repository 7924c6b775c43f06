"""Cassettes: JSON lines, a header and one line a decision; what stands in one, and how it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final

from spangate._canonical import canonical_json, text_hash
from spangate.tape._errors import CassetteError
from spangate.tape._outcomes import Outcome, as_json, from_json

FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Header:
    """The first line.

    Attributes:
        commit: The commit of the program that recorded; None outside of a repository.
        dirty: Whether its working tree had changes; None where that was not looked at.
        redacted: Keys whose values are not in the file.
    """

    commit: str | None = None
    dirty: bool | None = None
    redacted: Sequence[str] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A recorded decision: its key, what it was made from, as far as that may be kept, and what came of it.

    Attributes:
        key: The key over everything, secrets included.
        kind: ``llm``, ``tool``, ``env``, or a word of somebody's own.
        payload: What decided, without secrets.
        outcome: What came of it, without secrets.
        is_redacted: Whether the payload that is kept lacks something, so that the key cannot be computed from it.
        line: Where it stands in the file, from 1; 0 if it does not.
    """

    key: str
    kind: str
    payload: Mapping[str, Any]
    outcome: Outcome
    is_redacted: bool = False
    line: int = 0

    @property
    def digest(self) -> str:
        """The decision and what came of it, as one hash."""
        return text_hash(f"{self.key}\n{canonical_json(as_json(self.outcome))}")


@dataclass(frozen=True, slots=True)
class Cassette:
    """A cassette that was read. ``cut`` is the number of a last line that a crash cut off, 0 if none was."""

    header: Header
    decisions: Sequence[Decision]
    cut: int = 0


def digest_of(digests: Sequence[str]) -> str:
    """Return one hash of several decisions, in whatever order they were made."""
    return text_hash("\n".join(sorted(digests)))


def read_cassette(path: str | PathLike[str]) -> Cassette:
    """Read a cassette.

    Raises:
        CassetteError: it cannot be read, is of another version, or a line of it that is not a cut last one is no
            decision. The error names file and line.
    """
    source = fspath(path)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise CassetteError(f"cannot be read: {error.strerror or error}", source=source) from error
    lines = content.split(b"\n")
    is_cut = bool(lines.pop())  # what follows the last line feed
    if not lines:
        raise CassetteError("is empty: a cassette begins with a header", source=source)
    header = _header(lines[0], source)
    decisions = [_decision(line, source, number) for number, line in enumerate(lines[1:], 2)]
    return Cassette(header, decisions, len(lines) + 1 if is_cut else 0)


def _header(line: bytes, source: str) -> Header:
    found = _object(line, source, 1)
    version = found.get("spangate_tape")
    if version is None:
        raise CassetteError("is no header of a cassette", source=source, line=1)
    if version != FORMAT:
        raise CassetteError(f"is of version {version}; this spangate reads {FORMAT}: record it again", source=source)
    return Header(found.get("commit"), found.get("dirty"), tuple(found.get("redacted", ())))


def _decision(line: bytes, source: str, number: int) -> Decision:
    found = _object(line, source, number)
    try:
        return Decision(
            key=_text(found, "key"),
            kind=_text(found, "kind"),
            payload=_mapping(found, "payload"),
            outcome=from_json(_mapping(found, "outcome")),
            is_redacted=bool(found.get("redacted", False)),
            line=number,
        )
    except ValueError as error:
        raise CassetteError(f"is no decision: {error}", source=source, line=number) from None


def _object(line: bytes, source: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise CassetteError(f"is no JSON: {error}", source=source, line=number) from None
    if not isinstance(found, dict):
        raise CassetteError("is no JSON object", source=source, line=number)
    return found


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name!r} is no text")  # noqa: TRY004  of a file, not of a caller
    return value


def _mapping(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name)
    if not isinstance(value, dict):
        raise ValueError(f"{name!r} is no object")  # noqa: TRY004  the same
    return value


def kinds(decisions: Sequence[Decision]) -> Iterator[tuple[str, int]]:
    """Count decisions by kind, in the order in which kinds first come."""
    counts: dict[str, int] = {}
    for decision in decisions:
        counts[decision.kind] = counts.get(decision.kind, 0) + 1
    yield from counts.items()
