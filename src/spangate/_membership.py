"""Whether a run has started this process: what the environment says of it, and of where spans are wanted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

RUN_ID: Final = "SPANGATE_RUN_ID"
INVOCATION_ID: Final = "SPANGATE_INVOCATION_ID"
RECEIVER: Final = "SPANGATE_RECEIVER"
"""The address of the receiver of the gate that holds the run. Only a receiver of ours sets it."""
HEADERS: Final = "OTEL_EXPORTER_OTLP_TRACES_HEADERS"
_OTLP: Final = (
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    HEADERS,
    "OTEL_EXPORTER_OTLP_TRACES_INSECURE",
)
_BESIDE: Final = ("OTEL_BSP_SCHEDULE_DELAY", "no_proxy", "NO_PROXY")
"""What a receiver may have set as well, for spans to come soon and by no proxy."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The run that this process is a part of, and the receiver of the gate that holds it.

    ``headers`` let spans in there. ``variables`` are those that programs of this process need for the same.
    """

    run_id: str
    address: str
    headers: Mapping[str, str]
    variables: Mapping[str, str]


def membership(environment: Mapping[str, str]) -> Membership | None:
    """Return what the environment says of the run that this process is a part of. None: of none, or not all of it."""
    address = environment.get(RECEIVER)
    if not address:  # as nearly always: os.environ takes its time, and every start of a program asks
        return None
    run_id, headers = environment.get(RUN_ID), environment.get(HEADERS)
    if not (run_id and headers):
        return None
    pairs = (item.partition("=") for item in headers.split(","))
    told = {unquote(name).strip(): unquote(value).strip() for name, _, value in pairs}
    variables = {name: environment[name] for name in (RECEIVER, *_OTLP, *_BESIDE) if name in environment}
    return Membership(run_id, address, told, variables)


def way_to(address: str, token: str) -> dict[str, str]:
    """Return the variables that tell a program to send its spans to a receiver of ours.

    Only traces: metrics and logs of programs go where they went. Compression is left to them: what SDKs know is known
    to the receiver.
    """
    values = (f"{address}/v1/traces", "http/protobuf", f"authorization=Bearer%20{token}", "true")
    return {RECEIVER: address, **dict(zip(_OTLP, values, strict=True))}
