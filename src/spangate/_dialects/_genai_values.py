"""Token counts, requests and messages in ``gen_ai.*`` attributes, under their current and their old names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from spangate._dialects import _events
from spangate._dialects._base import NO_USAGE, Request, TokenCounts, Turn
from spangate._dialects._calls import asked, received
from spangate._dialects._flat import PLAIN, first_message, holds_messages, steps_below, unflattened
from spangate._dialects._values import first, parsed, text_or_json
from spangate._records import ABSENT, Span

INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
SYSTEM: Final = "gen_ai.system_instructions"
DEFINITIONS: Final = "gen_ai.tool.definitions"
FLAT_INPUT: Final = "gen_ai.prompt"
FLAT_OUTPUT: Final = "gen_ai.completion"
FLAT_DEFINITIONS: Final = "llm.request.functions"
FINISH: Final = "gen_ai.response.finish_reasons"

PAYLOAD_KEYS: Final = frozenset(
    {
        INPUT,
        OUTPUT,
        SYSTEM,
        DEFINITIONS,
        FLAT_INPUT,
        FLAT_OUTPUT,
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.event.content",
        "gen_ai.tool.description",
        "gen_ai.tool.json_schema",
        "tool_arguments",
        "tool_response",
    }
)
_TRAFFIC: Final = frozenset(
    {INPUT, OUTPUT, DEFINITIONS, *first_message(FLAT_INPUT, PLAIN), *first_message(FLAT_OUTPUT, PLAIN)}
)
"""Of a span that records any message, or a tool that it offers, at least one of these."""
PAYLOAD_PREFIXES: Final = (FLAT_INPUT + ".", FLAT_OUTPUT + ".", FLAT_DEFINITIONS + ".")

_INPUT_TOKENS: Final = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS: Final = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_TOTAL_TOKENS: Final = ("gen_ai.usage.total_tokens", "llm.usage.total_tokens")
_CACHED: Final = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens",
)
_CACHE_WRITTEN: Final = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
)
_REASONING: Final = (
    "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.reasoning_tokens",
    "gen_ai.usage.details.reasoning_tokens",
    "llm.usage.reasoning_tokens",
)

_FURTHER: Final = frozenset(
    {*_INPUT_TOKENS[1:], *_OUTPUT_TOKENS[1:], *_TOTAL_TOKENS, *_CACHED, *_CACHE_WRITTEN, *_REASONING}
)
"""Everything but the two counts that are there on nearly every model call."""

_REQUEST: Final = "gen_ai.request."
_NO_PARAMS: Final = frozenset({"model", "temperature", "stream", "encoding_formats", "type"})
_OUTPUT_TYPE: Final = "gen_ai.output.type"
_SHORT: Final = {"stop_sequences": "stop", "choice.count": "n"}


def usage_of(attributes: Mapping[str, Any]) -> TokenCounts:
    """Return the token counts under the names of the conventions."""
    if _FURTHER.isdisjoint(attributes):  # nearly always, and one look instead of a dozen
        asked, answered = attributes.get(_INPUT_TOKENS[0], ABSENT), attributes.get(_OUTPUT_TOKENS[0], ABSENT)
        return NO_USAGE if asked is ABSENT and answered is ABSENT else TokenCounts(asked, answered)
    asked, answered = first(attributes, _INPUT_TOKENS), first(attributes, _OUTPUT_TOKENS)
    total = first(attributes, _TOTAL_TOKENS)
    if asked is ABSENT and answered is ABSENT and total is ABSENT:
        return NO_USAGE
    return TokenCounts(
        asked,
        answered,
        total,
        first(attributes, _CACHED),
        first(attributes, _CACHE_WRITTEN),
        first(attributes, _REASONING),
    )


def request_of(span: Span) -> Request:
    """Return what the request attributes say, with the messages from wherever they were recorded."""
    attributes = span.attributes
    told = _events.told_by(span.events) if span.events else _events.NOTHING
    sent = attributes.get(INPUT, told.sent)
    definitions = attributes.get(DEFINITIONS, told.definitions)
    system = attributes.get(SYSTEM, told.system)
    layout = _layout(attributes)
    return Request(
        model=attributes.get("gen_ai.request.model", ABSENT),
        temperature=attributes.get("gen_ai.request.temperature", ABSENT),
        system=ABSENT if system is ABSENT else text_or_json(system),
        messages=_whole(attributes, sent, FLAT_INPUT, is_flat=layout.sent),
        tools=_whole(attributes, definitions, FLAT_DEFINITIONS, is_flat=layout.tools),
        params={name: attributes[key] for name, key in layout.params},
    )


def _whole(attributes: Mapping[str, Any], told: Any, prefix: str, *, is_flat: bool) -> Any:
    """Return what is told in one attribute, else what ``is_flat``, else ``ABSENT``."""
    if told is not ABSENT:
        return parsed(told)
    return unflattened(attributes, prefix) if is_flat else ABSENT


class _Layout(NamedTuple):
    """What the names alone of a span's attributes say: the parameters among them, and what may be flattened there."""

    params: Sequence[tuple[str, str]]
    sent: bool
    tools: bool


def _layout(attributes: Mapping[str, Any]) -> _Layout:
    names = tuple(attributes)
    return _known_layout(names) if sum(map(len, names)) <= _MAX_NAMES else _read_layout(names)


def _read_layout(names: tuple[str, ...]) -> _Layout:
    params = [(name[len(_REQUEST) :], name) for name in names if name.startswith(_REQUEST)]
    named = [(_SHORT.get(short, short), name) for short, name in params if short not in _NO_PARAMS]
    if _OUTPUT_TYPE in names:
        named.append(("response_format", _OUTPUT_TYPE))
    sent, tools = (any(name.startswith(flat + ".") for name in names) for flat in (FLAT_INPUT, FLAT_DEFINITIONS))
    return _Layout(named, sent=sent, tools=tools)


_MAX_NAMES: Final = 4096
_known_layout: Final = lru_cache(256)(_read_layout)
"""An instrumentation writes the same attributes again and again."""


def tells_turn(span: Span) -> bool:
    """Say whether anything of the tool traffic may be recorded on a generation: by default nothing is."""
    return bool(span.events) or not _TRAFFIC.isdisjoint(span.attributes)


def flat_turn(span: Span) -> Turn | None:
    """Return the tool traffic of flattened messages; None if there are none."""
    attributes = span.attributes
    sent = holds_messages(attributes, FLAT_INPUT, PLAIN)
    answer = holds_messages(attributes, FLAT_OUTPUT, PLAIN)
    if not sent and not answer:
        return None
    whole = not span.dropped_attributes
    return Turn(
        asked=asked(steps_below(attributes, FLAT_OUTPUT, PLAIN)) if answer and whole else None,
        received=received(steps_below(attributes, FLAT_INPUT, PLAIN)) if sent and whole else None,
        offered=_flat_names(attributes),
    )


def _flat_names(attributes: Mapping[str, Any]) -> frozenset[str] | None:
    definitions = unflattened(attributes, FLAT_DEFINITIONS)
    if not isinstance(definitions, list):
        return None
    names = (item.get("name") for item in definitions if isinstance(item, Mapping))
    return frozenset(name for name in names if isinstance(name, str))


def is_answered(attributes: Mapping[str, Any]) -> bool:
    """Tell whether a completion was recorded, or why it ended."""
    return any(
        attributes.get(key) not in (None, "", "[]", (), [])
        for key in (FINISH, OUTPUT, FLAT_OUTPUT + ".0.content", FLAT_OUTPUT + ".0.finish_reason")
    )
