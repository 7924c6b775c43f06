"""Token counts, messages, tools and parameters in OpenInference's attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

from spangate._dialects._base import NO_USAGE, TokenCounts, Turn
from spangate._dialects._calls import asked, received
from spangate._dialects._definitions import offered_in
from spangate._dialects._flat import OPENINFERENCE, holds_messages, steps_below, unflattened
from spangate._dialects._values import parsed, parsed_object
from spangate._records import ABSENT, Span

INPUT: Final = "input.value"
OUTPUT: Final = "output.value"
PARAMS: Final = "llm.invocation_parameters"
INPUT_MESSAGES: Final = "llm.input_messages"
OUTPUT_MESSAGES: Final = "llm.output_messages"
TOOLS: Final = "llm.tools"

PAYLOAD_KEYS: Final = frozenset(
    {
        *(INPUT, OUTPUT, PARAMS, "llm.prompts", "llm.function_call"),
        *("llm.prompt_template.template", "llm.prompt_template.variables"),
        *("tool.description", "tool.parameters", "tool.json_schema"),
    }
)
PAYLOAD_PREFIXES: Final = (
    INPUT_MESSAGES + ".",
    OUTPUT_MESSAGES + ".",
    TOOLS + ".",
    "llm.prompts.",
    "llm.choices.",
    "retrieval.documents.",
    "reranker.",
    "embedding.embeddings.",
)

_FIRST_ID: Final = re.compile(r'\{"id": ?"([^"\\]{1,256})"')
_KNOWN_ID: Final = re.compile(r'"id": ?"((?:chatcmpl|resp|msg|gen)[-_][^"\\]{1,256})"')
_COUNT: Final = "llm.token_count."
_NO_PARAMS: Final = frozenset(
    {"model", "model_name", "temperature", "stream", "stream_options", "tools", "functions", "_type", "base_url"}
)


def usage_of(attributes: Mapping[str, Any]) -> TokenCounts:
    """Return the token counts as recorded."""
    counted_in = attributes.get(_COUNT + "prompt", ABSENT)
    counted_out = attributes.get(_COUNT + "completion", ABSENT)
    total = attributes.get(_COUNT + "total", ABSENT)
    if counted_in is ABSENT and counted_out is ABSENT and total is ABSENT:
        return NO_USAGE
    return TokenCounts(
        counted_in,
        counted_out,
        total,
        attributes.get(_COUNT + "prompt_details.cache_read", ABSENT),
        attributes.get(_COUNT + "prompt_details.cache_write", ABSENT),
        attributes.get(_COUNT + "completion_details.reasoning", ABSENT),
    )


def turn_of(span: Span) -> Turn:
    """Return the tool traffic in flattened messages. A list that lost attributes is unknown, not short."""
    attributes = span.attributes
    whole = not span.dropped_attributes
    sent = whole and holds_messages(attributes, INPUT_MESSAGES, OPENINFERENCE)
    answer = whole and holds_messages(attributes, OUTPUT_MESSAGES, OPENINFERENCE)
    return Turn(
        asked=asked(steps_below(attributes, OUTPUT_MESSAGES, OPENINFERENCE)) if answer else None,
        received=received(steps_below(attributes, INPUT_MESSAGES, OPENINFERENCE)) if sent else None,
        offered=_offered(attributes) if whole else None,
    )


def _offered(attributes: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the names of all tool definitions; None if there are none or one cannot be read."""
    names: set[str] = set()
    for schema in _schemas(attributes):
        found = offered_in(schema)
        if not found:
            return None
        names |= found
    return frozenset(names) if names else None


def _schemas(attributes: Mapping[str, Any]) -> Iterator[Any]:
    for index in count():
        schema = attributes.get(f"{TOOLS}.{index}.tool.json_schema")
        if schema is None:
            return
        yield schema


def messages_in(attributes: Mapping[str, Any]) -> Any:
    """Return the messages that were sent, as objects; ``ABSENT`` if they were not recorded."""
    found = unflattened(attributes, INPUT_MESSAGES)
    if not isinstance(found, list):
        return ABSENT
    return [item.get("message", item) if isinstance(item, dict) else item for item in found]


def tools_in(attributes: Mapping[str, Any]) -> Any:
    """Return the tool definitions; ``ABSENT`` if there are none or one cannot be read."""
    found = [parsed(schema) for schema in _schemas(attributes)]
    if found:
        return ABSENT if ABSENT in found else found
    return parsed_object(attributes.get(PARAMS)).get("tools", ABSENT)


def params_in(asked_for: Mapping[str, Any]) -> dict[str, Any]:
    """Return the decoding parameters among what was asked for. None is a parameter that was not given."""
    return {key: value for key, value in asked_for.items() if key not in _NO_PARAMS and value is not None}


def response_id_in(answer: Any, start: int = 0) -> str | None:
    """Return the id at the start of a recorded answer, else the first that looks like one after ``start``."""
    if not isinstance(answer, str):
        return None
    found = _FIRST_ID.match(answer, start) or _KNOWN_ID.search(answer, start)
    return found[1] if found else None


def is_answered(attributes: Mapping[str, Any]) -> bool:
    """Tell whether a completion was recorded, or why it ended."""
    if attributes.get("llm.finish_reason") or attributes.get(OUTPUT):
        return True
    return holds_messages(attributes, OUTPUT_MESSAGES, OPENINFERENCE)
