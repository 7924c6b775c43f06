"""What each model call of a run asked, as far as its spans tell: what two runs are compared by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from spangate import _keys as keys
from spangate._dialects import dialect_of
from spangate._fingerprint import fingerprint
from spangate._lineage import nearest
from spangate._records import ABSENT, Span
from spangate._run import Run
from spangate._usage.calls import Call, calls_of

Form: TypeAlias = tuple[str, str]
"""Where a request is known from. Hashes of one form compare; what differs between two forms may be the same request."""

GENERATION_ID: Final = "generation_id"
_RECORDED: Final = frozenset({"start", "attributes"})
"""Sources that are one form: what a span holds at its start, it holds in the same words at its end."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one span tells of a model call's request: the facts that are known, by the key under which they are stamped.

    ``declared`` says that the model comes from the configuration, which nobody has observed.
    """

    span: Span
    facts: Mapping[str, Any]
    form: Form
    declared: bool


@dataclass(frozen=True, slots=True)
class Request:
    """One model call with everything that is known of it: by each span that recorded it, the innermost first."""

    seen: Sequence[Asked]
    agent: Span | None

    @property
    def span(self) -> Span:
        """The span that stands for the call."""
        return self.seen[0].span

    @property
    def generation_id(self) -> str | None:
        """The id that the program itself gave to the call."""
        ids = (one.span.attributes.get(GENERATION_ID) for one in self.seen)
        return next((found for found in ids if isinstance(found, str) and found), None)


def requests_of(run: Run, model_from_config: str | None = None) -> list[Request]:
    """Return the model calls of a run in the order of their starts, each once however many spans record it.

    A span that some frameworks put around the making of a request, which holds no request, no answer and no usage, is
    no call where others are. ``model_from_config`` is the model of calls that name none: declared, not observed.
    """
    agent_above = nearest(run, lambda span: span.role == "agent")
    calls = sorted(calls_of(run), key=lambda call: call.span.start_ns)
    spoken = [call for call in calls if any(map(_speaks, _spans(call)))]
    return [
        Request([asked(span, model_from_config) for span in _spans(call)], agent_above(call.span))
        for call in spoken or calls
    ]


def _spans(call: Call) -> Iterator[Span]:
    return (seen.span for seen in call.sightings)


def _speaks(span: Span) -> bool:
    if keys.FINGERPRINT_TUPLE in span.attributes:
        return True
    dialect = dialect_of(span)
    request = dialect.request(span)
    is_asked = any(value is not ABSENT for value in (request.model, request.system, request.messages))
    return is_asked or dialect.response_id(span) is not None


def asked(span: Span, model_from_config: str | None = None) -> Asked:
    """Return what a span tells: by the stamps that it bears, else by what it has recorded."""
    attributes = span.attributes
    if keys.FINGERPRINT_SOURCE in attributes and keys.PROMPT_HASH in attributes:
        stamps: Mapping[str, Any] = attributes
    else:
        stamps = {**fingerprint(dialect_of(span).request(span), source="attributes"), **_pinned(attributes)}
    if keys.REQUEST_MODEL not in stamps and model_from_config:
        stamps = {**stamps, keys.REQUEST_MODEL: model_from_config, keys.FINGERPRINT_MODEL_SOURCE: "config"}
    source = str(stamps[keys.FINGERPRINT_SOURCE])
    form = ("recorded", span.scope) if source in _RECORDED else (source, "")
    facts = {key: stamps[key] for key in FACTS if key in stamps}
    if keys.PROMPT_HASH in facts and keys.PROMPT_TEXT_HASH not in facts:
        facts[keys.PROMPT_TEXT_HASH] = facts[keys.PROMPT_HASH]  # stamps of somebody else's
    return Asked(span, facts, form, stamps.get(keys.FINGERPRINT_MODEL_SOURCE) == "config")


def _pinned(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was declared of a request that is itself unknown."""
    return {key: attributes[key] for key in (keys.FINGERPRINT_MODEL_SOURCE, keys.REQUEST_MODEL) if key in attributes}


FACTS: Final = (
    keys.PROMPT_HASH,
    keys.PROMPT_TEXT_HASH,
    keys.TOOL_SCHEMA_HASH,
    keys.REQUEST_MODEL,
    keys.REQUEST_TEMPERATURE,
    keys.FINGERPRINT_PARAMS_HASH,
)
"""What is compared. The first is there where the prompt is known, and moves with the tools; the second does not."""
