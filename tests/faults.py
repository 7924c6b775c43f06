"""One fault put into the rows of a healthy recording, so that the same run shows both sides of a rule."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Rows: TypeAlias = list[dict[str, Any]]

_COUNT = re.compile(
    r"(cached_|cache_(read|write|creation)_|reasoning_)?(prompt|completion|input|output|total|cached|reasoning|established)"
    r"_?tokens(_details)?",
    re.IGNORECASE,
)
_HOLDERS = frozenset({"aggregated_usage", "token_count", "token_usage", "tokenusage", "usage", "usage_details"})
_MORE_HOLDERS = frozenset({"usage_metadata", "usage_metrics", "usagemetadata"})


def with_fault(rows: Sequence[Mapping[str, Any]], kind: str, span: str | None) -> Rows:
    """Return the rows with the fault ``kind`` at ``span`` (16 hex digits; None: everywhere)."""
    return FAULTS[kind]([dict(row) for row in rows], span or "")


def _leave_open(rows: Rows, span: str) -> Rows:
    return [row for row in rows if row.get("span") != span or row["ev"] == "start"]


def _unknown_parent(rows: Rows, span: str) -> Rows:
    for row in rows:
        if row.get("span") == span:
            row["parent"] = hashlib.sha256(b"nobody " + span.encode()).hexdigest()[:16]
            row["parent_remote"] = False
    return rows


def _new_root(rows: Rows, span: str) -> Rows:
    below = _subtree(rows, span)
    for row in rows:
        if row.get("span") in below:
            row["trace"] = hashlib.sha256(b"trace " + span.encode()).hexdigest()[:32]
        if row.get("span") == span:
            row["parent"] = None
    return rows


def _late_start(rows: Rows, span: str) -> Rows:
    below = _subtree(rows, span)
    late = [row for row in rows if row.get("span") in below]
    early = [row for row in rows if row.get("span") not in below]
    start = next(row["start_ns"] for row in late if row["span"] == span)
    shift = max(row["end_ns"] for row in early if row["ev"] == "end") + 1_000_000 - start
    for row in late:
        row["start_ns"] += shift
        if row["ev"] == "end":
            row["end_ns"] += shift
    return early + late


def _drop_usage(rows: Rows, span: str) -> Rows:
    below = _subtree(rows, span) if span else {row.get("span") for row in rows}
    for row in rows:
        if row.get("span") in below and "attrs" in row:
            row["attrs"] = without_usage(row["attrs"])
            row["events"] = [{**e, "attrs": without_usage(e.get("attrs") or {})} for e in row.get("events") or ()]
    return rows


FAULTS: Mapping[str, Callable[[Rows, str], Rows]] = {
    "leave_open": _leave_open,
    "unknown_parent": _unknown_parent,
    "new_root": _new_root,
    "late_start": _late_start,
    "drop_usage": _drop_usage,
}


def _subtree(rows: Rows, span: str) -> set[str]:
    found = {span}
    for row in rows:  # starts stand in order, so a parent comes before its children
        if row["ev"] == "start" and row["parent"] in found:
            found.add(row["span"])
    return found


def without_usage(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes without token counts, whether they have a name of their own or stand inside JSON text."""
    return {key: _cleaned(value) for key, value in attributes.items() if not _counts(key)}


def _counts(key: str) -> bool:
    parts = key.lower().split(".")
    return _is_count(parts[-1]) or any(part in _HOLDERS or part in _MORE_HOLDERS for part in parts)


def _is_count(name: str) -> bool:
    return name.lower() in _HOLDERS or name.lower() in _MORE_HOLDERS or _COUNT.fullmatch(name) is not None


def _cleaned(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.dumps(_pruned(json.loads(value)), ensure_ascii=False)
        except ValueError:
            return value
    return value


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if not _is_count(key)}
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return _cleaned(value)
