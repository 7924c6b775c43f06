"""Trees that may have lost their run: whom they wait for, and whether that run claims them (design section 3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from spangate._buffer import Buffer
from spangate._buffer.tree import Decided, Tree
from spangate._forest import Part, Unit, can_host, find_runs, has_agent, is_stray_candidate
from spangate._forest.strays import belongs, call_ids_of
from spangate._records import Finding, Span
from spangate._run import Run
from spangate._settle.decide import Decider
from spangate._settle.log_records import with_records
from spangate._settle.look import Look, Looks


class Claims:
    """Lets candidates wait, and joins those for which there is evidence to the run that is decided."""

    def __init__(self, buffer: Buffer, looks: Looks, decider: Decider, unit: Unit) -> None:
        self._buffer = buffer
        self._looks = looks
        self._decider = decider
        self._unit = unit
        self._hosts: list[Tree] | None = None

    def refresh(self) -> None:
        """Look anew who may have lost something. Many candidates share a look, as each would go through all trees."""
        self._hosts = None

    def hold(self, tree: Tree, look: Look) -> bool:
        """Let a candidate wait for the only run that it can belong to. False if it is to be judged alone, or passes."""
        if not _is_candidate(tree, look) or not (has_agent(look.spans) or call_ids_of(look.spans)):
            return False
        if self._buffer.is_in_decided(tree.order):
            return False
        if self._hosts is None:
            self._hosts = [host for host in self._buffer.held() if self._may_have_lost_it(host)]
        around = (host for host in self._hosts if host.was_open_at(tree.order) and self._buffer.is_held(host))
        hosts = list(islice(around, 2))
        run_ids = [root.span_id for host in hosts for root in self._roots(host)]
        return len(hosts) == len(run_ids) == 1 and self._buffer.hold_for(tree, hosts[0], run_ids[0])

    def _may_have_lost_it(self, other: Tree) -> bool:
        """Say whether an agent role is visible in a tree that is not as lost itself."""
        look = self._looks.at(other)
        return has_agent(look.spans) and not (other.is_member or other.host or _is_candidate(other, look))

    def _roots(self, host: Tree) -> list[Span]:
        """List the roots of the runs in a tree that could own a stray."""
        spans = self._looks.at(host).spans
        if not host.piecewise:
            return [spans[0]] if host.opened or can_host(spans) else []
        parts = find_runs(spans[0], spans, self._unit)[0]
        return [part.root for part in parts if part.root.span_id in host.opened or can_host(part.spans)]

    def of_part(self, tree: Tree, part: Part) -> list[Tree]:
        """List the candidates that wait for one of the runs in a tree, or for what has become a part of it."""
        ids = {part.root.span_id, *(span.span_id for span in part.spans)} if tree.claims else ()
        return [claim for claim, root_id in tree.claims.items() if root_id in ids]

    def decide(self, run: Run, bearer: Span, decided: Decided, candidates: Iterable[Tree]) -> None:
        """Decide a run together with the strays that it claims among the trees that waited for it."""
        claimed: list[tuple[Decided, Look]] = []
        beside: list[Finding] = []
        exits = [*(run.exits or ())]
        for candidate in filter(self._buffer.is_held, candidates):
            its_look = self._looks.at(candidate)
            if not belongs(its_look.spans, run):
                beside += map(_beside, islice((span for span in its_look.spans if span.role == "generation"), 1))
                continue
            its_decided = self._looks.close(candidate, its_look, run.run_id)
            if its_decided is not None:
                claimed.append((its_decided, its_look))
                exits += self._buffer.take_told(candidate).exits
        if beside or claimed:
            roots = [root for _, its_look in claimed for root in _roots_in(its_look)]
            spans = [*run.spans, *(span for _, its_look in claimed for span in its_look.all_spans)]
            run = replace(run, spans=spans, notes=[*run.notes, *beside], claimed=[*run.claimed, *roots], exits=exits)
        decisions = [one for own in (decided, *(its for its, _ in claimed)) for one in (own, *own.joined)]
        run = with_records(run, decisions, self._buffer.rest)
        self._decider.decide(run, bearer, decided)
        for its_decided, its_look in claimed:
            self._decider.rule(its_decided, decided.ruling, decided.verdict_span_id)
            self._looks.free(its_look)


def _is_candidate(tree: Tree, look: Look) -> bool:
    return tree.standing == "root" and is_stray_candidate(look.spans[0], look.spans)


def _roots_in(look: Look) -> list[Span]:
    return [look.spans[0], *(part.root for part in look.beside)]


def _beside(call: Span) -> Finding:
    return Finding("forest.stray_generation", call, "a model call without a parent ran beside this run")
