"""Every program that a run starts is a span with an exit, and the two must tell the same.

Two programs run, the second fails. The report joins spans and exits on the invocation id; a span that is changed by
hand, so that it claims success, is found out.
"""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Iterator

from spangate import Finding, Run, default_gates, process
from spangate.testing import GatedProvider


def reported(run: Run) -> Iterator[Finding]:
    """Print the report of a run, and that of the same run with a lie in it. A gate sees the whole run."""
    good, bad = run.of_role("process")
    for span in (good, bad):
        print(f"exit {span.attributes['process.exit.code']}: status {span.status}")
    print(json.dumps(process.exit_report(run).as_dict()))

    lie = dataclasses.replace(bad, status="OK", attributes={**bad.attributes, "error.type": ""})
    spans = [lie if span is bad else span for span in run.spans]
    for wrong in process.exit_report(dataclasses.replace(run, spans=spans)).status_mismatches:
        print(f"mismatch: the span says {wrong.told}, the program ended with {wrong.code}")
    yield from ()


with GatedProvider([*default_gates(), reported]) as provider:
    process.instrument(provider)  # without an argument: for the global provider
    tracer = provider.get_tracer("kitchen")
    with tracer.start_as_current_span("invoke_agent cook", attributes={"gen_ai.operation.name": "invoke_agent"}):
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        subprocess.run([sys.executable, "-c", "raise SystemExit(1)"], check=False)
    process.uninstrument()
print(provider.verdicts[0].verdict)
