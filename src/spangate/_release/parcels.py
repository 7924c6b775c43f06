"""What leaves, made ready: a released run with its stamps, a verdict span, or spans that pass untouched."""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple

from spangate import _keys as keys
from spangate._adapter import verdict_span
from spangate._dialects import dialect_of
from spangate._fingerprint import fingerprint
from spangate._paced import owned
from spangate._payload import span_bytes
from spangate._records import Finding, Span, Verdict
from spangate._release.chunks import Parcel
from spangate._release.leaving import Leaving
from spangate._release.packing import AS_THEY_ARE, Manner
from spangate._run import Run
from spangate._stamp import invocation_id
from spangate._telemetry import Telemetry
from spangate._verdict.digests import cluster

VERDICT_BYTES = 4096
"""What a verdict span is taken to weigh."""


_IDENTITY: Final = (*keys.FINGERPRINT, keys.REQUEST_MODEL, keys.REQUEST_TEMPERATURE)


def run_parcel(run: Run, bearer: Span, verdict: Verdict, telemetry: Telemetry, manner: Manner = AS_THEY_ARE) -> Parcel:
    """Make the parcel of a released run: every ended, sampled span with its stamps, ``bearer`` last.

    It holds on to the spans, not to the run: what the gates have asked that is many small objects. It takes over the
    very list that they are in, since the garbage collector goes through a new one, which takes long if it is large.
    """
    run_id, place = run.run_id, place_of(run)
    leaving = [span for span in run.spans if span is not bearer and _leaves(span)]
    if _leaves(bearer):
        leaving.append(bearer)
    packed = manner.pack(run.walk(leaving), partial(_stamps, run_id=run_id, model=manner.model))
    sizes = array("Q", (span_bytes(span) for span in run.walk(packed.spans)))
    last = packed.spans[-1] if _leaves(bearer) else None
    if last is not None:
        sizes[-1] += VERDICT_BYTES
    told = packed.tell(verdict, packed.spans)
    known = run.give_up_spans()
    known[:] = owned(packed.spans)

    def stamps(span: Span) -> Mapping[str, Any]:
        own = packed.stamps(span)
        return {**own, **told} if span is last else own

    spans = Leaving(known, stamps, packed.form)

    def refused(sent: int, why: str) -> Parcel | None:
        telemetry.release(sent)
        telemetry.lose(len(spans) - sent, why)
        told = _partial(verdict, f"{sent} of {len(spans)} spans were accepted, then the exporter {why}")
        return verdict_parcel(told, place, 1, telemetry) if told.root.sampled else None

    return Parcel(spans, sizes, lambda: telemetry.release(len(spans)), refused, spans.let_go)


def _leaves(span: Span) -> bool:
    return span.end_ns is not None and span.sampled


def _stamps(span: Span, run_id: str, model: str | None) -> dict[str, Any]:
    """Return what belongs on a released span and may not be on it: written too late to stay, evicted, or never."""
    if span.role in ("tool", "process"):
        return {keys.RUN_ID: run_id, keys.INVOCATION_ID: invocation_id(run_id.partition(".")[0], span.span_id)}
    if span.role != "generation":
        return {keys.RUN_ID: run_id}
    if keys.FINGERPRINT_SOURCE in span.attributes:
        known = {key: span.attributes[key] for key in _IDENTITY if key in span.attributes}
        return {keys.RUN_ID: run_id, **known}
    request = dialect_of(span).request(span)
    return {keys.RUN_ID: run_id, **fingerprint(request, source="attributes", model_from_config=model)}


def _partial(verdict: Verdict, why: str) -> Verdict:
    finding = Finding("export.partial", verdict.root, why, "fail")
    failures = (finding, *verdict.failures)
    return replace(
        verdict, verdict="fail", findings=(*failures, *verdict.warnings), cluster=cluster(failures), spans_withheld=0
    )


class Place(NamedTuple):
    """Where the verdict span of a run goes.

    ``root`` is the SDK span that the run's root was read from; ``is_anchored`` says that it is a request, which is no
    part of the run and stays.
    """

    root: Any
    is_anchored: bool


def place_of(run: Run) -> Place:
    """Return where the verdict span of ``run`` goes."""
    return Place(run.root.source, all(span is not run.root for span in run.spans[:1]))


def verdict_parcel(verdict: Verdict, place: Place, number: int, telemetry: Telemetry) -> Parcel:
    """Make the parcel of the verdict span that takes a run's place."""
    span = verdict_span(verdict, place.root, number, time.time_ns(), is_anchored=place.is_anchored)

    def refused(_sent: int, why: str) -> None:
        telemetry.lose(1, why)

    return Parcel([span], [VERDICT_BYTES], lambda: None, refused)


def passing_parcel(
    spans: Sequence[Span], telemetry: Telemetry, run_id: str | None = None, manner: Manner = AS_THEY_ARE
) -> Parcel | None:
    """Make the parcel of spans that pass without a verdict: as they are, but for what no encoder takes.

    Those that follow a released run are stamped with its ``run_id``, as :func:`run_parcel` does.
    """
    return _parcel([span for span in spans if _leaves(span)], telemetry, run_id, manner)


def member_parcel(spans: Sequence[Span], telemetry: Telemetry) -> Parcel | None:
    """Make the parcel of spans that are handed on to whoever judges them: open ones too, which have no end then."""
    return _parcel([span for span in spans if span.sampled], telemetry, None, AS_THEY_ARE)


def _parcel(ready: list[Span], telemetry: Telemetry, run_id: str | None, manner: Manner) -> Parcel | None:
    if not ready:
        return None

    packed = manner.pack(ready, lambda span: {} if run_id is None else _stamps(span, run_id, manner.model))
    leaving = Leaving(owned(packed.spans), packed.stamps, packed.form)
    sizes = array("Q", (span_bytes(span) for span in packed.spans))

    def refused(sent: int, why: str) -> None:
        telemetry.release(sent)
        telemetry.lose(len(leaving) - sent, why)

    return Parcel(leaving, sizes, lambda: telemetry.release(len(sizes)), refused, leaving.let_go)
