"""The completion hook of OpenTelemetry's GenAI utilities: content is hashed here, and exported by nobody.

``OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK=spangate`` switches it on, for every instrumentation that stands on
``opentelemetry-util-genai``. These hand over messages, system text and tools as they recorded them, whatever they write
on spans, before the span ends; so a prompt has the same hash as where they write it on the span.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan

from spangate import _keys as keys
from spangate._adapter import record
from spangate._dialects import classify, dialect_of
from spangate._dialects._base import Request
from spangate._dialects._values import MAX_PARSED
from spangate._fingerprint import Stamps, fingerprint
from spangate._fingerprint.sources import is_better
from spangate._hosts import tell_stamps
from spangate._records import ABSENT
from spangate._sdk.fields import has_room
from spangate._telemetry import logger


class CompletionHook:
    """Writes the fingerprint of each model call on its span, which is still live."""

    def __init__(self) -> None:
        self._has_failed = False

    def on_completion(
        self,
        *,
        inputs: Sequence[Any] = (),
        system_instruction: Sequence[Any] = (),
        tool_definitions: Sequence[Any] | None = None,
        span: Any = None,
        **_more: Any,
    ) -> None:
        """Stamp ``span``, if it is that of a model call and does not know better. Never raises."""
        try:
            if isinstance(span, ReadableSpan) and span.is_recording() and inputs:  # type: ignore[attr-defined]
                _stamp(span, inputs, system_instruction, tool_definitions)
        except Exception:  # noqa: BLE001  whoever calls this is in the middle of a model call of the program
            if not self._has_failed:
                logger.exception("the completion hook failed; a model call may be without its fingerprint")
            self._has_failed = True


def _stamp(span: Any, inputs: Sequence[Any], system: Sequence[Any], tools: Sequence[Any] | None) -> None:
    started = record(span, is_open=True)
    classify(started)
    if started.role != "generation" or not is_better("hook", started.attributes):
        return
    told = dialect_of(started).request(started)
    stamps = _stamps(told, inputs, system, tools)
    if keys.PROMPT_HASH not in stamps:
        stamps = {key: value for key, value in stamps.items() if key == keys.FINGERPRINT_GAP}
    missing = {key: value for key, value in stamps.items() if key not in started.attributes}
    if has_room(span, len(missing)):
        span.set_attributes(missing)
    tell_stamps(started.trace_id, started.span_id, missing)


def _stamps(told: Request, inputs: Sequence[Any], system: Sequence[Any], tools: Sequence[Any] | None) -> Stamps:
    try:
        written = json.dumps([_plain(inputs), _plain(system), _plain(tools or ())], default=_as_json)
    except (TypeError, ValueError, RecursionError):
        return {keys.FINGERPRINT_GAP: "hook: it holds what JSON does not have, such as a set or an object"}
    if len(written) > MAX_PARSED:
        return {keys.FINGERPRINT_GAP: f"hook: it is larger than {MAX_PARSED >> 20} MiB"}
    messages, instructions, definitions = json.loads(written)
    request = replace(told, messages=messages, system=instructions or ABSENT, tools=definitions or ABSENT)
    return fingerprint(request, source="hook")


def _plain(items: Sequence[Any]) -> Sequence[Any]:
    return [asdict(item) if is_dataclass(item) and not isinstance(item, type) else item for item in items]


def _as_json(value: Any) -> Any:
    """Write bytes as the instrumentations do, and what is left of their classes."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(type(value).__name__)
