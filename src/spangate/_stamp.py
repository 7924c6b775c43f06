"""What is written on live spans when they start: invocation ids, and fingerprints where the request is there then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import Span

from spangate import _keys as keys
from spangate._buffer.tree import Tree
from spangate._dialects._base import Request
from spangate._fingerprint import fingerprint
from spangate._sdk.fields import put

_OPERATION = "gen_ai.operation.name"
_EXECUTE = (_OPERATION, "execute_tool")
_TOOLS = (
    _EXECUTE,
    ("openinference.span.kind", "TOOL"),
    ("traceloop.span.kind", "tool"),
)
"""Attributes that say what a span is, each with its word for a tool."""
_COMMON = {word: (_OPERATION, word) for word in ("chat", "invoke_agent")} | {"execute_tool": _EXECUTE}
"""What most spans say, as one object for all of them."""
_MESSAGES, _INPUT = "gen_ai.input.messages", "input.value"


def invocation_id(tree_id: str, span_id: int) -> str:
    """Return the invocation id of a tool or process span.

    It follows from the tree and the span alone, so it needs no table: what could not be written at the start, or was
    evicted since, is put back at release.
    """
    return "%s-%016x" % (tree_id, span_id)  # noqa: UP031  half the time of an f-string, in a hook


def stamp_tool(span: Span, span_id: int, tree: Tree, known: Mapping[str, Any]) -> bool:
    """Write the invocation id on a span that starts as a tool, and note what a span says that it is.

    Most spans start with nothing that tells their role. Those that do may lose it to later attributes, of which the SDK
    keeps a number and no more. ``known`` are the attributes that the span starts with.

    Returns:
        True if the span starts with a prompt on it, so that its fingerprint can be written too.
    """
    word = known.get(_OPERATION)
    said = _COMMON.get(word) if type(word) is str else None
    is_tool = said is _EXECUTE
    if said is None:
        said = _said(known)
        is_tool = said in _TOOLS
    if said is not None:
        tree.said[span_id] = said
        if is_tool:
            if keys.INVOCATION_ID in known:
                tree.stamps[span_id] = {}
            else:
                put(span, keys.INVOCATION_ID, invocation_id(tree.tree_id, span_id))
            return False
    return _MESSAGES in known or _INPUT in known


def _said(known: Mapping[str, Any]) -> tuple[str, Any] | None:
    return next(((key, known[key]) for key, _ in _TOOLS if key in known), None)


def stamp_request(span: Span, tree: Tree, request: Request) -> None:
    """Write the fingerprint of a request that is there at the start; what the span says itself stays."""
    stamps = fingerprint(request, source="start")
    if keys.PROMPT_HASH in stamps:
        known: Any = span.attributes
        _write(span, tree, {key: value for key, value in stamps.items() if key not in known})


def _write(span: Span, tree: Tree, stamps: Mapping[str, str | float]) -> None:
    """Write stamps, and remember them: the SDK evicts the oldest attributes first, and these are among the oldest."""
    span.set_attributes(stamps)
    tree.stamps[span.context.span_id] = stamps


def stamps_of(tree: Tree, span_id: int) -> Mapping[str, str | float]:
    """Return what was written on a span of ``tree`` when it started. Invocation ids follow from what it said it was."""
    if span_id in tree.stamps:
        return tree.stamps[span_id]
    is_tool = tree.said.get(span_id) in _TOOLS
    return {keys.INVOCATION_ID: invocation_id(tree.tree_id, span_id)} if is_tool else {}
