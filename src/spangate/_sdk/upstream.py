"""The exporter of a process that is a part of a run: hands spans on to the gate that holds the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from spangate._sdk.forks import after_fork

Headers = Mapping[str, str]
_MOST = 32
"""So many exporters are kept: each has a connection of its own."""
_TIMEOUT_S = 3
"""How long one try may take: on the same host, more means that nobody is there, and the process may want to end."""


class Upstream(SpanExporter):
    """Sends spans to the receiver at ``address``, with the headers that ``headers_for`` has for a trace."""

    def __init__(self, address: str, headers_for: Callable[[int], Headers]) -> None:
        self._endpoint = f"{address}/v1/traces"
        self._headers_for = headers_for
        self._exporters: dict[tuple[tuple[str, str], ...], SpanExporter] = {}
        after_fork(self._reconnect)

    def _reconnect(self) -> None:
        """Have connections of its own: one that two processes use is of use to neither."""
        self._exporters = {}

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans. One that is refused fails all: whoever retries sends the same again."""
        results = [self._exporter(trace_id).export(group) for trace_id, group in _by_trace(spans)]
        return next((result for result in results if result is not SpanExportResult.SUCCESS), SpanExportResult.SUCCESS)

    def _exporter(self, trace_id: int) -> SpanExporter:
        headers = self._headers_for(trace_id)
        key = tuple(headers.items())
        if key not in self._exporters:
            if len(self._exporters) >= _MOST:
                self._exporters.clear()
            self._exporters[key] = _otlp_exporter(self._endpoint, headers)
        return self._exporters[key]

    def shutdown(self) -> None:
        """Shut the exporters down."""
        for exporter in self._exporters.values():
            exporter.shutdown()


def _by_trace(spans: Iterable[ReadableSpan]) -> list[tuple[int, list[ReadableSpan]]]:
    ordered = sorted(spans, key=lambda span: span.context.trace_id)
    return [(trace_id, [*group]) for trace_id, group in groupby(ordered, key=lambda span: span.context.trace_id)]


def _otlp_exporter(endpoint: str, headers: Headers) -> SpanExporter:
    import requests  # both are heavy: only where wanted
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    session = requests.Session()
    session.trust_env = False  # no proxy leads to this host
    return OTLPSpanExporter(endpoint=endpoint, headers=dict(headers), session=session, timeout=_TIMEOUT_S)
