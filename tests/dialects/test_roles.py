"""Which dialect a span speaks, and what role that gives it."""

from __future__ import annotations

from typing import Any

import pytest

from spangate._dialects import DIALECTS, classify, could_be_agent, dialect_of
from tests.spans import span

GENAI = "opentelemetry.instrumentation.genai."
OI = "openinference.instrumentation."
TL = "opentelemetry.instrumentation."

DIALECT_OF_SCOPE = [
    (GENAI + "openai", "genai"),
    (GENAI + "smolagents", "genai"),
    (GENAI + "something_new", "genai"),
    (TL + "openai_v2", "genai"),
    ("opentelemetry.util.genai.handler", "genai"),
    (OI + "openai", "openinference_clients"),
    (OI + "anthropic", "openinference_clients"),
    (OI + "langchain", "openinference_langchain"),
    (OI + "openai_agents", "openinference_openai_agents"),
    (OI + "llama_index", "openinference_llama_index"),
    (OI + "smolagents", "openinference_smolagents"),
    (OI + "crewai", "openinference_crewai"),
    (OI + "something_new", "openinference"),
    (OI + "mcp", "mcp"),
    (TL + "openai.v1", "traceloop"),
    (TL + "anthropic", "traceloop"),
    (TL + "langchain", "traceloop_langchain"),
    (TL + "openai_agents", "traceloop_openai_agents"),
    (TL + "crewai.instrumentation", "traceloop_crewai"),
    ("traceloop.tracer", "traceloop"),
    ("com.anthropic.sdk.python", "anthropic_sdk"),
    ("pydantic-ai", "pydantic_ai"),
    ("strands.telemetry.tracer", "strands"),
    ("gcp.vertex.agent", "google_adk"),
    ("agent_framework", "agent_framework"),
    ("autogen-core", "autogen"),
    ("autogen SingleThreadedAgentRuntime", "autogen"),
    ("mcp-python-sdk", "mcp"),
    ("fastmcp", "mcp"),
    ("spangate", "native"),
    ("spangate.process", "process"),
    (TL + "httpx", "plain"),
    (TL + "openai_v20", "plain"),
    ("app", "plain"),
    ("", "plain"),
    ("." * 100_000, "plain"),
]


@pytest.mark.parametrize(("scope", "name"), DIALECT_OF_SCOPE, ids=[scope[:60] for scope, _ in DIALECT_OF_SCOPE])
def test_the_scope_decides_first(scope: str, name: str) -> None:
    assert dialect_of(span(scope=scope)).name == name
    assert could_be_agent(scope) == (name != "plain")


def test_a_known_scope_keeps_its_dialect_whatever_the_attributes() -> None:
    foreign = {"openinference.span.kind": "LLM", "traceloop.span.kind": "tool"}
    assert dialect_of(span(scope="pydantic-ai", attributes=foreign)).name == "pydantic_ai"


MARKS = [
    ({"gen_ai.operation.name": "chat", "openinference.span.kind": "LLM"}, "genai"),
    ({"openinference.span.kind": "AGENT", "gen_ai.request.model": "m"}, "openinference"),
    ({"traceloop.span.kind": "agent", "gen_ai.request.model": "m"}, "traceloop"),
    ({"llm.request.type": "embedding", "gen_ai.request.model": "m"}, "traceloop"),
    ({"mcp.method.name": "tools/list"}, "mcp"),
    ({"process.exit.code": 0}, "process"),
    ({"gen_ai.request.model": "m"}, "genai"),
    ({"http.request.method": "GET"}, "plain"),
]


@pytest.mark.parametrize(("attributes", "name"), MARKS)
def test_attributes_decide_in_a_scope_that_nobody_knows(attributes: dict[str, Any], name: str) -> None:
    assert dialect_of(span(scope="app", attributes=attributes)).name == name


def test_names_of_native_spans_alone_prove_nothing() -> None:
    assert dialect_of(span(name="agent.run", scope="app", attributes={"user": "x"})).name == "plain"
    assert dialect_of(span(name="agent.halt", scope="app", attributes={"halt_reason": "done"})).name == "native"
    assert dialect_of(span(name="agent.iter", scope="app", attributes={"agent.iteration": 0})).name == "native"


def test_more_scopes_than_are_remembered_change_nothing() -> None:
    for number in range(3000):
        assert dialect_of(span(scope=f"scope-{number}")).name == "plain"
    assert dialect_of(span(scope="pydantic-ai")).name == "pydantic_ai"


def test_dialects_have_names_and_scopes_of_their_own() -> None:
    scopes = [scope for dialect in DIALECTS for scope in dialect.scopes]
    assert len(set(scopes)) == len(scopes)
    assert len({dialect.name for dialect in DIALECTS}) == len(DIALECTS)


GRAPH = '{"langgraph_step": 2, "langgraph_node": "tools"}'
NODE = "traceloop.association.properties.langgraph_node"

ROLES = [
    # OpenTelemetry's conventions, in any scope
    ("app", "chat m", "CLIENT", {"gen_ai.operation.name": "chat"}, "generation"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": "text_completion"}, "generation"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": "generate_content"}, "generation"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": "execute_tool"}, "tool"),
    ("app", "x", "CONSUMER", {"gen_ai.operation.name": "invoke_agent"}, "agent"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": "invoke_workflow"}, "workflow"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": "create_agent"}, "setup"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": "embeddings"}, "other"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": "retrieval"}, "other"),
    ("app", "x", "INTERNAL", {"gen_ai.operation.name": ["chat"]}, "other"),
    ("app", "x", "CLIENT", {"gen_ai.request.model": "m"}, "generation"),
    ("app", "POST /chat", "SERVER", {"gen_ai.request.model": "m"}, "entry"),
    (GENAI + "openai", "embeddings m", "CLIENT", {}, "other"),
    (GENAI + "openai", "renamed by a hook", "CLIENT", {"session.id": "s"}, "generation"),
    (GENAI + "langchain", "whatever", "INTERNAL", {}, "workflow"),
    (GENAI + "langchain", "whatever", "INTERNAL", {"session.id": "s"}, "other"),
    # MCP
    ("app", "tools/call x", "CLIENT", {"gen_ai.operation.name": "execute_tool", "mcp.method.name": "m"}, "transport"),
    ("app", "tools/call x", "INTERNAL", {"gen_ai.operation.name": "execute_tool", "mcp.method.name": "m"}, "tool"),
    ("app", "tools/call x", "SERVER", {"gen_ai.operation.name": "execute_tool"}, "tool"),
    ("mcp-python-sdk", "MCP send tools/call x", "CLIENT", {"mcp.method.name": "tools/call"}, "transport"),
    (
        "mcp-python-sdk",
        "tools/call x",
        "SERVER",
        {"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool"},
        "tool",
    ),
    ("mcp-python-sdk", "initialize", "SERVER", {"mcp.method.name": "initialize"}, "transport"),
    ("fastmcp", "tools/call x", "SERVER", {}, "tool"),
    ("fastmcp", "tools/call x", "CLIENT", {}, "transport"),
    ("fastmcp", "delegate x", "INTERNAL", {"gen_ai.operation.name": "execute_tool"}, "transport"),
    # OpenInference
    ("app", "x", "INTERNAL", {"openinference.span.kind": "LLM"}, "generation"),
    ("app", "x", "INTERNAL", {"openinference.span.kind": "TOOL"}, "tool"),
    ("app", "x", "INTERNAL", {"openinference.span.kind": "AGENT"}, "agent"),
    ("app", "x", "INTERNAL", {"openinference.span.kind": "CHAIN"}, "workflow"),
    ("app", "Step 12", "INTERNAL", {"openinference.span.kind": "CHAIN"}, "iteration"),
    ("app", "Step two", "INTERNAL", {"openinference.span.kind": "CHAIN"}, "workflow"),
    ("app", "x", "INTERNAL", {"openinference.span.kind": "RETRIEVER"}, "other"),
    ("app", "x", "INTERNAL", {"openinference.span.kind": 7}, "other"),
    (OI + "openai", "ChatCompletion", "INTERNAL", {}, "generation"),
    (OI + "bedrock", "x", "INTERNAL", {}, "generation"),
    (OI + "dspy", "x", "INTERNAL", {}, "workflow"),
    (OI + "langchain", "tools", "INTERNAL", {"openinference.span.kind": "CHAIN", "metadata": GRAPH}, "iteration"),
    (OI + "langchain", "helper", "INTERNAL", {"openinference.span.kind": "CHAIN", "metadata": GRAPH}, "workflow"),
    (
        OI + "langchain",
        "RunnableSequence",
        "INTERNAL",
        {"openinference.span.kind": "CHAIN", "metadata": GRAPH},
        "other",
    ),
    (OI + "langchain", "RunnableSequence", "INTERNAL", {"openinference.span.kind": "CHAIN"}, "workflow"),
    (OI + "langchain", "ChatOpenAI", "INTERNAL", {}, "generation"),
    (OI + "langchain", "ChatPromptTemplate", "INTERNAL", {}, "workflow"),
    (OI + "openai_agents", "handoff", "INTERNAL", {"openinference.span.kind": "TOOL"}, "other"),
    (OI + "openai_agents", "handoff to b", "INTERNAL", {"openinference.span.kind": "TOOL"}, "other"),
    (OI + "openai_agents", "handoff", "INTERNAL", {"openinference.span.kind": "TOOL", "tool.name": "handoff"}, "tool"),
    (OI + "openai_agents", "turn", "INTERNAL", {}, "iteration"),
    (OI + "llama_index", "OpenAI._prepare_chat_with_tools", "INTERNAL", {"openinference.span.kind": "LLM"}, "other"),
    (OI + "llama_index", "OpenAI.achat", "INTERNAL", {"openinference.span.kind": "LLM"}, "generation"),
    (OI + "llama_index", "OpenAI.astream_chat", "INTERNAL", {}, "generation"),
    (OI + "llama_index", "OpenAI._prepare_chat_with_tools", "INTERNAL", {}, "other"),
    (OI + "llama_index", "FunctionTool.acall", "INTERNAL", {}, "tool"),
    (OI + "llama_index", "FunctionAgent.run", "INTERNAL", {}, "workflow"),
    (OI + "llama_index", "BaseWorkflowAgent.run_agent_step", "INTERNAL", {}, "iteration"),
    (OI + "llama_index", "BaseWorkflowAgent.call_tool", "INTERNAL", {"openinference.span.kind": "CHAIN"}, "other"),
    (OI + "smolagents", "CodeAgent.run", "INTERNAL", {}, "agent"),
    (OI + "smolagents", "Step 1", "INTERNAL", {}, "iteration"),
    (OI + "smolagents", "OpenAIModel.generate_stream", "INTERNAL", {}, "generation"),
    (OI + "smolagents", "SimpleTool", "INTERNAL", {}, "tool"),
    (OI + "crewai", "weather agent._execute_core", "INTERNAL", {}, "agent"),
    (OI + "crewai", "search.run", "INTERNAL", {}, "tool"),
    (OI + "crewai", "Crew_1.kickoff", "INTERNAL", {}, "workflow"),
    # OpenLLMetry
    ("traceloop.tracer", "x.workflow", "INTERNAL", {"traceloop.span.kind": "workflow"}, "workflow"),
    ("traceloop.tracer", "x.task", "INTERNAL", {"traceloop.span.kind": "task"}, "workflow"),
    ("traceloop.tracer", "x.tool", "INTERNAL", {"traceloop.span.kind": "tool"}, "tool"),
    ("app", "a -> b", "INTERNAL", {"traceloop.span.kind": "handoff"}, "other"),
    ("app", "x", "INTERNAL", {"traceloop.span.kind": ["tool"]}, "other"),
    (TL + "cohere", "cohere.chat", "CLIENT", {"llm.request.type": "chat"}, "generation"),
    (TL + "cohere", "cohere.rerank", "CLIENT", {"llm.request.type": "rerank"}, "other"),
    (TL + "openai.v1", "openai.embeddings", "CLIENT", {}, "other"),
    (TL + "openai.v1", "openai.chat", "CLIENT", {}, "generation"),
    (TL + "langchain", "ChatOpenAI.chat", "CLIENT", {}, "generation"),
    (TL + "langchain", "execute_tool x", "INTERNAL", {}, "tool"),
    (TL + "langchain", "LangGraph.workflow", "INTERNAL", {}, "workflow"),
    (TL + "langchain", "invoke_agent LangGraph", "INTERNAL", {}, "agent"),
    (
        TL + "langchain",
        "execute_task tools",
        "INTERNAL",
        {"traceloop.span.kind": "task", NODE: "tools", "traceloop.entity.name": "tools"},
        "iteration",
    ),
    (
        TL + "langchain",
        "RunnableSequence.task",
        "INTERNAL",
        {"traceloop.span.kind": "task", NODE: "tools", "traceloop.entity.name": "RunnableSequence"},
        "other",
    ),
    (TL + "langchain", "execute_task hook", "INTERNAL", {"gen_ai.operation.name": "execute_task"}, "other"),
    (TL + "crewai", "crewai.workflow", "INTERNAL", {"gen_ai.operation.name": "invoke_agent"}, "workflow"),
    (
        TL + "crewai",
        "write.task",
        "INTERNAL",
        {"traceloop.span.kind": "task", "gen_ai.operation.name": "invoke_agent"},
        "workflow",
    ),
    # frameworks
    ("com.anthropic.sdk.python", "anthropic.messages.create", "CLIENT", {}, "generation"),
    ("com.anthropic.sdk.python", "anthropic.messages.count_tokens", "CLIENT", {"server.port": 1}, "other"),
    ("pydantic-ai", "agent run", "INTERNAL", {}, "agent"),
    ("pydantic-ai", "running tool", "INTERNAL", {}, "tool"),
    ("pydantic-ai", "running 2 tools", "INTERNAL", {"tools": ["a", "b"]}, "other"),
    ("pydantic-ai", "chat m", "CLIENT", {"gen_ai.operation.name": "chat"}, "generation"),
    ("strands.telemetry.tracer", "execute_event_loop_cycle", "INTERNAL", {}, "iteration"),
    ("strands.telemetry.tracer", "invoke_swarm", "INTERNAL", {"gen_ai.operation.name": "invoke_swarm"}, "workflow"),
    (
        "gcp.vertex.agent",
        "execute_tool (merged)",
        "INTERNAL",
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"},
        "other",
    ),
    ("gcp.vertex.agent", "execute_tool (merged)", "INTERNAL", {}, "other"),
    ("gcp.vertex.agent", "execute_tool x", "INTERNAL", {}, "tool"),
    ("gcp.vertex.agent", "call_llm", "INTERNAL", {}, "generation"),
    ("agent_framework", "workflow.run", "INTERNAL", {"workflow.id": "w"}, "workflow"),
    ("agent_framework", "workflow.build", "INTERNAL", {"workflow.id": "w"}, "setup"),
    ("agent_framework", "chat m", "INTERNAL", {}, "generation"),
    ("autogen-core", "create_agent x", "CLIENT", {"gen_ai.operation.name": "create_agent"}, "setup"),
    ("autogen SingleThreadedAgentRuntime", "autogen process", "CONSUMER", {"messaging.operation": "x"}, "transport"),
    # native
    ("spangate", "agent.run", "INTERNAL", {}, "agent"),
    ("spangate", "agent.iter", "INTERNAL", {}, "iteration"),
    ("spangate", "agent.llm", "INTERNAL", {}, "generation"),
    ("spangate", "agent.tool", "INTERNAL", {}, "tool"),
    ("spangate", "agent.halt", "INTERNAL", {}, "other"),
    ("spangate", "write a.txt", "INTERNAL", {"op": "write", "path": "a.txt"}, "tool"),
    ("spangate", "ffmpeg", "CLIENT", {"process.executable.name": "ffmpeg"}, "process"),
    ("spangate", "chat", "INTERNAL", {"gen_ai.operation.name": "chat"}, "generation"),
    ("spangate", "refused x", "INTERNAL", {"spangate.verdict": "fail"}, "other"),
    ("app", "git", "CLIENT", {"process.executable.name": "git"}, "process"),
    # everything else
    ("app", "GET /health", "SERVER", {"http.route": "/health"}, "entry"),
    ("app", "GET /health", "SERVER", {}, "entry"),
    ("app", "job", "CONSUMER", {}, "entry"),
    ("app", "publish", "PRODUCER", {}, "other"),
    ("app", "agent.run", "INTERNAL", {}, "other"),
]


@pytest.mark.parametrize(
    ("scope", "name", "kind", "attributes", "role"), ROLES, ids=[f"{row[0][-30:]}-{row[1]}-{row[4]}" for row in ROLES]
)
def test_a_span_has_the_role_that_its_dialect_gives_it(
    scope: str, name: str, kind: str, attributes: dict[str, Any], role: str
) -> None:
    made = span(name=name, scope=scope, kind=kind, attributes=attributes)
    classify(made)
    assert made.role == role


def test_an_open_span_of_a_framework_is_taken_for_a_part_of_a_run_though_it_has_attributes() -> None:
    made = span(name="whatever", scope=GENAI + "langchain", attributes={"session.id": "s"}, end=None)
    classify(made)
    assert made.role == "workflow"
