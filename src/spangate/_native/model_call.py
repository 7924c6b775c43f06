"""A call of a model in an iteration: what was asked, by hashes at least, what came back and what it used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from opentelemetry.trace import SpanKind

from spangate._dialects import _genai_values as genai
from spangate._dialects._base import Request
from spangate._dialects.genai import OPERATION
from spangate._fingerprint import fingerprint
from spangate._native.content import answer_of, attribute, digest, messages_of, plain, written
from spangate._native.course import Turn
from spangate._native.loop import Loop
from spangate._native.work import Work
from spangate._records import ABSENT
from spangate._redaction import REDACTED, Redaction

_SECRETS: Final = Redaction()


class ModelCall(Work):
    """What ``it.llm(...)`` makes: ``with it.llm(...) as call: call.answer(...)``."""

    _span_name = "agent.llm"
    _kind = SpanKind.CLIENT

    def __init__(self, loop: Loop, turn: Turn, request: Request, facts: Mapping[str, Any]) -> None:
        messages, system = (None if part is ABSENT else part for part in (request.messages, request.system))
        asked = messages if system is None else {"system": system, "messages": messages}
        self._input_hash = digest(asked)
        known = {
            OPERATION: "chat",
            "agent.input_hash": self._input_hash,
            **_parameters(request.params),
            **fingerprint(request, source="explicit"),
            **(_content(request) if loop.recorder.records_content else {}),
            **facts,
        }
        super().__init__(loop, turn, "a call of the model", known)

    def __enter__(self) -> ModelCall:
        """Begin it."""
        self._begin(self._input_hash)
        return self

    async def __aenter__(self) -> ModelCall:
        """Begin it."""
        return self.__enter__()

    def answer(  # noqa: PLR0913  an answer has so many parts
        self,
        text: str | None = None,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cached_tokens: int | None = None,
        tool_calls: Sequence[Any] = (),
        finish_reason: str | None = None,
        response_id: str | None = None,
        model: str | None = None,
    ) -> None:
        """Record what came back. What is None is not recorded: a count that is absent is not zero.

        Args:
            text: What the model wrote.
            input_tokens: What the provider counted for the request, cached tokens included.
            output_tokens: What it counted for the answer, reasoning included.
            cached_tokens: How many of the input tokens were read from a cache.
            tool_calls: The calls that it asks for, each with ``id``, ``name`` and ``arguments``, or as a chat
                completion has them.
            finish_reason: Why it stopped.
            response_id: The id that the provider gave the answer.
            model: The model that answered, if the provider says.
        """
        calls = plain(tool_calls)
        self._set(
            {
                "agent.output_hash": digest({"text": text, "tool_calls": calls} if calls else text),
                "gen_ai.usage.input_tokens": input_tokens,
                "gen_ai.usage.output_tokens": output_tokens,
                "gen_ai.usage.cache_read.input_tokens": cached_tokens,
                genai.FINISH: None if finish_reason is None else [finish_reason],
                "gen_ai.response.id": response_id,
                "gen_ai.response.model": model,
            }
        )
        if self._loop.recorder.records_content:
            self._set({genai.OUTPUT: written(answer_of(text, calls, finish_reason))})


def _parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters as attributes. Clients take keys and headers beside them, which are nobody's to record."""
    return {f"gen_ai.request.{name}": _parameter(name, value) for name, value in params.items()}


def _parameter(name: str, value: Any) -> Any:
    if _SECRETS.covers(name):
        return REDACTED
    shown = attribute(value)
    return shown if shown is value else _SECRETS.of_text(shown)  # not in the value, which may hold itself many times


def _content(request: Request) -> dict[str, str]:
    content: dict[str, str] = {}
    if request.messages is not ABSENT:
        content[genai.INPUT] = written(messages_of(request.messages))
    if request.system is not ABSENT:
        content[genai.SYSTEM] = written([{"type": "text", "content": request.system}])
    if request.tools is not ABSENT:
        content[genai.DEFINITIONS] = written(request.tools)
    return content
