"""Messages flattened into attributes, one key a value: ``llm.input_messages.0.message.role`` and the like."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from spangate._dialects._base import ToolCall
from spangate._dialects._calls import Step, runs_at_provider
from spangate._dialects._values import call_id, text
from spangate._records import ABSENT

_MAX_MESSAGES: Final = 10_000
_MAX_DEPTH: Final = 16
_MAX_DIGITS: Final = 6


class Layout(NamedTuple):
    """How a convention spells a flattened message below its list and index."""

    message: str
    """What stands between the index and the fields of a message."""
    call_id: str
    """The fields of one tool call, below its index."""
    call_name: str
    call_arguments: str


OPENINFERENCE: Final = Layout("message.", "tool_call.id", "tool_call.function.name", "tool_call.function.arguments")
PLAIN: Final = Layout("", "id", "name", "arguments")


def holds_messages(attributes: Mapping[str, Any], prefix: str, layout: Layout) -> bool:
    """Tell whether messages are flattened below ``prefix``."""
    return not first_message(prefix, layout).isdisjoint(attributes)


@cache
def first_message(prefix: str, layout: Layout) -> frozenset[str]:
    """Return the keys of which the first of the messages below ``prefix`` has at least one."""
    return _message_keys(f"{prefix}.0.{layout.message}", layout)


def _message_keys(at: str, layout: Layout) -> frozenset[str]:
    return frozenset((at + "role", at + "content", f"{at}tool_calls.0.{layout.call_id}"))


def steps_below(attributes: Mapping[str, Any], prefix: str, layout: Layout) -> Iterator[Step]:
    """Yield calls and results of the messages below ``prefix`` in their order."""
    gap = False
    for index in range(_MAX_MESSAGES):
        at = f"{prefix}.{index}.{layout.message}"
        if _message_keys(at, layout).isdisjoint(attributes):
            if gap:
                return
            gap = True  # what an instrumentation has no attributes for is counted all the same
            continue
        gap = False
        answered = call_id(attributes.get(at + "tool_call_id"))
        if answered is not None:
            name = text(attributes.get(at + "name"))
            yield Step(is_result=True, call=ToolCall(answered, name, result=attributes.get(at + "content", ABSENT)))
        else:
            yield from _calls_below(attributes, at + "tool_calls", layout)


def _calls_below(attributes: Mapping[str, Any], prefix: str, layout: Layout) -> Iterator[Step]:
    for index in range(_MAX_MESSAGES):
        at = f"{prefix}.{index}."
        known, name = call_id(attributes.get(at + layout.call_id)), text(attributes.get(at + layout.call_name))
        if known is None and name is None:
            if index:
                return
            continue  # in a stream the text may be the first
        arguments = attributes.get(at + layout.call_arguments, ABSENT)
        at_provider = runs_at_provider(known, name)
        yield Step(is_result=False, call=ToolCall(known, name, arguments, at_provider=at_provider))


def unflattened(attributes: Mapping[str, Any], prefix: str) -> Any:
    """Return what is flattened below ``prefix`` as lists and objects; ``ABSENT`` if nothing is."""
    start = prefix + "."
    if start not in "\n".join(attributes):  # nearly always, and told in C
        return ABSENT
    tree: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(start):
            _put(tree, key[len(start) :].split(".", _MAX_DEPTH), value)
    return _listed(tree) if tree else ABSENT


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        below = tree.setdefault(step, {})
        if not isinstance(below, dict):
            return
        tree = below
    tree.setdefault(path[-1], value)


def _listed(node: Any) -> Any:
    """Turn objects whose keys are indexes into lists."""
    if not isinstance(node, dict):
        return node
    values = {key: _listed(value) for key, value in node.items()}
    if all(len(key) <= _MAX_DIGITS and key.isascii() and key.isdecimal() for key in values):
        return [values[key] for key in sorted(values, key=int)]
    return values
