"""What is written on live spans when they start: invocation ids, and fingerprints where the request is there then."""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.trace import Span

from spangate import _keys as keys

_OPERATION = "gen_ai.operation.name"
_KIND = "openinference.span.kind"
_TRACELOOP = "traceloop.span.kind"


def invocation_id(tree_id: str, span_id: int) -> str:
    """Return the invocation id of a tool or process span.

    It follows from the tree and the span alone, so it needs no table: what could not be written at the start, or was
    evicted since, is put back at release.
    """
    return f"{tree_id}-{span_id:016x}"


def stamp(span: Span, tree_id: str) -> None:
    """Write what is known at the start of a span on it; most spans start with nothing that tells their role."""
    attributes: Any = span.attributes
    if not attributes:
        return
    known = attributes.copy()  # C code, where a look-up in the live attributes is Python
    if (
        known.get(_OPERATION) == "execute_tool" or known.get(_KIND) == "TOOL" or known.get(_TRACELOOP) == "tool"
    ) and keys.INVOCATION_ID not in known:
        span.set_attribute(keys.INVOCATION_ID, invocation_id(tree_id, span.context.span_id))
