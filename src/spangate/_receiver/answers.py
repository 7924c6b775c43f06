"""What a request is answered: each outcome with its codes of HTTP and of gRPC, and why it was refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Answer:
    """An outcome.

    ``http`` and ``grpc`` are the status codes; what SDKs try again is decided by them (OTLP specification, "Failures").
    ``reason`` is the word under which a refusal is counted, None for none; ``rejected`` counts the spans of an accepted
    request that were left out.
    """

    http: int
    grpc: int
    message: str = ""
    reason: str | None = None
    rejected: int = 0


OK: Final = Answer(200, 0)
NO_TOKEN: Final = Answer(401, 16, "this receiver takes spans of programs of a run: their token is missing", "token")
WRONG_TOKEN: Final = Answer(401, 16, "this token was not made by this receiver", "token")
NOT_TRACES: Final = Answer(404, 12, "this receiver takes traces, at POST /v1/traces", "not_traces")
UNKNOWN_FORM: Final = Answer(415, 12, "this receiver takes protobuf and JSON", "unknown_form")
TOO_SLOW: Final = Answer(408, 4, "the request did not come in whole in time", "slow")
RUN_IS_OVER: Final = Answer(403, 7, "the run that this token was made for is over", "run_over")
BUSY: Final = Answer(503, 14, "too much is held or on its way here", "busy")
FAULT: Final = Answer(500, 13, "the receiver failed, which is a defect of spangate", "defect")


def too_large(message: str) -> Answer:
    """Answer a request beyond the bound."""
    return Answer(413, 8, message, "too_large")


def malformed(message: str) -> Answer:
    """Answer a request that cannot be read."""
    return Answer(400, 3, message, "malformed")
