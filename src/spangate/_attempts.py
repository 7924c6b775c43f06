"""What a call of a tool is, so that the same call is known again: its name, its version, its arguments without secrets.

A fingerprint is the first 16 hex digits of the sha256 over name, version and argument text, a line each. The text of
arguments that are an object is their canonical JSON, so that the order of keys changes nothing; that of a list of words
is the command line that they make. Secrets are hidden before anything is hashed (:mod:`spangate._redaction`): the same
call with another password is the same call.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from spangate._canonical import canonical_json, text_hash
from spangate._dialects import dialect_of
from spangate._dialects._values import first, parsed
from spangate._records import ABSENT, Span
from spangate._redaction import Redaction

_VERSION: Final = ("tool_version", "tool.version")
_MUTATES: Final = ("mutates", "agent.mutates")
_SPELLED: Final = {"true": True, "false": False}
OPERATION: Final = "op"
PATH: Final = "path"


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool. ``fingerprint`` is None where its arguments are not known."""

    tool: str
    version: str
    fingerprint: str | None


def argument_text(arguments: Any, redaction: Redaction) -> str:
    """Return arguments as the text that is hashed: secrets hidden, keys in order, None as no arguments at all.

    Raises:
        TypeError: They hold what is not JSON.
        ValueError: They hold NaN or infinity.
    """
    if arguments is None:
        return ""
    if isinstance(arguments, str):
        found = parsed(arguments) if arguments.lstrip().startswith(("{", "[")) else ABSENT
        try:
            return redaction.of_text(arguments) if found is ABSENT else argument_text(found, redaction)
        except ValueError:  # what says NaN is no JSON, and a text all the same
            return redaction.of_text(arguments)
    if isinstance(arguments, (list, tuple)) and all(isinstance(word, str) for word in arguments):
        return redaction.of_text(shlex.join(arguments))
    return canonical_json(_of_texts(redaction.of(arguments), redaction))


def _of_texts(value: Any, redaction: Redaction) -> Any:
    """Hide what follows a secret key inside of texts, too: a command line is often one of several arguments."""
    if isinstance(value, str):
        return redaction.of_text(value)
    if isinstance(value, dict):
        return {key: _of_texts(inner, redaction) for key, inner in value.items()}
    return [_of_texts(inner, redaction) for inner in value] if isinstance(value, list) else value


def call_of(tool: str, version: str, arguments: Any, redaction: Redaction) -> Call:
    """Return a call with its fingerprint. ``arguments`` may be ``ABSENT``. Raises as :func:`argument_text` does."""
    tool, version = redaction.of_text(tool), redaction.of_text(version)
    if arguments is ABSENT:
        return Call(tool, version, None)
    return Call(tool, version, text_hash(f"{tool}\n{version}\n{argument_text(arguments, redaction)}"))


def recorded_call(span: Span, redaction: Redaction) -> Call:
    """Return the call that a span tells of. Programs record no arguments; what is no JSON says nothing."""
    call = dialect_of(span).tool_call(span)
    tool, version = call.name or span.name, _version_of(span)
    try:
        return call_of(tool, version, call.arguments, redaction)
    except (TypeError, ValueError):
        return call_of(tool, version, ABSENT, redaction)


def is_exempt(tool: str, patterns: Iterable[str]) -> bool:
    """Say whether one of ``patterns`` (``poll_*``, as in a shell; case matters) names the tool."""
    return any(fnmatchcase(tool, pattern) for pattern in patterns)


def declares_change(span: Span) -> bool | None:
    """Say whether a span declares that it changes something outside the run (``mutates``); None if it does not say."""
    value = first(span.attributes, _MUTATES)
    if isinstance(value, str):
        return _SPELLED.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def names_file(attributes: Mapping[str, Any]) -> bool:
    """Say whether a span declares a file that it works on, and how."""
    return OPERATION in attributes or PATH in attributes


def _version_of(span: Span) -> str:
    value = first(span.attributes, _VERSION)
    return value if isinstance(value, str) else ""
