"""The key of a decision: its kind, and a hash of everything that it was made from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from spangate._canonical import canonical_json, text_hash
from spangate.tape._errors import TapeError
from spangate.tape._values import why_no_json, written

STEP: Final = "step"
_SEPARATOR: Final = ":"


def tape_key(kind: str, payload: Mapping[str, Any]) -> str:
    """Return the key: the kind, a colon, and the first 16 hex digits of the sha256 of the payload's canonical JSON.

    Args:
        kind: ``llm``, ``tool``, ``env``, or a word of your own.
        payload: What the decision was made from, with its ``step``.

    Raises:
        TapeError: the payload is not JSON; it names the place.
    """
    return f"{kind}{_SEPARATOR}{text_hash(canonical(payload))}"


def canonical(payload: Any) -> str:
    """Write a payload as canonical JSON. Raises a :class:`TapeError` that says where it is none."""
    try:
        return canonical_json(written(payload))
    except (TypeError, ValueError, RecursionError):
        raise TapeError(f"what decides has to be JSON, or nobody could tell it again: {why_no_json(payload)}") from None


class Steps:
    """Counts how often the same decision was made.

    A payload that names its ``step`` is taken at its word. For any other, the first time is step 1, the second time
    step 2. So tools of one turn that run in parallel have the same keys in whatever order they run, and a decision that
    comes again is told from its first time.
    """

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()

    def numbered(self, kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Return the payload with its step."""
        if STEP in payload:
            return dict(payload)
        same = f"{kind}{_SEPARATOR}{canonical(payload)}"
        self._times[same] += 1
        return {**payload, STEP: self._times[same]}
