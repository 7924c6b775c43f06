"""The dialect layer: which convention wrote a span, and what the span then means. One file a convention."""

from __future__ import annotations

from typing import Final

from spangate._dialects._base import Dialect
from spangate._dialects._roles import scope_owner
from spangate._dialects.agent_framework import AgentFramework
from spangate._dialects.anthropic_sdk import AnthropicSdk
from spangate._dialects.autogen import AutoGen
from spangate._dialects.genai import REQUEST_MODEL, GenAI
from spangate._dialects.google_adk import GoogleAdk
from spangate._dialects.mcp import Mcp
from spangate._dialects.native import Native, is_native
from spangate._dialects.openinference import OpenInference
from spangate._dialects.openinference_clients import OpenInferenceClients
from spangate._dialects.openinference_crewai import OpenInferenceCrewAI
from spangate._dialects.openinference_langchain import OpenInferenceLangChain
from spangate._dialects.openinference_llama_index import OpenInferenceLlamaIndex
from spangate._dialects.openinference_openai_agents import OpenInferenceOpenAIAgents
from spangate._dialects.openinference_smolagents import OpenInferenceSmolagents
from spangate._dialects.plain import Plain
from spangate._dialects.process import Process
from spangate._dialects.pydantic_ai import PydanticAI
from spangate._dialects.strands import Strands
from spangate._dialects.traceloop import Traceloop
from spangate._dialects.traceloop_crewai import TraceloopCrewAI
from spangate._dialects.traceloop_langchain import TraceloopLangChain
from spangate._dialects.traceloop_openai_agents import TraceloopOpenAIAgents
from spangate._records import Span

PLAIN: Final = Plain()
NATIVE: Final = Native()
GENAI: Final = GenAI()
DIALECTS: Final[tuple[Dialect, ...]] = (
    NATIVE,
    GENAI,
    OpenInference(),
    OpenInferenceClients(),
    OpenInferenceLangChain(),
    OpenInferenceOpenAIAgents(),
    OpenInferenceLlamaIndex(),
    OpenInferenceSmolagents(),
    OpenInferenceCrewAI(),
    Traceloop(),
    TraceloopLangChain(),
    TraceloopOpenAIAgents(),
    TraceloopCrewAI(),
    AnthropicSdk(),
    PydanticAI(),
    Strands(),
    GoogleAdk(),
    AgentFramework(),
    AutoGen(),
    Mcp(),
    Process(),
    PLAIN,
)
"""Every dialect. Attributes that show one in a span of an unknown scope are looked for in this order."""

_MAX_KNOWN: Final = 1024
_MAX_SCOPE: Final = 256
_BY_NAME: Final = {scope: dialect for dialect in DIALECTS for scope in dialect.scopes}
# A requested model shows less than any mark: spans of every convention hold one.
_BY_MARK: Final = (*((mark, dialect) for dialect in DIALECTS for mark in dialect.marks), (REQUEST_MODEL, GENAI))
_known: dict[str, Dialect | None] = {}


def dialect_of(span: Span) -> Dialect:
    """Return the dialect that wrote ``span``: its scope's, or the one that its attributes show."""
    found: Dialect | None = span.dialect
    if found is None:
        found = span.dialect = _chosen(span)
    return found


def _chosen(span: Span) -> Dialect:
    try:
        found = _known[span.scope]
    except KeyError:
        found = _learn(span.scope)
    return _by_attributes(span) if found is None else found


def classify(span: Span) -> None:
    """Set the role of ``span``. One that another process called, and that is no part of an agent, is an entry."""
    role = dialect_of(span).role(span)
    span.role = "entry" if role == "other" and span.kind in ("SERVER", "CONSUMER") else role


def tool_name(span: Span) -> str:
    """Return the name of the tool that a span executed: the call's, else the span's own."""
    return dialect_of(span).tool_call(span).name or span.name


def could_be_agent(scope_name: str) -> bool:
    """Say whether spans of this scope may turn out to be part of an agent, before they have any attributes."""
    try:
        return _known[scope_name] is not None
    except KeyError:
        return _learn(scope_name) is not None


def _learn(scope: str) -> Dialect | None:
    """Look up whose ``scope`` is, and remember it."""
    owner = scope_owner(_BY_NAME, scope)
    found = None if owner is None else _BY_NAME[owner]
    if len(scope) <= _MAX_SCOPE:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[scope] = found
    return found


def _by_attributes(span: Span) -> Dialect:
    attributes = span.attributes
    if not attributes:
        return PLAIN
    for mark, dialect in _BY_MARK:
        if mark in attributes:
            return dialect
    return NATIVE if is_native(span) else PLAIN
