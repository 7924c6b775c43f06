"""What a receiver may take, and how it refuses: the settings of the loopback OTLP receiver.

The parts stand beside it: :mod:`~spangate._receiver.tokens` tells programs of runs from strangers,
:mod:`~spangate._receiver.bodies` reads what they send, within bounds, :mod:`~spangate._receiver.asgi` speaks OTLP over
HTTP and gRPC, and :mod:`~spangate._receiver.server` listens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from spangate._settings import check_amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Receiver:
    """Settings of an OTLP receiver on 127.0.0.1, at a port of the system's choice, for the programs that a run starts.

    Given to a gate, it takes in what those programs record, whatever OpenTelemetry SDK they use: their spans enter the
    run, and are released or refused with it. It needs ``pip install 'spangate[receiver]'``.

    Attributes:
        max_request_bytes: Bytes of one request, unpacked. 16 MiB; the batches of SDKs have 512 spans, which is 1 MiB
            with 2 KiB of content each.
        max_pending_bytes: Bytes of all requests that are being read.
        max_spans_per_s: Spans a second over all programs. Whoever sends more is kept waiting, and then refused.
        request_timeout_s: Seconds in which a request must have come in whole. SDKs wait for ten by default.

    Raises:
        ValueError: a bound that is not positive.
    """

    max_request_bytes: int = 16 << 20
    max_pending_bytes: int = 64 << 20
    max_spans_per_s: float = 200_000.0
    request_timeout_s: float = 8.0

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            check_amount(name, value)
            if not 0 < value < math.inf:
                raise ValueError(f"{name}={value!r}: a bound must be greater than zero")
