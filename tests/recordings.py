"""Recorded runs of real frameworks, as records: every span that was started, in the order of the starts.

A recording is named ``<framework>-<instrumentation>/<scenario>``. It is the log of a processor that wrote down every
start and every end with the attributes of that moment. A span that was never ended stays open; so does one that only
a finalizer ended when the program was long done.
"""

from __future__ import annotations

import functools
import json
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from spangate._dialects import classify
from spangate._records import Event, Link, Span

_DATA = Path(__file__).parent / "data" / "recordings"
_SUFFIX = ".jsonl"


@functools.cache
def _texts() -> dict[str, str]:
    with tarfile.open(_DATA / "recordings.tar.gz") as archive:
        files = ((member.name, archive.extractfile(member)) for member in archive)
        return {name.removesuffix(_SUFFIX): file.read().decode() for name, file in files if file is not None}


def names() -> list[str]:
    """Return the names of all recordings."""
    return sorted(_texts())


def labels(kind: str = "labels") -> list[dict[str, Any]]:
    """Return the labels of recordings: ``labels``, ``labels-budget`` (with a policy) or ``labels-mutations``."""
    rows: list[dict[str, Any]] = json.loads((_DATA / f"{kind}.json").read_text(encoding="utf-8"))
    return rows


def rows(name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a recording as they were written: ``start``, ``end`` and ``leak``, in their order."""
    found = [json.loads(line) for line in _texts()[name].splitlines() if line.strip()]
    yield from sorted(found, key=lambda row: int(row["seq"]))


def spans(name: str) -> list[Span]:
    """Return the spans of a recording with their roles, each call fresh ones."""
    live: dict[tuple[str, str], int] = {}
    found: list[Span] = []
    for row in rows(name):
        if row["ev"] == "start":
            live[row["trace"], row["span"]] = len(found)
            found.append(_started(row))
        elif row["ev"] in ("end", "leak"):
            index = live.pop((row["trace"], row["span"]), None)
            if index is not None:
                found[index] = _ended(found[index], row) if row["ev"] == "end" else _leaked(found[index], row)
    for span in found:
        classify(span)
    return found


def at_start(name: str) -> list[Span]:
    """Return the spans of a recording as they were when they started, with the roles that they had then."""
    found = [_started(row) for row in rows(name) if row["ev"] == "start"]
    for span in found:
        classify(span)
    return found


def _started(row: Mapping[str, Any]) -> Span:
    return Span(
        trace_id=int(row["trace"], 16),
        span_id=int(row["span"], 16),
        parent_id=int(row["parent"], 16) if row["parent"] else None,
        name=row["name"],
        start_ns=row["start_ns"],
        kind=row["kind"],
        scope=row.get("scope") or "",
        scope_version=row.get("scope_version") or "",
        attributes=dict(row["attrs"]),
        parent_remote=bool(row["parent_remote"]),
    )


def _leaked(span: Span, row: Mapping[str, Any]) -> Span:
    return replace(span, attributes=dict(row["attrs"]))


def _ended(span: Span, row: Mapping[str, Any]) -> Span:
    return replace(
        span,
        name=row["name"],
        end_ns=row["end_ns"],
        status=row["status"],
        status_description=row["status_desc"] or "",
        attributes=dict(row["attrs"]),
        events=[Event(event["name"], event.get("attrs") or {}) for event in row.get("events") or ()],
        links=[Link(int(link["trace"], 16), int(link["span"], 16)) for link in row.get("links") or ()],
        dropped_attributes=int(row.get("dropped_attributes") or 0),
    )
