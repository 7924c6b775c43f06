"""The Model Context Protocol: the messages of a client, and a server's answer to a call, which is the tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final

from spangate._dialects._base import ToolCall
from spangate._dialects._values import text
from spangate._dialects.genai import MCP_METHOD, OPERATION, GenAI
from spangate._records import Role, Span

_CALL: Final = "tools/call"


class Mcp(GenAI):
    """The id of a JSON-RPC request is no call id."""

    name: ClassVar[str] = "mcp"
    scopes: ClassVar[Mapping[str, Role]] = {
        "mcp-python-sdk": "transport",
        "fastmcp": "transport",
        "openinference.instrumentation.mcp": "transport",
    }
    marks: ClassVar[tuple[str, ...]] = (MCP_METHOD,)

    def role(self, span: Span) -> Role:
        """Say what the span is: the server's side of a call executes it."""
        if span.kind != "SERVER":
            return "transport"
        attributes = span.attributes
        if attributes.get(OPERATION) == "execute_tool" or attributes.get(MCP_METHOD) == _CALL:
            return "tool"
        bare = span.end_ns is None or not attributes
        return "tool" if bare and MCP_METHOD not in attributes and span.name.startswith(_CALL) else "transport"

    def tool_call(self, span: Span) -> ToolCall:
        """Return the call that a server executed; its name stands in the span's name at least."""
        call = super().tool_call(span)
        if call.name is None and span.name.startswith(_CALL + " "):
            return replace(call, name=text(span.name[len(_CALL) + 1 :]))
        return call
