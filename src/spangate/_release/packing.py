"""What becomes of the spans that leave: by default they leave as they are, with their stamps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from spangate._records import Span, Verdict
from spangate._release.leaving import Form, ReleasedSpan
from spangate._verdict.account import verdict_attributes

Stamps: TypeAlias = Callable[[Span], Mapping[str, Any]]


class Packed(NamedTuple):
    """Records that leave, what gives their stamps, what they become, and what the last of a run tells of the whole."""

    spans: Sequence[Span]
    stamps: Stamps
    form: Form = ReleasedSpan
    tell: Callable[[Verdict, Sequence[Span]], Mapping[str, Any]] = lambda verdict, _spans: verdict_attributes(verdict)


Pack: TypeAlias = Callable[[Sequence[Span], Stamps], Packed]


def whole(spans: Sequence[Span], stamps: Stamps) -> Packed:
    """Have spans leave as they are."""
    return Packed(spans, stamps)


class Manner(NamedTuple):
    """How spans leave: what becomes of them, and the model that is stamped where a request names none."""

    pack: Pack = whole
    model: str | None = None


AS_THEY_ARE: Final = Manner()
