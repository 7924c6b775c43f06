"""The environment of a child: W3C context and the ids of its run, in place of whatever was inherited."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

RUN_ID: Final = "SPANGATE_RUN_ID"
INVOCATION_ID: Final = "SPANGATE_INVOCATION_ID"
_CONTEXT: Final = ("TRACEPARENT", "TRACESTATE", "BAGGAGE")
STALE: Final = (*_CONTEXT, *map(str.lower, _CONTEXT), RUN_ID, INVOCATION_ID)
"""What is ours to write or to remove, whoever set it. Upper-case names are what programs read; some write lower-case."""
_FOR_TOOLS: Final = ("RUN_ID", "INVOCATION_ID")
"""What the program itself may read; a caller who sets one of these means it."""

_propagators = (TraceContextTextMapPropagator(), W3CBaggagePropagator())


def context_variables(span: trace.Span, context: Context, run_id: str | None, invocation_id: str) -> dict[str, str]:
    """Return the variables that tell a program which run it is in, below ``span``.

    ``context`` gives the baggage. No run id is written where no gate holds the run.
    """
    carrier: dict[str, str] = {}
    inside = trace.set_span_in_context(span, context)
    for propagator in _propagators:
        propagator.inject(carrier, inside)
    variables = {name.upper(): value for name, value in carrier.items()}
    variables |= {INVOCATION_ID: invocation_id, "INVOCATION_ID": invocation_id}
    return variables if run_id is None else variables | {RUN_ID: run_id, "RUN_ID": run_id}


def child_environment(given: Mapping[Any, Any] | None, variables: Mapping[str, str]) -> dict[Any, Any]:
    """Return the environment for a child: what its caller gave or, without that, ours, with ``variables`` in it.

    Stale context of ours is left out. ``RUN_ID`` and ``INVOCATION_ID`` stay if the caller gave another value than the
    one that was inherited.
    """
    inherited = os.environ
    base = dict(inherited if given is None else given)
    for name in [name for name in base if _text(name) in STALE]:
        del base[name]
    for name in _FOR_TOOLS:
        if given is None or given.get(name) in (None, inherited.get(name)):
            base.pop(name, None)
    return {**variables, **base}


def _text(name: Any) -> Any:
    return os.fsdecode(name) if isinstance(name, bytes) else name
