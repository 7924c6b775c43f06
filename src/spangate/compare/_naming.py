"""What spans are called in a diff: without ids, numbers and models, which differ between two equal runs."""

from __future__ import annotations

import re
from typing import Final

from spangate._names import MAX_LENGTH
from spangate._records import Span
from spangate.compare._rules import MODEL, NAMED, Rules

_MODEL_KEYS: Final = (
    *("gen_ai.request.model", "llm.request.model_name", "llm.model_name", "gen_ai.response.model", "agent.model"),
)
_LEFT_OUT: Final = {"number": "<n>"}
_ANY_ID: Final = "<id>"


class Names:
    """Names without what the rules leave out of them.

    Args:
        rules: Their ``normalise`` says what.
    """

    def __init__(self, rules: Rules) -> None:
        self._without_model = MODEL in rules.normalise
        self._patterns = [
            (re.compile(NAMED.get(one, one)), _LEFT_OUT.get(one, _ANY_ID)) for one in rules.normalise if one != MODEL
        ]
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return a name as the diff has it."""
        known = self._known.get(name)
        if known is None:
            known = name[:MAX_LENGTH]
            for pattern, instead in self._patterns:
                known = pattern.sub(instead, known)
            self._known[name] = known
        return known

    def of_span(self, span: Span) -> str:
        """Return the name of a span, that of a model call without its model."""
        if span.role == "generation" and self._without_model:
            return self.of(_without_model(span))
        return self.of(span.name)


def _without_model(span: Span) -> str:
    for key in _MODEL_KEYS:
        model = span.attributes.get(key)
        if isinstance(model, str) and model and model in span.name:
            return span.name.replace(model, "<model>")
    return span.name
