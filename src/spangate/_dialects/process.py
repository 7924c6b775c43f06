"""OpenTelemetry's conventions for programs: a span for each one that ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from spangate._dialects._base import ToolCall
from spangate._dialects._values import call_id
from spangate._dialects.plain import Plain
from spangate._records import Role, Span

EXIT_CODE: Final = "process.exit.code"
PID: Final = "process.pid"
EXECUTABLE: Final = "process.executable.name"
_CALL_ID: Final = "gen_ai.tool.call.id"


class Process(Plain):
    """A program that was started. It belongs to the run it is in and makes none."""

    name: ClassVar[str] = "process"
    scopes: ClassVar[Mapping[str, Role]] = {"spangate.process": "process"}
    marks: ClassVar[tuple[str, ...]] = (EXIT_CODE, EXECUTABLE)
    payload_keys: ClassVar[frozenset[str]] = frozenset({"process.command_args", "process.command_line"})

    def role(self, span: Span) -> Role:  # noqa: ARG002 - the question is the protocol's
        """Say that the span is a program."""
        return "process"

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that the program was started for, where its span names one."""
        return ToolCall(call_id(span.attributes.get(_CALL_ID)))
