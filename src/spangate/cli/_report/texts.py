"""Texts of spans as a page may hold them: secrets hidden, what nobody can see written out, and cut where too long."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from spangate._redaction import MAX_DEPTH, REDACTED, Redaction

MAX_VALUE: Final = 20_000
"""So many characters of a value are in the page."""
MAX_NAME: Final = 200
MAX_SENTENCE: Final = 800
"""So many characters of a name, and of a sentence, are in the page."""

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Control characters, lone halves of characters, marks that turn the direction of writing, and what has no shape at
all. Joiners, which many scripts need, are none of these."""

_ESCAPED_QUOTE: Final = re.compile(r'\\+"')


def visible(text: str) -> str:
    r"""Write a text so that all of it is seen: what would be invisible, or move other text, becomes ``\u202e``."""
    return _UNSEEN.sub(_escape, text.replace("\r\n", "\n"))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape", "backslashreplace").decode("ascii")


class Texts:
    """Makes texts of recorded values.

    Args:
        redaction: Knows which keys are secret.
    """

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def name(self, text: str) -> str:
        """Return a name on one line."""
        return self._line(text, MAX_NAME)

    def sentence(self, text: str) -> str:
        """Return a sentence on one line, as findings and error messages are."""
        return self._line(text, MAX_SENTENCE)

    def _line(self, text: str, most: int) -> str:
        whole = visible(self._redaction.of_text(text)).replace("\n", " ")
        return whole if len(whole) <= most else whole[: most - 1] + "…"

    def value(self, key: str, value: Any) -> str | tuple[str, int]:
        """Return the value under ``key``; of a long one its beginning, and how many characters are left out."""
        whole = visible(REDACTED if self._redaction.covers(key) else self._text(value))
        return whole if len(whole) <= MAX_VALUE else (whole[:MAX_VALUE], len(whole) - MAX_VALUE)

    def _text(self, value: Any) -> str:
        if isinstance(value, str):
            parsed = _parsed(value)
            return self._plain(value) if parsed is None else self._pretty(parsed)
        if isinstance(value, (Mapping, list, tuple)):
            return self._pretty(value)
        return f"{len(value):,} bytes: {value.hex()}" if isinstance(value, bytes) else str(value)

    def _plain(self, text: str) -> str:
        """Hide secrets in a text that is no JSON, or was cut: quotes in what is left of it may be escaped."""
        hidden = self._redaction.of_text(text)
        if '\\"' not in text:
            return hidden
        bare = _ESCAPED_QUOTE.sub('"', text)
        told = self._redaction.of_text(bare)
        return hidden if told == bare else told

    def _pretty(self, value: Any) -> str:
        return json.dumps(self._hidden(value, MAX_DEPTH), ensure_ascii=False, indent=2, default=str)

    def _hidden(self, value: Any, depth: int) -> Any:
        """Hide secrets at any depth, also in JSON that stands in JSON as text."""
        if isinstance(value, str):
            parsed = _parsed(value) if depth else None
            if parsed is None:
                return self._plain(value)
            return json.dumps(self._hidden(parsed, depth - 1), ensure_ascii=False, default=str)
        if not isinstance(value, (Mapping, list, tuple)):
            return value
        if not depth:
            return REDACTED
        if isinstance(value, Mapping):
            return {
                str(key): REDACTED if self._redaction.covers(str(key)) else self._hidden(inner, depth - 1)
                for key, inner in value.items()
            }
        return [self._hidden(inner, depth - 1) for inner in value]


def _parsed(text: str) -> Any:
    """Return the object or list that a text holds as JSON, None if it holds none."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
