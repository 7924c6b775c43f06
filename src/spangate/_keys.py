"""The attribute keys that spangate writes. Keys of other conventions live with the dialect that reads them."""

from __future__ import annotations

from typing import Final

VERDICT: Final = "spangate.verdict"
RUN_ID: Final = "spangate.run_id"
RUN_NAME: Final = "spangate.run_name"
TRIGGER: Final = "spangate.trigger"
FINDINGS: Final = "spangate.findings"
WARNINGS: Final = "spangate.warnings"
DETAILS: Final = "spangate.details"
GATES: Final = "spangate.gates"
CLUSTER: Final = "spangate.cluster"
SPANS_STARTED: Final = "spangate.spans_started"
SPANS_ENDED: Final = "spangate.spans_ended"
SPANS_WITHHELD: Final = "spangate.spans_withheld"
INPUT_TOKENS: Final = "spangate.input_tokens"
OUTPUT_TOKENS: Final = "spangate.output_tokens"
TOOL_PAYLOAD_BYTES: Final = "spangate.tool_payload_bytes"
POLICY: Final = "spangate.policy"
SUPERSEDES: Final = "spangate.supersedes"

TREE_HASH: Final = "spangate.tree_hash"
TREE_SCHEMA_HASH: Final = "spangate.tree_schema_hash"

PAYLOAD_SHA256: Final = "spangate.payload_sha256."
PAYLOAD_SCHEMA: Final = "spangate.payload_schema."
PAYLOAD_RAW_SHA256: Final = "spangate.payload_raw_sha256."
"""Each is followed by the key that a payload stood under, and is itself no key."""
PAYLOADS_UNHASHED: Final = "spangate.payloads_unhashed"
OUTCOME: Final = "spangate.outcome"
"""What became of a span, where only a payload told of it."""

INVOCATION_ID: Final = "spangate.invocation_id"
PARENT_INVOCATION_ID: Final = "spangate.parent_invocation_id"

PROMPT_HASH: Final = "prompt.hash"
PROMPT_TEXT_HASH: Final = "prompt.text_hash"
TOOL_SCHEMA_HASH: Final = "tool.schema_hash"
FINGERPRINT_TUPLE: Final = "fingerprint.tuple"
FINGERPRINT_MISSING_MODEL: Final = "fingerprint.missing_model"
FINGERPRINT_MODEL_SOURCE: Final = "fingerprint.model_source"
FINGERPRINT_SOURCE: Final = "fingerprint.source"
FINGERPRINT_PARAMS_HASH: Final = "fingerprint.params_hash"
FINGERPRINT_GAP: Final = "fingerprint.gap"

FINGERPRINT: Final = (
    PROMPT_HASH,
    PROMPT_TEXT_HASH,
    TOOL_SCHEMA_HASH,
    FINGERPRINT_TUPLE,
    FINGERPRINT_MISSING_MODEL,
    FINGERPRINT_MODEL_SOURCE,
    FINGERPRINT_SOURCE,
    FINGERPRINT_PARAMS_HASH,
    FINGERPRINT_GAP,
)
"""What spangate writes of a generation's identity, beside the conventions' own keys."""

REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"

MAX_DETAILS: Final = 32
"""How many entries ``spangate.details`` holds at most."""
