"""Trees that may have lost their run: whom they wait for, and whether that run claims them (design section 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from spangate._buffer import Buffer
from spangate._decide import Decider
from spangate._forest import can_host, has_agent, is_stray_candidate
from spangate._look import Look, Looks
from spangate._records import Finding, Span
from spangate._run import Run
from spangate._strays import belongs
from spangate._tree import Decided, Tree


class Claims:
    """Lets candidates wait, and joins those for which there is evidence to the run that is decided."""

    def __init__(self, buffer: Buffer, looks: Looks, decider: Decider) -> None:
        self._buffer = buffer
        self._looks = looks
        self._decider = decider

    def hold(self, tree: Tree, look: Look) -> bool:
        """Let a candidate wait for the only run that it can belong to. False if it is to be judged alone."""
        if tree.standing != "root" or not is_stray_candidate(look.spans[0], look.spans):
            return False
        trees, decided = self._buffer.overlapping(tree.order)
        if any(row.has_agent for row in decided):
            return False
        hosts = list(islice((other for other in trees if other.waits_for is None and self._has_agent(other)), 2))
        return len(hosts) == 1 and can_host(self._looks.at(hosts[0]).spans) and self._buffer.hold_for(tree, hosts[0])

    def _has_agent(self, tree: Tree) -> bool:
        return has_agent(self._looks.at(tree).spans)

    def decide(self, run: Run, look: Look, bearer: Span, decided: Decided, candidates: Iterable[Tree]) -> None:
        """Decide a run together with the strays that it claims among the trees that waited for it."""
        claimed: list[tuple[Decided, Look]] = []
        beside: list[Finding] = []
        for candidate in candidates:
            its_look = self._looks.at(candidate)
            if not belongs(its_look.spans, run):
                beside.append(_beside(its_look.spans[0]))
                continue
            its_decided = self._looks.close(candidate, its_look, run.run_id)
            if its_decided is not None:
                claimed.append((its_decided, its_look))
        if beside or claimed:
            look = look.joined(its_look for _, its_look in claimed)
            roots = [its_look.spans[0] for _, its_look in claimed]
            spans = [*run.spans, *(span for _, its_look in claimed for span in its_look.spans)]
            run = replace(run, spans=spans, notes=[*run.notes, *beside], claimed=roots)
        self._decider.decide(run, look, bearer, decided)
        for its_decided, _ in claimed:
            self._decider.rule(its_decided, decided.ruling, decided.verdict_span_id)


def _beside(root: Span) -> Finding:
    return Finding("forest.stray_generation", root, "a model call without a parent ran beside this run")
