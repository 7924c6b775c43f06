"""Two runs of one agent, and whether the second changed only what it was meant to.

The second searches with another query, which is allowed until the end of 2999. With ``--broken`` it searches twice as
well: the diff is unbounded, although the second call is equal to the first.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import spangate
from spangate.archive import write_otlp
from spangate.testing import GatedProvider


def search(query: str) -> str:
    """Stand in for a search."""
    return f"3 pages about {query}"


def librarian(recording: Path, queries: list[str]) -> None:
    """Ask a model what to search for, query by query, and record the run."""
    spans: list[spangate.Span] = []

    def keep(run: spangate.Run) -> Iterator[spangate.Finding]:
        """Keep the spans of the run, as a gate that finds nothing."""
        spans.extend(run.spans)
        return iter(())

    bound = len(queries)
    with (
        GatedProvider([keep]) as provider,
        spangate.run("answer", name="librarian", max_iters=bound, record_content=True, tracer_provider=provider) as run,
    ):
        for it, query in zip(run.iterations(), queries, strict=False):
            with it.llm("small", "What is span cardinality?", tools=[]) as call:
                call.answer(f"search {query}")
            it.call(search, {"query": query})
        run.halt("done")
    write_otlp(recording, spans)


with tempfile.TemporaryDirectory() as directory:
    before, after, allow = (Path(directory) / name for name in ("before.jsonl", "after.jsonl", "allow.toml"))
    librarian(before, ["span cardinality"])
    librarian(after, ["span cardinality 2024"] * (2 if "--broken" in sys.argv else 1))
    allow.write_text('drift = [{ name = "search", key = "query", reason = "a year", expires = 2999-12-31 }]\n')
    done = subprocess.run(["spangate", "diff", before, after, "--allow", allow], check=False)  # noqa: S607
    print("exit code", done.returncode, flush=True)
