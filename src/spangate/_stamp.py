"""What is written on live spans when they start: invocation ids, and fingerprints where the request is there then."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from opentelemetry.sdk.trace import Span

from spangate import _keys as keys
from spangate._adapter import record
from spangate._asking import Block
from spangate._buffer.tree import Tree
from spangate._dialects import classify, dialect_of
from spangate._fingerprint import fingerprint
from spangate._fingerprint.sources import completed, is_better, lacks_something
from spangate._sdk.fields import put

OPERATION: Final = "gen_ai.operation.name"
_EXECUTE = (OPERATION, "execute_tool")
_TOOLS = (
    _EXECUTE,
    ("openinference.span.kind", "TOOL"),
    ("traceloop.span.kind", "tool"),
)
"""Attributes that say what a span is, each with its word for a tool."""
UNSTAMPED: Final = ("chat", "invoke_agent")
"""What most spans say is their operation. With no prompt beside it there is nothing to write on them."""
MESSAGES: Final = "gen_ai.input.messages"
INPUT: Final = "input.value"
"""Where a request stands, if it is there when the span starts."""
_LONGEST: Final = 1 << 18
"""Characters of a request that is hashed when its span starts, which takes a few milliseconds at most."""


def invocation_id(tree_id: str, span_id: int) -> str:
    """Return the invocation id of a tool or process span.

    It follows from the tree and the span alone, so it needs no table: what could not be written at the start, or was
    evicted since, is put back at release.
    """
    return "%s-%016x" % (tree_id, span_id)  # noqa: UP031  half the time of an f-string, in a hook


def stamp(span: Span, span_id: int, tree: Tree, known: Mapping[str, Any]) -> None:
    """Write the invocation id on a span that starts as a tool, and a fingerprint on one that starts with its prompt.

    What a span says that it is gets noted. Most spans start with nothing that tells their role, and those that do may
    lose it to later attributes, of which the SDK keeps a number and no more. ``known`` are the attributes that the span
    starts with.
    """
    word = known.get(OPERATION)
    said = word if word in UNSTAMPED else next(((key, known[key]) for key, _ in _TOOLS if key in known), None)
    if said is not None:
        tree.said[span_id] = said
    if said in _TOOLS:
        if keys.INVOCATION_ID in known:
            tree.stamps[span_id] = {}
        else:
            put(span, keys.INVOCATION_ID, invocation_id(tree.tree_id, span_id))
    elif MESSAGES in known or INPUT in known:
        _stamp_request(span, tree)


def stamp_asked(span: Span, span_id: int, tree: Tree, known: Mapping[str, Any], block: Block) -> None:
    """Stamp a span that starts where the program itself says what its next model call asks for (``block``).

    One that is a generation takes it, unless its own prompt is on it already. One that may turn out to be one, since
    most spans start with nothing that tells, is looked at again when its tree is read.
    """
    stamp(span, span_id, tree, known)
    started = record(span, is_open=True)
    classify(started)
    if started.role != "generation":
        if tree.said.get(span_id) is None:
            block.has_candidates = True
            tree.unsettled[span_id] = block
        return
    is_first = block.take(tree.trace_id, span_id)
    if not is_first or not is_better("explicit", started.attributes):
        return
    if keys.PROMPT_HASH not in block.stamps:
        tree.unsettled[span_id] = block  # all that it can tell is why, if nobody knows more
        return
    stamps = {**block.stamps, **completed(block.stamps, dialect_of(started).request(started), None)}
    if lacks_something(stamps):
        tree.unsettled[span_id] = None
    _write(span, tree, {key: value for key, value in stamps.items() if key not in known})


def _stamp_request(span: Span, tree: Tree) -> None:
    """Write the fingerprint of a generation that starts with its prompt on it, the one case in which a hook hashes.

    What the span says itself stays. A very long prompt is left for the release: a hook must not take long.
    """
    known: Any = span.attributes
    if any(isinstance(text := known.get(key), str) and len(text) > _LONGEST for key in (MESSAGES, INPUT)):
        return
    started = record(span, is_open=True)
    classify(started)
    if started.role != "generation":
        return
    stamps = fingerprint(dialect_of(started).request(started), source="start")
    if keys.PROMPT_HASH in stamps:
        if lacks_something(stamps):
            tree.unsettled[span.context.span_id] = None
        _write(span, tree, {key: value for key, value in stamps.items() if key not in known})


def _write(span: Span, tree: Tree, stamps: Mapping[str, str | float]) -> None:
    """Write stamps, and remember them: the SDK evicts the oldest attributes first, and these are among the oldest."""
    span.set_attributes(stamps)
    tree.stamps[span.context.span_id] = stamps


def said_of(tree: Tree, span_id: int) -> Mapping[str, Any]:
    """Return what a span of ``tree`` said that it is when it started, as attributes."""
    said = tree.said.get(span_id)
    return {} if said is None else {OPERATION: said} if isinstance(said, str) else dict([said])


def stamps_of(tree: Tree, span_id: int) -> Mapping[str, str | float]:
    """Return what was written on a span of ``tree`` when it started. Invocation ids follow from what it said it was."""
    if span_id in tree.stamps:
        return tree.stamps[span_id]
    is_tool = tree.said.get(span_id) in _TOOLS
    return {keys.INVOCATION_ID: invocation_id(tree.tree_id, span_id)} if is_tool else {}
