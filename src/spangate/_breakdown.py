"""A run's use by model and by tool, and what it would cost by a list of prices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from spangate._calls import Call
from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._usage import Sum, Usage, payload_sum, token_sum

PRICED_TOKENS: Final = 1_000_000
"""Prices are for this many tokens, as vendors print them."""

MODEL_LIMITS: Final = ("max_input_tokens", "max_output_tokens", "max_calls")
TOOL_LIMITS: Final = ("max_payload_bytes", "max_calls")

Models: TypeAlias = Mapping[str | None, Sequence[Call]]


def models_of(usage: Usage) -> Models:
    """Group the model calls by the model that was asked for; None holds those of which no span says."""
    found: dict[str | None, list[Call]] = {}
    for call in usage.calls:
        found.setdefault(_model_of(call), []).append(call)
    return found


def model_sums(models: Models, model: str, gap: str) -> dict[str, Sum[int]]:
    """Return what ``model`` used, by :data:`MODEL_LIMITS`. ``gap`` says why the calls may not be all, if so."""
    calls = models.get(model, ())
    gap = gap or ("the model of a call is not recorded" if None in models else "")
    sums = (token_sum(calls, 0, gap), token_sum(calls, 1, gap)) if calls else (Sum(0, gap), Sum(0, gap))
    return dict(zip(MODEL_LIMITS, (*sums, Sum(len(calls), gap)), strict=True))


def tool_sums(usage: Usage, tool: str) -> dict[str, Sum[int]]:
    """Return what ``tool`` used, by :data:`TOOL_LIMITS`."""
    invocations = [one for one in usage.invocations if one.name == tool]
    size = payload_sum(invocations) if invocations else Sum(0)
    return dict(zip(TOOL_LIMITS, (size, Sum(len(invocations))), strict=True))


def cost_sum(models: Models, prices: Mapping[str, Mapping[str, float]], gap: str) -> Sum[float]:
    """Return what the calls would cost, in the unit of ``prices``: an estimate, since invoices know of rebates."""
    parts: list[float] = []
    missing: list[Span] = []
    for model, calls in models.items():
        price = None if model is None else prices.get(model)
        if price is None:
            gap = gap or f"no price for {'a call without a model' if model is None else model}"
            continue
        for side, name in enumerate(("input", "output")):
            used = token_sum(calls, side)
            parts.append(used.known * price[name])
            gap = gap or used.gap
            missing += used.missing
    return Sum(math.fsum(parts) / PRICED_TOKENS, gap, tuple(missing))


def _model_of(call: Call) -> str | None:
    for seen in call.sightings:
        model = dialect_of(seen.span).request(seen.span).model
        if isinstance(model, str) and model:
            return model
    return None
