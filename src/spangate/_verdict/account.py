"""A verdict as attributes: what a released root and a verdict span say of it. Clean text only, whatever spans held."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from spangate import _keys as keys
from spangate._records import Finding, Verdict

EVALUATION_EVENT = "gen_ai.evaluation.result"
MAX_DETAIL = 1024
"""Characters of one entry of ``spangate.details``."""


def verdict_attributes(verdict: Verdict) -> dict[str, Any]:
    """Return the attributes of a verdict (design section 5); keys whose value is not known are left out."""
    totals = verdict.totals
    found: dict[str, Any] = {
        keys.VERDICT: verdict.verdict,
        keys.RUN_ID: clean(verdict.run_id),
        keys.RUN_NAME: clean(verdict.run_name),
        keys.TRIGGER: verdict.trigger,
        keys.FINDINGS: sorted({clean(finding.code) for finding in verdict.failures}),
        keys.WARNINGS: sorted({clean(finding.code) for finding in verdict.warnings}),
        keys.DETAILS: [detail(finding) for finding in verdict.findings[: keys.MAX_DETAILS]],
        keys.GATES: [f"{name}={result}" for name, result in verdict.gates.items()],
        keys.SPANS_STARTED: totals.spans_started,
        keys.SPANS_ENDED: totals.spans_ended,
        keys.SPANS_WITHHELD: verdict.spans_withheld,
        keys.POLICY: verdict.policy,
    }
    optional = {
        keys.INPUT_TOKENS: totals.input_tokens,
        keys.OUTPUT_TOKENS: totals.output_tokens,
        keys.TOOL_PAYLOAD_BYTES: totals.tool_payload_bytes,
        keys.CLUSTER: verdict.cluster,
        keys.SUPERSEDES: verdict.supersedes,
    }
    found.update((key, value) for key, value in optional.items() if value is not None)
    return found


def verdict_span_attributes(verdict: Verdict) -> dict[str, Any]:
    """Return the attributes of a verdict span: the verdict, and what makes Phoenix show it as a guardrail."""
    explanation = "; ".join(f"{finding.code}: {finding.detail}" for finding in verdict.failures[:8])
    return {
        **verdict_attributes(verdict),
        "openinference.span.kind": "GUARDRAIL",
        "input.value": clean(verdict.run_name),
        "output.value": clean(f"{verdict.verdict}: {explanation}")[: 4 * MAX_DETAIL],
    }


def evaluation(verdict: Verdict) -> Mapping[str, Any]:
    """Return the attributes of the event ``gen_ai.evaluation.result`` that says the same in OpenTelemetry's words."""
    explanation = "; ".join(f"{finding.code}: {finding.detail}" for finding in verdict.failures[:8])
    return {
        "gen_ai.evaluation.name": "spangate",
        "gen_ai.evaluation.score.label": verdict.verdict,
        "gen_ai.evaluation.explanation": clean(explanation)[: 4 * MAX_DETAIL],
    }


def detail(finding: Finding) -> str:
    """Write a finding as ``code | span name | span id | what``."""
    span = finding.span
    name, span_id = ("", "") if span is None else (span.name, span.hex_id)
    return clean(f"{finding.code} | {name} | {span_id} | {finding.detail}")[:MAX_DETAIL]


def verdict_span_id(run_id: str, number: int) -> int:
    """Return the span id of the ``number``-th verdict of a run: the same for the same, never zero."""
    digest = hashlib.sha256(f"{run_id}:{number}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") or 1


def clean(text: str) -> str:
    """Replace half characters, which an encoder would lose the whole batch over."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
