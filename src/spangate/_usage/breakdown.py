"""A run's use by model and by tool, and what it would cost by a list of prices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from spangate._dialects import dialect_of
from spangate._records import Span
from spangate._run import Run
from spangate._usage.calls import Call, Calls
from spangate._usage.results import Invocations
from spangate._usage.sums import Sum, TokenTally, add_bytes, add_tokens, byte_sum, token_sum

PRICED_TOKENS: Final = 1_000_000
"""Prices are for this many tokens, as vendors print them."""

MODEL_LIMITS: Final = ("max_input_tokens", "max_output_tokens", "max_calls")
TOOL_LIMITS: Final = ("max_payload_bytes", "max_calls")

Models: TypeAlias = Mapping[str | None, TokenTally]


def models_of(run: Run, calls: Calls) -> Models:
    """Add up the model calls by the model that was asked for; None holds those of which no span says."""
    single: dict[str | None, list[Span]] = {}
    joined: dict[str | None, list[Call]] = {}
    for call in calls.joined:
        joined.setdefault(_model_of(*(seen.span for seen in call.sightings)), []).append(call)
    for span in calls.single:
        single.setdefault(_model_of(span), []).append(span)
    return {
        model: add_tokens(run, Calls(run.walk(single.get(model, [])), run.walk(joined.get(model, []))))
        for model in {**joined, **single}
    }


def model_sums(models: Models, model: str, gap: str) -> dict[str, Sum[int]]:
    """Return what ``model`` used, by :data:`MODEL_LIMITS`. ``gap`` says why the calls may not be all, if so."""
    tally = models.get(model)
    gap = gap or ("the model of a call is not recorded" if None in models else "")
    if tally is None:
        return dict.fromkeys(MODEL_LIMITS, Sum(0, gap))
    sums = token_sum(tally, 0, gap), token_sum(tally, 1, gap), Sum(tally.number, gap)
    return dict(zip(MODEL_LIMITS, sums, strict=True))


def tool_sums(run: Run, invocations: Invocations, tool: str) -> dict[str, Sum[int]]:
    """Return what ``tool`` used, by :data:`TOOL_LIMITS`."""
    tally = add_bytes(run, invocations.of(run, tool))
    size = byte_sum(tally) if tally.number else Sum(0)
    return dict(zip(TOOL_LIMITS, (size, Sum(tally.number)), strict=True))


def cost_sum(models: Models, prices: Mapping[str, Mapping[str, float]], gap: str) -> Sum[float]:
    """Return what the calls would cost, in the unit of ``prices``: an estimate, since invoices know of rebates."""
    parts: list[float] = []
    missing: list[Span] = []
    for model, tally in models.items():
        price = None if model is None else prices.get(model)
        if price is None:
            gap = gap or f"no price for {'a call without a model' if model is None else model}"
            continue
        for side, name in enumerate(("input", "output")):
            used = token_sum(tally, side)
            parts.append(used.known * price[name])
            gap = gap or used.gap
            missing += used.missing
    return Sum(math.fsum(parts) / PRICED_TOKENS, gap, tuple(missing))


def _model_of(*spans: Span) -> str | None:
    """Return the model that the spans of one call say was asked for."""
    for span in spans:
        model = dialect_of(span).request(span).model
        if isinstance(model, str) and model:
            return model
    return None
