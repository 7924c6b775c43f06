"""The compact form of one span, and what that would weigh."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from spangate import _keys as keys
from spangate._canonical import HASH_DIGITS
from spangate._compact.digest import SHA256_DIGITS, digest, raw_bytes
from spangate._compact.names import EXCEPTION_TEXTS, STATUS_DESCRIPTION, Names, event_names, names_of
from spangate._dialects import dialect_of
from spangate._dialects._flat import unflattened
from spangate._payload import mapping_bytes, text_bytes
from spangate._records import ABSENT, Event, Span

Keep: TypeAlias = Callable[[str, bytes], None]
"""Takes a raw payload with its sha256 in hex digits."""

_TEXTS: Final = EXCEPTION_TEXTS | {STATUS_DESCRIPTION}
"""What is text by its nature: it has no shape to tell of."""
_EXCEPTION: Final = re.compile(
    r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|Exit|Failure|Interrupt|Timeout|Warning|Cancelled)(?=\(|:|$)"
)
_NAME: Final = re.compile(r"[A-Za-z0-9_.]{1,128}")
_HASHES: Final = len(keys.PAYLOAD_SHA256) + SHA256_DIGITS + len(keys.PAYLOAD_SCHEMA) + HASH_DIGITS


def compact(span: Span, keep: Keep | None = None) -> Span:
    """Return ``span`` with hashes in the place of its payloads; the very span if there are none on it.

    Name, ids, times, status, token counts, links and everything that is no payload stay. Of the description of a status
    the type of the exception stays, if one is told. Raw payloads are given to ``keep``.
    """
    dialect = dialect_of(span)
    hidden = hidden_description(span)
    described = _type_of(span) if hidden else span.status_description
    attributes = _compacted(span.attributes, names_of(dialect), keep, hidden)
    events = [_event(event, event_names(dialect, event.name), keep) for event in span.events]
    if attributes is None and all(new is old for new, old in zip(events, span.events, strict=True)):
        return span
    attributes = {**span.attributes} if attributes is None else attributes
    made = replace(span, attributes=attributes, events=events, status_description=described, weight=None)
    outcome = dialect.outcome(span)
    if dialect.outcome(made) != outcome:
        attributes[keys.OUTCOME] = outcome
    return made


def compact_bytes(span: Span) -> int:
    """Return what attributes and events of the compact form of ``span`` would weigh, each payload hashed.

    The texts of an error count as nothing but their hashes, too.
    """
    dialect = dialect_of(span)
    total = _weight(span.attributes, names_of(dialect))
    for event in span.events:
        total += text_bytes(event.name) + _weight(event.attributes, event_names(dialect, event.name))
    if hidden_description(span):
        total += _hashes_bytes(STATUS_DESCRIPTION)
    return total


def hidden_description(span: Span) -> str:
    """Return the description of the status of ``span`` if it says more than the type of an error, else nothing."""
    described = span.status_description
    return "" if not described or described == _type_of(span) else described


def _event(event: Event, names: Names, keep: Keep | None) -> Event:
    attributes = _compacted(event.attributes, names, keep)
    return event if attributes is None else Event(event.name, attributes, event.time_ns)


def _compacted(
    attributes: Mapping[str, Any], names: Names, keep: Keep | None, hidden: str = ""
) -> dict[str, Any] | None:
    """Return attributes with hashes instead of payloads; None if no payload is among them.

    ``hidden`` is the description of a status that counts as one.
    """
    kept: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {STATUS_DESCRIPTION: {STATUS_DESCRIPTION: hidden}} if hidden else {}
    for key, value in attributes.items():
        group = names.group(key)
        if group is None:
            kept[key] = value
        else:
            groups.setdefault(group, {})[key] = value
    if not groups:
        return None
    unhashed = list(kept.pop(keys.PAYLOADS_UNHASHED, ()))
    for group, parts in groups.items():
        hashes = _hashes(group, _whole(group, parts), keep)
        if keys.PAYLOAD_SHA256 + group not in hashes:
            unhashed.append(group)
        kept.update(hashes)
    if unhashed:
        kept[keys.PAYLOADS_UNHASHED] = unhashed
    return kept


def _whole(group: str, parts: Mapping[str, Any]) -> Any:
    """Return the one payload that some attributes are: what stands under one key, or is flattened below it."""
    if group not in parts:
        return unflattened(parts, group)
    flat = unflattened(parts, group)
    return parts[group] if flat is ABSENT else [parts[group], flat]


def _hashes(group: str, payload: Any, keep: Keep | None) -> dict[str, str]:
    found: dict[str, str] = {}
    digested = digest(payload)
    if digested is not None:
        found[keys.PAYLOAD_SHA256 + group] = digested.sha256
        if group not in _TEXTS:
            found[keys.PAYLOAD_SCHEMA + group] = digested.schema
    raw = None if keep is None else raw_bytes(payload)
    if keep is not None and raw is not None:
        found[keys.PAYLOAD_RAW_SHA256 + group] = sha256 = hashlib.sha256(raw).hexdigest()
        keep(sha256, raw)
    return found


def _type_of(span: Span) -> str:
    """Return the type of the exception that a span ended with, as far as that is told apart from its message."""
    found = span.attributes.get("error.type")
    for event in span.events:
        if event.name == "exception":
            found = event.attributes.get("exception.type", found)
    if isinstance(found, str) and _NAME.fullmatch(found):
        return found
    described = _EXCEPTION.match(span.status_description, 0, 256)
    return described[0] if described else ""


def _weight(attributes: Mapping[str, Any], names: Names) -> int:
    kept = {key: value for key, value in attributes.items() if names.group(key) is None}
    total = mapping_bytes(kept)
    if len(kept) < len(attributes):
        groups = {group for key in attributes if (group := names.group(key)) is not None}
        total += sum(map(_hashes_bytes, groups))
    return total


def _hashes_bytes(group: str) -> int:
    if group in _TEXTS:
        return len(keys.PAYLOAD_SHA256) + SHA256_DIGITS + text_bytes(group)
    return _HASHES + 2 * text_bytes(group)
