"""The processor: the one line on a tracer provider, what it is set up of, and its end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace.export import SpanExporter
from opentelemetry.trace import SpanKind

from spangate._buffer import Buffer
from spangate._buffer.tree import SPAN_OVERHEAD
from spangate._forest import Unit
from spangate._given import exporters_of, feeder_of, opened, packing_of
from spangate._hosts import announce, hand_on_in_time
from spangate._membership import RUN_ID, membership
from spangate._pace import Pace
from spangate._pinned import with_environment
from spangate._quick_hooks import QuickHooks
from spangate._receiver import Receiver
from spangate._records import Gate, Verdict
from spangate._release import Sender
from spangate._release.fan_out import FanOut
from spangate._release.flush import Flush
from spangate._sdk.forks import after_fork
from spangate._sdk.lighten import lighten
from spangate._settle import Settler
from spangate._settle.bounds import Bounds, Scales
from spangate._settle.decide import Decider
from spangate._settle.log_desk import LogDesk
from spangate._settle.patience import Patience
from spangate._settle.place import Placer
from spangate._settle.worker import Worker
from spangate._side_store import SideStore
from spangate._telemetry import Telemetry, logger
from spangate.gates import Worktree, default_gates

if TYPE_CHECKING:
    from spangate._settle.witness import Witness
    from spangate.ledger import RetryLedger

SHUTDOWN_S = 30.0
"""How long a shutdown may take; a hanging exporter must not keep the program from ending."""
_HAND_ON_MS = 5_000
"""How long a child process is kept from its end for what it recorded."""
_LEAST_ROOM = 1024
"""Spans that are always held, however small the bound in bytes is."""
_ENTRY_KINDS = (SpanKind.SERVER, SpanKind.CONSUMER)


class GateSpanProcessor(QuickHooks):
    """Holds each agent run, judges it when it is over, and exports it whole or a verdict span in its place.

    It takes the place of a BatchSpanProcessor: one line on an existing tracer provider. Traces without an agent pass.

    In a program that a run has started, under a gate with a receiver, it judges nothing: it hands on what is recorded
    to that gate, and the exporter and the gates that are given here have nothing to do.

    Args:
        exporter: Takes what leaves. Of several each takes everything, on its own: what one refuses is lost to that one.
            None: OTLP, set up by the standard ``OTEL_EXPORTER_OTLP_*`` variables.
        gates: The gates, as :func:`spangate.default_gates` or :func:`spangate.load_policy` return them.
        grace_s: Seconds for which spans still open at their root's end are waited for.
        settle_s: Seconds for which a finished tree stays open for a span that may start yet.
        claim_strays: Whether parentless tool and model spans are looked upon as lost pieces of the one open run.
        unit: ``tree``: a local tree is one run; ``agent``: every topmost agent or workflow span in it is one.
        receiver: Takes in what programs that a run starts record, in whatever language; see
            :class:`spangate.process.Receiver`. None: there is none, and nothing listens.
        ledger: A :class:`spangate.ledger.RetryLedger`, or the path of its file: every tool and program of a run that is
            judged is written down there. None: there is none.
        compact: Whether payloads (prompts, messages, arguments, results, texts of errors) leave as hashes only; see
            :mod:`spangate._compact`. A :class:`spangate.archive.SideStore` keeps the raw ones here. Judging sees them.
        dry_run: Judge and tell, but refuse nothing.
        on_verdict: Called on the gate's own thread with every verdict.
        idle_timeout_s: See :class:`spangate._settle.bounds.Bounds`, as the following.
        max_run_age_s: Seconds.
        max_held_bytes: Bytes over all trees.
        max_run_spans: Spans of one tree.

    Raises:
        TypeError: what is given as an exporter is none.
        ValueError: a setting out of its range.
        SpangateError: a receiver is asked for, and its libraries are not installed.
    """

    def __init__(  # noqa: PLR0913  one line on a provider is the whole set-up, so every setting is here
        self,
        exporter: SpanExporter | Sequence[SpanExporter] | None = None,
        *,
        gates: Iterable[Gate] | None = None,
        grace_s: float = 5.0,
        settle_s: float = 0.2,
        claim_strays: bool = True,
        unit: Unit = "tree",
        dry_run: bool = False,
        on_verdict: Callable[[Verdict], None] | None = None,
        receiver: Receiver | None = None,
        ledger: RetryLedger | str | os.PathLike[str] | None = None,
        compact: bool | SideStore = False,
        idle_timeout_s: float | None = None,
        max_run_age_s: float = 86_400.0,
        max_held_bytes: int = 256 << 20,
        max_run_spans: int = 125_000,
    ) -> None:
        if unit not in ("tree", "agent"):
            raise ValueError(f"unit={unit!r}: this may be 'tree' or 'agent'")
        patience = Patience(grace_s=grace_s, settle_s=settle_s)
        bounds = Bounds(
            idle_timeout_s=idle_timeout_s,
            max_run_age_s=max_run_age_s,
            max_held_bytes=max_held_bytes,
            max_run_spans=max_run_spans,
        )
        chosen = with_environment(default_gates() if gates is None else gates, os.environ)
        member = membership(os.environ)
        self._exporters = exporters_of(exporter, member)
        buffer = Buffer(time.monotonic, max(2 * max_held_bytes // SPAN_OVERHEAD, _LEAST_ROOM), Pace, lighten)
        kinds = tuple(SpanKind) if unit == "agent" else _ENTRY_KINDS
        placer = Placer(buffer, kinds, None if member is None else member.run_id, os.environ.get(RUN_ID))
        telemetry = Telemetry(buffer.count_spans)
        self._max_held_bytes = max_held_bytes
        self._sender = FanOut([Sender(one, max_held_bytes) for one in self._exporters])
        self._decider = Decider(
            buffer, self._sender, telemetry, chosen, on_verdict, dry_run=dry_run, pack=packing_of(compact)
        )
        scales = Scales(buffer, bounds)
        settler = Settler(buffer, self._decider, scales, patience, unit=unit, claim_strays=claim_strays)
        worker = Worker(buffer, settler, self._sender, time.monotonic, pending_s=settle_s)
        super().__init__(buffer, placer, worker, telemetry)
        self._witness = None if member is not None else self._attend(chosen)
        self._logs = LogDesk(buffer, worker, max_held_bytes)
        self._door = None if receiver is None or member is not None else opened(receiver, buffer, telemetry)
        self._feeder = None if ledger is None or member is not None else feeder_of(ledger, telemetry)
        if self._feeder is not None:
            self._decider.feeder = self._feeder
            # in the place of the method, so that nobody else pays for it
            self.on_start = self._feeder.watching(self.on_start)  # type: ignore[method-assign]
        after_fork(self._after_fork)
        announce(buffer)
        self._hand_on_ms = _HAND_ON_MS
        hand_on_in_time(self._hand_on)

    def shutdown(self) -> None:
        """Settle everything, cutting grace short, and shut the exporter down. Bounded; a second call does nothing."""
        try:
            if self._is_closed:
                return
            self._is_closed = True
            self._worker.outside(self._shut_down)
        except Exception:  # noqa: BLE001  the program is ending; it must end
            self._fault("shutdown")

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Judge and export every run whose root has ended; a run whose root is open stays held.

        Returns:
            True if everything judged was accepted by the exporter in time, and no run had to stay held for its grace.
            False at once where the gate itself is the caller: an exporter, or ``on_verdict``.
        """
        try:
            if self._is_closed or not self._worker.has_started:
                return True
            return self._worker.flush(Flush(time.monotonic() + timeout_millis / 1000))
        except Exception:  # noqa: BLE001  it would reach the caller of the provider's force_flush
            self._fault("force_flush")
            return False

    @property
    def losses(self) -> dict[str, int]:
        """Spans that reached neither the exporter nor a verdict, by reason."""
        return dict(self._telemetry.lost)

    @property
    def left_out(self) -> int:
        """Calls of tools that the ledger did not take."""
        return self._telemetry.left_out

    @property
    def received(self) -> int:
        """Spans that programs have sent to the receiver."""
        return self._telemetry.received

    @property
    def refused_requests(self) -> dict[str, int]:
        """Requests of programs that the receiver refused, by reason."""
        return dict(self._telemetry.refused)

    def _attend(self, gates: Iterable[Gate]) -> Witness | None:
        """Have the working tree looked at if a gate wants to know of it. Nobody else's hooks have one step more."""
        chosen = [gate for gate in gates if isinstance(gate, Worktree)]
        if not chosen:
            return None
        from spangate._settle.witness import Witness  # it takes git along, and what starts programs

        witness = Witness(chosen[-1], self._buffer)
        witness.watch(self._placer)
        self._decider.look_with(witness.changes)
        if witness.has_writers:
            vars(self)["on_end"] = witness.hashing_first(self.on_end)
        return witness

    def _shut_down(self) -> None:
        self._sender.hurry()
        deadline = time.monotonic() + SHUTDOWN_S
        if self._worker.has_started and not self._worker.flush(Flush(deadline, closing=True)):
            logger.warning("not everything that was held at the shutdown has reached the exporter")
            self._sender.abandon()
        if self._door is not None:
            self._door.stop()
        self._worker.close(deadline)
        if self._feeder is not None:
            self._feeder.close()
        self._decider.lose(self._buffer.shut(), "shutdown")
        self._logs.close()

    def _hand_on(self) -> None:
        if self._placer.has_members and not self.force_flush(self._hand_on_ms):
            self._hand_on_ms = 0  # whoever is not there the first time need not be waited for again

    def _after_fork(self) -> None:
        self._placer.reseed()
        self._buffer.after_fork()
        upstream = None if self._door is None else self._door.after_fork(self._placer.parent_of)
        if upstream is not None:
            self._placer.inherit_runs()
            self._sender.open_upstream(Sender(upstream, self._max_held_bytes))
        self._sender.reset()
        self._worker.reset()
        self._telemetry.reset()
        if self._witness is not None:
            self._witness.reset()
