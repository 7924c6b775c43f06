"""A diff as one JSON object a pair of runs, for scripts."""

from __future__ import annotations

from typing import Any

from spangate._records import Span
from spangate._run import Run
from spangate.cli._diff_words import Alone, Found, answer
from spangate.compare._changes import Change
from spangate.compare._rules import Allowance


def diff_json(found: Found) -> dict[str, Any]:
    """Return what JSON says of a diff, or of a run that has no counterpart."""
    told = {"answer": answer(found), "bounded": answer(found) == "bounded"}
    if isinstance(found, Alone):
        told |= {"refusal": found.what, "reasons": ["count"], "changes": []}
        return {**told, "a": found.a and _run(found.a), "b": found.b and _run(found.b)}
    return {
        **told,
        "refusal": found.refusal,
        "reasons": list(found.comparison.reasons),
        "a": _run(found.a),
        "b": _run(found.b),
        "changes": [_change(change) for change in found.changes],
        "roles": {role: {"a": a, "b": b} for role, (a, b) in found.roles.items()},
        "recounted": [{"edge": edge, "a": a, "b": b} for edge, (a, b) in found.recounted.items()],
        "unused": [_entry(entry) for entry in found.unused],
        "expired": [_entry(entry) for entry in found.expired],
        "faults": list(found.faults),
        "notes": list(found.notes),
    }


def _run(run: Run) -> dict[str, Any]:
    return {"run_id": run.run_id, "trace_id": run.root.hex_trace_id, "root": run.name, "spans": len(run.spans)}


def _change(change: Change) -> dict[str, Any]:
    return {
        "class": change.kind,
        "name": change.name,
        "agent": change.agent or None,
        "count": change.count,
        "keys": list(change.keys),
        "digest_a": change.digest_a,
        "digest_b": change.digest_b,
        "span_a": _span_id(change.a),
        "span_b": _span_id(change.b),
        "not_evaluable": change.unknown or None,
        "allowed": None if change.allowance is None else _entry(change.allowance),
        "varies": change.varies,
    }


def _span_id(span: Span | None) -> str | None:
    return None if span is None else span.hex_id


def _entry(entry: Allowance) -> dict[str, Any]:
    return {
        "class": entry.kind,
        "name": entry.name,
        "key": entry.key,
        "reason": entry.reason or None,
        "expires": None if entry.expires is None else entry.expires.isoformat(),
        "source": entry.source or None,
    }
