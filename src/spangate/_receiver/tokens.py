"""The tokens by which programs of runs are told from strangers, and from each other."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{16})\.([0-9a-f]{64})")


class Bearer(NamedTuple):
    """The span of the program that a token was made for."""

    trace_id: int
    span_id: int


class Tokens:
    """Makes a token for each program, and reads them again. Nothing is kept: a token is signed, not looked up.

    The secret lives as long as this object and leaves it in no other way, so that tokens of another gate, or of an
    earlier process, are worth nothing here.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def of(self, trace_id: int, span_id: int) -> str:
        """Return the token of the program whose span this is."""
        named = f"{trace_id:032x}.{span_id:016x}"
        return f"{named}.{self._sign(named)}"

    def read(self, token: str) -> Bearer | None:
        """Return whose token it is, None if it was not made here."""
        found = _TOKEN.fullmatch(token)
        if found is None:
            return None
        trace_id, span_id, signature = found.groups()
        if not hmac.compare_digest(signature, self._sign(f"{trace_id}.{span_id}")):
            return None
        return Bearer(int(trace_id, 16), int(span_id, 16))

    def _sign(self, named: str) -> str:
        return hmac.new(self._secret, named.encode(), hashlib.sha256).hexdigest()
