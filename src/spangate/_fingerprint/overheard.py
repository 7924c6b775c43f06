"""Requests that were overheard on their way to a model: the bytes that were sent, and the fingerprint that they make.

What was sent may be something else than what an instrumentation records: a body has every message of the history, the
schema of the answer and the tools as they went out, and the model and temperature that were asked for, where some spans
hold those of the answer. Where the two differ, this is what was really asked.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from spangate import _keys as keys
from spangate._dialects._bodies import request_in
from spangate._dialects._values import MAX_PARSED
from spangate._fingerprint import Stamps, fingerprint

_COMPRESSED: Final = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""How zlib is told to read them."""
TOO_LARGE: Final = f"the body that was sent is larger than {MAX_PARSED >> 20} MiB"
CROWDED: Final = "too many bodies waited to be read"
STREAMED: Final = "the body was streamed, and a stream can be read only once"


Sent: TypeAlias = tuple[Sequence[Any], int, "bytes | None", str]
"""What :class:`Overheard` is made of, as it is handed on by whoever sends it."""


class Overheard:
    """A request as it was sent.

    ``context`` begins with the ids of the trace and of the span that was current then, ``sent_ns`` is the moment,
    nanoseconds since the epoch. ``body`` is read when somebody asks for the stamps, which takes some time; it is None
    where it cannot be. ``encoding`` is its Content-Encoding or, without a body, why there is none.
    """

    __slots__ = ("_stamps", "body", "context", "encoding", "sent_ns")

    def __init__(self, context: Sequence[Any], sent_ns: int, body: bytes | None, encoding: str = "") -> None:
        self.context = context
        self.sent_ns = sent_ns
        self.body = body
        self.encoding = encoding
        self._stamps: Stamps | None = None

    def stamps(self) -> Stamps:
        """Return the fingerprint, or why there is none. Nothing at all for a body that is no request to a model."""
        known = self._stamps
        if known is None:
            known = unread(self.encoding) if self.body is None else _stamps_of(self.body, self.encoding)
            self._stamps, self.body = known, None
        return known


def unread(why: str) -> Stamps:
    """Return the stamp that says why a body has no fingerprint."""
    return {keys.FINGERPRINT_GAP: f"wire: {why}"}


def _stamps_of(body: bytes, encoding: str) -> Stamps:
    try:
        plain = _decoded(body, encoding.strip().lower())
        if len(plain) > MAX_PARSED:
            return unread(TOO_LARGE)
        found = json.loads(plain)
    except LookupError:
        return unread("the encoding of the body is not known here")
    except (ValueError, RecursionError, zlib.error):
        return unread("the body that was sent is not JSON")
    request = request_in(found) if isinstance(found, dict) else None
    return {} if request is None else fingerprint(request, source="wire")


def _decoded(body: bytes, encoding: str) -> bytes:
    """Undo a Content-Encoding, up to one byte more than is read.

    Raises:
        LookupError: an encoding that the standard library does not know.
    """
    if encoding in ("", "identity"):
        return body
    return zlib.decompressobj(_COMPRESSED[encoding]).decompress(body, MAX_PARSED + 1)
