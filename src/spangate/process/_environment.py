"""The environment of a child: W3C context and the ids of its run, in place of whatever was inherited."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry import baggage, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from spangate._arrival import put_in_place
from spangate._hosts import run_id_of, way_back
from spangate._membership import INVOCATION_ID, RECEIVER, RUN_ID, membership

_CONTEXT: Final = ("TRACEPARENT", "TRACESTATE", "BAGGAGE")
STALE: Final = (*_CONTEXT, *map(str.lower, _CONTEXT), RUN_ID, INVOCATION_ID)
"""What is ours to write or to remove, whoever set it. Programs read upper-case names; some write lower-case ones."""
_BEHIND: Final = "_data"
"""Where ``os.environ`` keeps its variables."""
_FOR_TOOLS: Final = ("RUN_ID", "INVOCATION_ID")
"""What the program itself may read; a caller who sets one of these means it."""

_REPLACED: Final = {name: name.encode() for name in (*STALE, *_FOR_TOOLS)}

_BAGGAGE: Final = W3CBaggagePropagator()
_propagators: Final = (TraceContextTextMapPropagator(), _BAGGAGE)


def carrier_of(context: Context) -> dict[str, str]:
    """Return a context as the headers of W3C Trace Context and Baggage."""
    carrier: dict[str, str] = {}
    for propagator in _propagators:
        propagator.inject(carrier, context)
    return carrier


def context_variables(span: trace.Span, invocation_id: str | None) -> dict[str, str]:
    """Return the variables that tell a program which run it is in, below ``span``, and where its spans are wanted.

    The current context gives the baggage. No run id is written where no gate holds the run, and no invocation id for
    what is no program of the run, and has no span of its own: ``span`` is the one that it is started in.
    """
    own = span.get_span_context()
    run_id = _without_suffix(run_id_of(own.trace_id, own.span_id))
    way = way_back(own.trace_id, own.span_id, is_program=invocation_id is not None)
    member = membership(os.environ) if is_set(RECEIVER) else None
    if member is not None:  # of a run that another process holds, so what is started here is, too
        run_id, way = run_id or member.run_id, member.variables
    variables = _w3c(own)
    for value, names in ((invocation_id, (INVOCATION_ID, "INVOCATION_ID")), (run_id, (RUN_ID, "RUN_ID"))):
        if value is not None:
            variables |= dict.fromkeys(names, value)
    return {**variables, **way}


def _w3c(own: trace.SpanContext) -> dict[str, str]:
    """Return the context of a span, with the current baggage, as W3C Trace Context and Baggage in the environment.

    The propagators would need a context that is made first, and take three times as long: every program waits for this.
    """
    variables: dict[str, str] = {}
    if own.is_valid:
        variables["TRACEPARENT"] = f"00-{own.trace_id:032x}-{own.span_id:016x}-{own.trace_flags:02x}"
        if own.trace_state:
            variables["TRACESTATE"] = own.trace_state.to_header()
    if baggage.get_all():
        carried: dict[str, str] = {}
        _BAGGAGE.inject(carried)
        variables |= {name.upper(): value for name, value in carried.items()}
    return variables


def _without_suffix(run_id: str | None) -> str | None:
    """Return the id of the run that has started this process, where ``run_id`` was made of it."""
    if run_id is None or not is_set(RUN_ID):
        return run_id
    started_by = os.environ[RUN_ID]
    return started_by if started_by and run_id.startswith(f"{started_by}-") else run_id


def child_environment(given: Mapping[Any, Any] | None, variables: Mapping[str, str]) -> dict[Any, Any]:
    """Return the environment for a child: what its caller gave or, without that, ours, with ``variables`` in it.

    Stale context of ours is left out. ``RUN_ID`` and ``INVOCATION_ID`` stay if the caller gave another value than the
    one that was inherited. Where the system has bytes for names, ours is handed on as bytes: to decode it and encode it
    again would take longer than the rest together.
    """
    if given is None:
        base = _inherited()
        theirs: frozenset[str] = frozenset()
    else:
        base = dict(given)
        theirs = frozenset(name for name in _FOR_TOOLS if base.get(name) not in (None, os.environ.get(name)))
    for name, in_bytes in _REPLACED.items():
        if name not in theirs:
            base.pop(name, None)
            base.pop(in_bytes, None)
    is_bytes = given is None and os.supports_bytes_environ
    for name, value in variables.items():
        if name not in theirs:
            base[os.fsencode(name) if is_bytes else name] = os.fsencode(value) if is_bytes else value
    return base


def _inherited() -> dict[Any, Any]:
    """Return a copy of the environment of this process, in bytes where the system has bytes.

    To ask for each variable takes as long as the rest of a start; behind the mapping stands a dict that is copied at
    once, where it is what it was in every version so far.
    """
    if not os.supports_bytes_environ:
        return dict(os.environ)
    behind = getattr(os.environ, _BEHIND, None)
    return behind.copy() if type(behind) is dict else dict(os.environb)


def is_set(name: str) -> bool:
    """Say whether a variable is in the environment of this process; ``os.environ`` takes ten times as long."""
    behind = getattr(os.environ, _BEHIND, None) if os.supports_bytes_environ else None
    return name.encode() in behind if type(behind) is dict else name in os.environ


def telling(variables: Mapping[str, str], function: Callable[[], object]) -> Callable[[], object]:
    """Return a function for the child to call before it becomes the program: it writes ``variables`` first."""

    def tell() -> object:
        put_in_place(variables, STALE)
        return function()

    return tell
