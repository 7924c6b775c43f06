"""A call of a tool in an iteration: what was called with what, how often, whether it went well, what it returned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spangate._dialects.genai import ARGUMENTS, OPERATION, RESULT, TOOL_NAME
from spangate._errors import LoopError
from spangate._native.content import digest, plain, written
from spangate._native.course import Turn
from spangate._native.loop import Loop
from spangate._native.recorder import error_name, fail
from spangate._native.work import Work


class ToolCall(Work):
    """What ``it.tool(...)`` makes: ``with it.tool(name, arguments) as tool: tool.result(...)``."""

    _span_name = "agent.tool"

    def __init__(
        self, loop: Loop, turn: Turn, tool: str, arguments: Any, schema: Any, facts: Mapping[str, Any]
    ) -> None:
        self._tool = tool
        arguments = plain(arguments)
        self._input_hash = digest(arguments)
        self._schema_hash = digest(plain(schema))
        self._error: str | None = None
        shows_arguments = loop.recorder.records_content and arguments is not None
        known = {
            OPERATION: "execute_tool",
            TOOL_NAME: tool,
            ARGUMENTS[0]: written(arguments) if shows_arguments else None,
            "agent.tool": tool,
            "agent.input_hash": self._input_hash,
            "agent.schema_hash": self._schema_hash,
            **facts,
        }
        super().__init__(loop, turn, f"tool {tool!r}", known)

    def __enter__(self) -> ToolCall:
        """Begin it.

        Raises:
            SpangateError: the tool had another schema before. It is not called, and the run has halted.
        """
        self._begin(digest([self._tool, self._input_hash]))
        call = self._tool, self._input_hash if self._input_hash is not None else self
        course = self._loop.course
        self.span.set_attribute("agent.attempt", course.attempt(self._turn, *call))
        if self._schema_hash is not None and course.has_drifted(self._tool, self._schema_hash):
            what = f"the schema of tool {self._tool!r} has changed since its first call, so the run has halted"
            drift = LoopError(f"{what}: offer one schema for as long as a run goes on", "schema_drift")
            self.__exit__(LoopError, drift, None)
            self._loop.halt(drift.halt_reason, drift)
            raise drift
        return self

    async def __aenter__(self) -> ToolCall:
        """Begin it."""
        return self.__enter__()

    def result(self, value: Any) -> None:
        """Record what the tool returned: its size, its hash and, if content is recorded, all of it."""
        value = plain(value)
        text = written(value)
        self._set(
            {
                "tool_payload_bytes": len(text.encode("utf-8", "surrogatepass")),
                "agent.output_hash": digest(value),
                RESULT[0]: text if self._loop.recorder.records_content else None,
            }
        )

    def fail(self, error: BaseException | str) -> None:
        """Record that the tool failed, though nothing is raised: for tools that return their errors.

        Args:
            error: What it would have raised, or a name for that. Names are grouped on: put no message in one.
        """
        self._error = error if isinstance(error, str) else error_name(error)

    def _finish(self, error: BaseException | None) -> None:
        name = self._error if error is None else error_name(error)
        self._set({"agent.ok": name is None, "agent.error_class": name})
        if error is not None or name is not None:
            fail(self.span, error or name or "")
