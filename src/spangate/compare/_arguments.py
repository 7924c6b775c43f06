"""The arguments of a call as they are compared: without secrets and what always differs, as a digest and key by key.

Where a tool's span does not record them, those count with which the model asked for the call, found by its call id; a
span that names the file that it works on (``op`` and ``path``) has these as arguments. Where only a hash was kept, as
in a compact export or a native run without content, it stands for them. What is known of neither is unknown: not equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from spangate import _keys as keys
from spangate._attempts import OPERATION, PATH, argument_text
from spangate._canonical import canonical_hash, canonical_json, text_hash
from spangate._dialects import NATIVE, dialect_of
from spangate._dialects._values import OBJECT, parsed
from spangate._dialects.native import native
from spangate._records import ABSENT, Span
from spangate._redaction import REDACTED, Redaction, without
from spangate.compare._rules import Rules

_MAX_KNOWN: Final = 1 << 14
_MAX_REMEMBERED: Final = 1 << 10
_INPUTS: Final = ("argument", "input", "parameters")
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_HASHED: Final = "hashed"
NOTHING: Final = canonical_hash({})
"""The digest of a call without arguments, however it was recorded."""


@dataclass(frozen=True, slots=True)
class Digest:
    """The digest of some arguments: 16 hex digits, and by which rule it was made; two rules' digests do not compare."""

    text: str
    made: str = ""


class Arguments:
    """Reads the arguments of calls and says what of them differs.

    Args:
        rules: Which keys are secret, which always differ, and which tools are compared by name only.
    """

    def __init__(self, rules: Rules) -> None:
        self._redaction = Redaction(rules.redact)
        self._volatile = tuple(rules.volatile)
        self._known: dict[str, Digest | None] = {}
        self._fates: dict[str, str] = {}

    def digest(self, value: Any, spans: Iterable[Span]) -> Digest | None:
        """Return the digest of a call, None where nothing is known of its arguments.

        Args:
            value: The arguments; ``ABSENT`` where a hash that the spans have stands for them.
            spans: Those that tell of the call.
        """
        return _hashed(spans) if value is ABSENT else self._digest(value)

    def value(self, spans: Sequence[Span], asked: Any = ABSENT) -> Any:
        """Return the arguments of a call; ``ABSENT`` where they were not recorded.

        Args:
            spans: The span of the call, and those of other instrumentations inside of it.
            asked: The arguments with which the model asked for it.
        """
        for span in spans:
            value = dialect_of(span).tool_call(span).arguments
            if value is not ABSENT:
                return value
        return _declared(spans[0]) if asked is ABSENT else asked

    def moved(self, before: Any, after: Any) -> tuple[str, ...]:
        """Return the top-level keys in which two arguments differ, sorted; none where one of them is no object."""
        ours, theirs = self._as_object(before), self._as_object(after)
        if ours is None or theirs is None:
            return ()
        return tuple(
            sorted(
                str(key)
                for key in ours.keys() | theirs.keys()
                if self._text(ours.get(key, ABSENT)) != self._text(theirs.get(key, ABSENT))
            )
        )

    def _digest(self, value: Any) -> Digest | None:
        if not isinstance(value, str) or len(value) > _MAX_REMEMBERED:
            return self._made(value)
        if value not in self._known:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[value] = self._made(value)
        return self._known[value]

    def _made(self, value: Any) -> Digest | None:
        text = self._text(value)
        return None if text is None else Digest(text_hash(text))

    def _text(self, value: Any) -> str | None:
        """Return what is hashed; None for what is no JSON."""
        if value is ABSENT:
            return None
        try:
            if type(value) is dict and all(type(inner) in _PLAIN for inner in value.values()):
                return canonical_json(self._flat(value))
            found = parsed(value)
            return argument_text(value if found is ABSENT else without(found, self._volatile), self._redaction)
        except (TypeError, ValueError, RecursionError):
            return None

    def _flat(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments that hold no others, as nearly all are, with the same left out of them as at any depth."""
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            fate = self._fates.get(key) or self._decide(key)
            if fate == "kept":
                kept[key] = self._redaction.of_text(inner) if isinstance(inner, str) else inner
            elif fate == "secret":
                kept[key] = REDACTED
        return kept

    def _decide(self, key: str) -> str:
        """Say what becomes of the values under a key, and remember it."""
        fate = "volatile" if not without({key: None}, self._volatile) else "kept"
        if fate == "kept" and self._redaction.covers(key):
            fate = "secret"
        if len(self._fates) < _MAX_KNOWN:
            self._fates[key] = fate
        return fate

    def _as_object(self, value: Any) -> Mapping[str, Any] | None:
        found = without(self._redaction.of(parsed(value)), self._volatile)
        return found if isinstance(found, OBJECT) else None


def _declared(span: Span) -> Any:
    """Return what a span says it works on, and no arguments for a native call that had none."""
    attributes = span.attributes
    if PATH in attributes or OPERATION in attributes:
        return {key: attributes[key] for key in (OPERATION, PATH) if key in attributes}
    if dialect_of(span) is NATIVE and span.name == "agent.tool" and native(attributes, "input_hash") is ABSENT:
        return ABSENT if any(key.startswith(keys.PAYLOAD_SHA256) for key in attributes) else {}
    return ABSENT


def _hashed(spans: Iterable[Span]) -> Digest | None:
    """Return a hash of the arguments that was kept in their place."""
    for span in spans:
        found = native(span.attributes, "input_hash")
        if isinstance(found, str):
            return Digest(found, "input_hash")
        for key, value in span.attributes.items():
            if key.startswith(keys.PAYLOAD_SHA256) and isinstance(value, str) and any(one in key for one in _INPUTS):
                return Digest(value, _HASHED)
    return None
