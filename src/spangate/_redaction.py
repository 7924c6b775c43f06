"""What may not be kept or compared of recorded values: secrets, by the names of their keys, and what always differs.

Both lists are policy. A key is matched by its words, whatever its case and however they are joined, and by its last
words at least: ``api_key`` stands for ``API-Key``, ``apiKey`` and ``OPENAI_API_KEY``, and not for ``api_key_count``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

REDACTED: Final = "<redacted>"
"""What stands in the place of a secret."""

SECRET_KEYS: Final[tuple[str, ...]] = (
    *("access_key", "api_key", "apikey", "auth", "authorization", "bearer", "client_secret", "cookie", "credential"),
    *("credentials", "passphrase", "passwd", "password", "private_key", "pwd", "secret", "secret_key", "token"),
)
"""Keys whose values are secrets, unless a policy says otherwise."""

VOLATILE_KEYS: Final[tuple[str, ...]] = (
    *("created_at", "duration_ms", "elapsed_ms", "latency_ms", "nonce", "request_id", "span_id", "timestamp"),
    *("trace_id", "ts", "updated_at"),
)
"""Keys whose values differ between two equal runs, unless a policy says otherwise. They are matched as a whole."""

MAX_DEPTH: Final = 64
"""How deep values are looked through; what lies deeper is as good as a secret."""

_PLAIN: Final = (str, int, float, type(None))
"""What holds no other values: most of what is looked at, and asked for first since a mapping is told slowly."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_]+")
_KEY: Final = re.compile(r"""(?<![\w-])(?P<key>[\w-]{2,})(?P<between>["']?\s*[=:]\s*|\s+)""")
_VALUE: Final = re.compile(r"""\"[^"]*"|'[^']*'|(?:(?:Basic|Bearer|Token)\s+)?[^\s"',;&]+""", re.IGNORECASE)
_MAX_KNOWN: Final = 4096
_MAX_KEY: Final = 64
"""Characters of a key in a text that are looked at, its last ones."""


class Redaction:
    """Knows which keys are secret.

    Args:
        keys: Their names.
    """

    def __init__(self, keys: Iterable[str] = SECRET_KEYS) -> None:
        self._endings = frozenset(_words(key) for key in keys)
        self._longest = max(map(len, self._endings), default=0)
        self._known: dict[str, bool] = {}

    def covers(self, key: str) -> bool:
        """Say whether the values under ``key`` are secret."""
        known = self._known.get(key)
        if known is None:
            words = _words(key)
            known = any(words[-length:] in self._endings for length in range(1, self._longest + 1))
            if len(self._known) < _MAX_KNOWN:
                self._known[key] = known
        return known

    def of(self, value: Any) -> Any:
        """Return ``value`` with :data:`REDACTED` in the place of each secret, at any depth; nothing else changes."""
        return self._of(value, MAX_DEPTH)

    def of_text(self, text: str) -> str:
        """Return a command line or another text with what follows a secret key hidden: ``--token abc``, ``PWD=abc``.

        A secret that stands in a text without its key cannot be told.
        """
        parts: list[str] = []
        at = 0
        while (found := _KEY.search(text, at)) is not None:
            value = _VALUE.match(text, found.end()) if self._announces(found) else None
            parts += text[at : found.end("key" if value is None else "between")], "" if value is None else REDACTED
            at = found.end("key") if value is None else value.end()
        return "".join([*parts, text[at:]])

    def _announces(self, found: re.Match[str]) -> bool:
        """Say whether a secret follows: behind a sign, or behind an option."""
        key = found["key"]
        return (key.startswith("-") or found["between"].strip() != "") and self.covers(key[-_MAX_KEY:])

    def _of(self, value: Any, depth: int) -> Any:
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, Mapping):
            if not depth:
                return REDACTED
            return {
                key: REDACTED if isinstance(key, str) and self.covers(key) else self._of(inner, depth - 1)
                for key, inner in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self._of(inner, depth - 1) for inner in value] if depth else REDACTED
        return value


def without(value: Any, keys: Iterable[str] = VOLATILE_KEYS) -> Any:
    """Return ``value`` without the entries under ``keys``, at any depth. Case does not matter."""
    return _without(value, _in_lower_case(tuple(keys)), MAX_DEPTH)


@lru_cache(maxsize=64)
def _in_lower_case(keys: tuple[str, ...]) -> frozenset[str]:
    return frozenset(key.lower() for key in keys)


def _without(value: Any, keys: frozenset[str], depth: int) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping) and depth:
        return {
            key: _without(inner, keys, depth - 1)
            for key, inner in value.items()
            if not (isinstance(key, str) and key.lower() in keys)
        }
    if isinstance(value, (list, tuple)) and depth:
        return [_without(inner, keys, depth - 1) for inner in value]
    return value


def _words(key: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORD.findall(key))
