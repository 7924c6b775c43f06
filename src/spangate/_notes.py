"""Findings of whoever gathers a run: what the gates cannot see, since it lies outside the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spangate._records import Finding, Span


def foreign_parent(root: Span) -> Finding:
    """Say that the parent of a tree's root is nowhere to be found."""
    return Finding("forest.foreign_parent", root, "the parent was never started under this provider")


def parent_unsampled(root: Span) -> Finding:
    """Say that the parent of a tree's root was dropped."""
    return Finding("forest.parent_unsampled", root, "a sampler dropped the parent of the run's root")


def unsampled_inside(root: Span, spans: Sequence[Span]) -> Iterator[Finding]:
    """Yield a finding for each span below ``root`` whose parent was dropped."""
    below = [span for span in spans if not span.parent_sampled and span is not root and not span.parent_remote]
    here = {(span.trace_id, span.span_id) for span in spans} if below else ()
    dropped = "a sampler dropped its parent, so the run may have used more than is recorded"
    for span in below:
        if (span.trace_id, span.parent_id) not in here:
            yield Finding("forest.parent_unsampled", span, dropped)


def unsampled_run(root: Span) -> Iterator[Finding]:
    """Yield the finding that the run leaves by no exporter, if that is so."""
    if not root.sampled:
        yield Finding("export.unsampled_run", root, "the sampler recorded this run but did not sample it")
