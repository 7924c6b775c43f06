"""Causes decide what came first, never clocks.

An agent writes a file twice. Spans say in caused_by what caused them: here the second write follows from what the model
said after the first. Run it with --broken to have both writes asked for by one answer: nothing says which came first
then, whatever their times are.
"""

import sys
from collections.abc import Mapping

from opentelemetry.trace import Span

from spangate.testing import GatedProvider

AGENT = {"gen_ai.operation.name": "invoke_agent"}
CHAT = {"gen_ai.operation.name": "chat"}
WRITE = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "write_file", "op": "write", "path": "a.py"}

broken = "--broken" in sys.argv
with GatedProvider() as provider:
    tracer = provider.get_tracer("kitchen")

    def done(name: str, attributes: Mapping[str, str], *causes: Span) -> Span:
        """Record something that was done, because of ``causes``."""
        span = tracer.start_span(name, attributes=attributes)
        if causes:
            span.set_attribute("caused_by", [format(cause.get_span_context().span_id, "016x") for cause in causes])
        span.end()
        return span

    with tracer.start_as_current_span("invoke_agent cook", attributes=AGENT):
        first_prompt = done("chat first", CHAT)
        first_write = done("execute_tool write_file", WRITE, first_prompt)
        second_prompt = done("chat second", CHAT, first_write)
        done("execute_tool write_file", WRITE, first_prompt if broken else second_prompt)
        done("summary", {"cause.kind": "summary"}, first_prompt, second_prompt)

[verdict] = provider.verdicts
print(f"{verdict.run_name}: {verdict.verdict}, causality {verdict.gates['causality']}")
for finding in verdict.failures:
    print(f"{finding.code}: {finding.detail}")
