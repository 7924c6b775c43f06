"""Every finding code with its default level. A code is ``gate.what``; policies may set any of them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from spangate._records import Level

DEFAULT_LEVELS: Final = MappingProxyType[str, Level](
    {
        "completeness.open_span": "fail",
        "completeness.root_open": "fail",
        "completeness.cited_tool_missing": "fail",
        "completeness.call_lost": "fail",
        "completeness.unrecovered_error": "fail",
        "completeness.recovered_error": "warn",
        "completeness.control_flow_error": "warn",
        "completeness.cancelled": "warn",
        "completeness.outlived_root": "warn",
        "forest.multiple_roots": "fail",
        "forest.multiple_trace_ids": "fail",
        "forest.missing_parent": "fail",
        "forest.late_child": "fail",
        "forest.stray_root": "fail",
        "forest.stray_generation": "warn",
        "forest.parent_outside_run": "fail",
        "forest.duplicate_span_id": "fail",
        "forest.parent_cycle": "fail",
        "forest.foreign_parent": "warn",
        "forest.parent_unsampled": "warn",
        "forest.after_entry": "warn",
        "budget.ceiling": "fail",
        "budget.usage_missing": "warn",
        "budget.usage_negative": "fail",
        "budget.usage_nonfinite": "fail",
        "budget.usage_invalid": "fail",
        "budget.usage_coerced": "warn",
        "budget.suspicious_zero": "warn",
        "budget.rollup_mismatch": "fail",
        "budget.root_usage": "off",
        "budget.double_instrumentation": "warn",
        "budget.replayed_response": "warn",
        "budget.payload_missing": "warn",
        "budget.lower_bound": "warn",
        "exits.leak": "fail",
        "exits.orphan": "fail",
        "exits.status_mismatch": "fail",
        "exits.duplicate_invocation": "fail",
        "exits.ceiling": "fail",
        "exits.tool_disagrees": "warn",
        "exits.unwatched_spawn": "warn",
        "causality.cycle": "fail",
        "causality.missing_cause": "fail",
        "causality.tool_without_prompt": "fail",
        "causality.retry_without_origin": "fail",
        "causality.summary_incomplete": "fail",
        "causality.unordered_writers": "fail",
        "cardinality.span_bytes": "fail",
        "cardinality.run_bytes": "off",
        "cardinality.fan_out": "off",
        "cardinality.missing_result": "off",
        "cardinality.attributes_dropped": "fail",
        "timing.inverted_span": "fail",
        "gate.error": "fail",
        "gate.not_evaluable": "fail",
        "buffer.overflow": "fail",
        "receiver.refused": "fail",
        "context.traceparent_invalid": "warn",
        "encoding.truncated_json": "warn",
        "encoding.lone_surrogate": "warn",
        "export.duplicate_span": "warn",
        "export.unsampled_run": "warn",
        "export.partial": "fail",
    }
)
"""The level of each code where neither a policy nor the gate's own settings say otherwise."""

STRICT_ONLY: Final = frozenset(
    {"budget.root_usage", "cardinality.run_bytes", "cardinality.fan_out", "cardinality.missing_result"}
)
"""Codes that are off by default and fail in strict."""
