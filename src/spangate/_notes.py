"""Findings of whoever gathers a run: what the gates cannot see, since it lies outside the run."""

from __future__ import annotations

from collections.abc import Iterator

from spangate._records import Finding, Span


def foreign_parent(root: Span) -> Finding:
    """Say that the parent of a tree's root is nowhere to be found."""
    return Finding("forest.foreign_parent", root, "the parent was never started under this provider")


def after_entry(root: Span) -> Finding:
    """Say that a run began when its request was over."""
    return Finding("forest.after_entry", root, "it started after the request that it belongs to had ended")


def parent_unsampled(span: Span) -> Finding:
    """Say that the parent of a span was dropped by a sampler."""
    what = "a sampler dropped its parent, so the run may have used more than is recorded"
    return Finding("forest.parent_unsampled", span, what)


def unsampled_run(root: Span) -> Iterator[Finding]:
    """Yield the finding that the run leaves by no exporter, if that is so."""
    if not root.sampled:
        yield Finding("export.unsampled_run", root, "the sampler recorded this run but did not sample it")
