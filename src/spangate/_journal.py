"""What the closed spans of a run say that they did to files: which paths they own, and what they left there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from spangate._cites.arguments import as_object
from spangate._dialects import dialect_of, tool_name
from spangate._failures import FAILED
from spangate._records import ABSENT, Absent, Changes, Span
from spangate._run import Run

OP: Final = "op"
PATH: Final = "path"
TARGET: Final = "target_path"
BEFORE: Final = "before_hash"
AFTER: Final = "after_hash"
OUTPUTS: Final = "outputs"

_WRITES: Final = frozenset({"write", "create", "append", "edit"})
_DELETE: Final = "delete"
_MOVE: Final = "move"
_OWNING: Final = _WRITES | {_DELETE, _MOVE}
_NOWHERE: Final = Changes()


@dataclass(frozen=True, slots=True)
class Claim:
    """A path that a closed span owns, and the hash of what it left there: None for nothing, ``ABSENT`` if unknown."""

    span: Span
    path: str
    after: str | Absent | None


@dataclass(frozen=True, slots=True)
class Journal:
    """All that the spans of a run say.

    ``claims`` stand in the order of the spans' starts. ``outputs`` are the spans that declare patterns for what they
    write, with the patterns; ``mute`` the ended tools of the policy's table that do not say what they wrote.
    """

    claims: Sequence[Claim]
    outputs: Sequence[tuple[Span, Sequence[str]]]
    mute: Sequence[Span]


def journal(run: Run, writers: Mapping[str, str]) -> Journal:
    """Read what the closed spans of ``run`` say; ``writers`` maps names of tools to the arguments that name a path."""
    claims: list[Claim] = []
    outputs: list[tuple[Span, Sequence[str]]] = []
    mute: list[Span] = []
    for span in run.spans:
        if span.end_ns is not None and OP in span.attributes:
            claims.extend(_claims(span))
            patterns = _texts(span.attributes.get(OUTPUTS))
            if patterns:
                outputs.append((span, patterns))
    for span in run.of_role("tool") if writers else ():
        if span.end_ns is not None and OP not in span.attributes:
            argument = writers.get(tool_name(span))
            if argument is not None:
                found = _written(span, argument, run.changes or _NOWHERE)
                claims.extend(found or ())
                if found is None:
                    mute.append(span)
    return Journal(claims, outputs, mute)


def is_entry(span: Span, writers: Mapping[str, str]) -> bool:
    """Say whether a span, open or closed, is one that writes files."""
    if OP in span.attributes:
        return span.attributes[OP] in _OWNING or OUTPUTS in span.attributes
    return bool(writers) and span.role == "tool" and tool_name(span) in writers


def touched(spans: Iterable[Span], writers: Mapping[str, str]) -> set[str]:
    """Return the paths that spans, open or closed, are about, as far as they say so."""
    found: set[str] = set()
    for span in spans:
        if OP in span.attributes:
            values = (span.attributes.get(PATH), span.attributes.get(TARGET))
            found.update(_normal(value) for value in values if isinstance(value, str))
        elif is_entry(span, writers):
            found.update(map(_normal, named_paths(span, writers[tool_name(span)])))
    return found


def named_paths(span: Span, argument: str) -> Sequence[str]:
    """Return the paths that the arguments of a tool name; ``argument`` is where, nested by dots. None if none do."""
    value: Any = as_object(dialect_of(span).tool_call(span).arguments)
    for key in argument.split("."):
        value = as_object(value)
        value = None if value is None else value.get(key)
    return (value,) if isinstance(value, str) and value else _texts(value)


def _claims(span: Span) -> Iterator[Claim]:
    attributes = span.attributes
    op, path, target = attributes[OP], attributes.get(PATH), attributes.get(TARGET)
    if op not in _OWNING or not isinstance(path, str):
        return
    if op == _MOVE and isinstance(target, str):
        yield Claim(span, _normal(path), _kept(span, None))
        path = target
    missing = None if op == _DELETE else ABSENT
    yield Claim(span, _normal(path), _kept(span, attributes.get(AFTER, missing)))


def _kept(span: Span, after: Any) -> str | Absent | None:
    """Return what a span left: one that failed may have stopped half-way."""
    if dialect_of(span).outcome(span) in FAILED:
        return ABSENT
    return after if after is None or isinstance(after, str) else ABSENT


def _written(span: Span, argument: str, changes: Changes) -> Sequence[Claim] | None:
    """Return what a tool of the table wrote in the tree; None if it does not say what it wrote."""
    seen = changes.written.get((span.trace_id, span.span_id))
    if seen is not None:
        return [Claim(span, path, _kept(span, after)) for path, after in seen]
    named = named_paths(span, argument)
    paths = (_inside(path, changes.root) for path in named)
    return [Claim(span, path, ABSENT) for path in paths if path is not None] if named else None


def _inside(path: str, root: str) -> str | None:
    """Return a path relative to the top of the tree; None if it lies elsewhere. Nothing is looked up on disk."""
    pure = PurePosixPath(path)
    if not pure.is_absolute():
        return pure.as_posix()
    return pure.relative_to(root).as_posix() if root and pure.is_relative_to(root) else None


def _normal(path: str) -> str:
    return PurePosixPath(path).as_posix()


def _texts(value: Any) -> Sequence[str]:
    return [one for one in value if isinstance(one, str) and one] if isinstance(value, list | tuple) else ()
