"""Export what happened, not what was said: payloads leave as hashes, and stay here in a store of their own.

Two runs are compared by two hashes on their roots. Where only the first differs, the data do; where the second does,
the contract: some payload has another shape. Run it with --broken to have the tool answer in another shape.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spangate.archive import SideStore
from spangate.testing import GatedProvider

AGENT = {"gen_ai.operation.name": "invoke_agent"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "orders"}
RAW = "spangate.payload_raw_sha256.gen_ai.tool.call.result"


def run(store: SideStore, answer: object) -> list[Mapping[str, Any]]:
    """Run an agent whose tool gives an answer, and return the attributes of what left, the root's last."""
    with GatedProvider(compact=store) as provider:  # in your program: GateSpanProcessor(exporter, compact=store)
        tracer = provider.get_tracer("kitchen")
        with (
            tracer.start_as_current_span("invoke_agent cook", attributes=AGENT),
            tracer.start_as_current_span("execute_tool orders", attributes=TOOL) as tool,
        ):
            tool.set_attribute("gen_ai.tool.call.result", json.dumps(answer))
    provider.assert_released()
    return [span.attributes or {} for span in provider.released]


broken = "--broken" in sys.argv
with tempfile.TemporaryDirectory() as directory:
    store = SideStore(Path(directory) / "payloads", max_age_s=86_400, max_bytes=64 << 20)
    (tool, before), (_, after) = (
        run(store, {"count": 3, "timestamp": "08:00"}),
        run(store, {"count": "four" if broken else 4, "timestamp": "09:00"}),
    )
    for key in sorted(tool):
        if "payload" in key:
            print(f"{key} = {tool[key]}")
    print("kept here:", store.get(tool[RAW]))

if before["spangate.tree_schema_hash"] != after["spangate.tree_schema_hash"]:
    print("the second run differs: contract drift")
elif before["spangate.tree_hash"] != after["spangate.tree_hash"]:
    print("the second run differs: data")
else:
    print("the second run is the same")
