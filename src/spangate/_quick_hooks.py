"""The quick way through the hooks, for spans of trees in which nothing needs a thought: past the lock, in few steps.

Hooks run between other people's code, so every step of theirs is cold, and costs many times of what it does in a loop.
So the steps stand in a row here, and what the SDK keeps in a span is read from where it keeps it. How a thread that
comes here is kept from harm stands in :mod:`spangate._buffer.held`.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context

from spangate._buffer import Buffer
from spangate._buffer.held import ARRIVED_LIMIT
from spangate._hooks import Hooks
from spangate._sdk.fields import ARE_KNOWN
from spangate._settle.place import Placer
from spangate._settle.worker import Worker
from spangate._stamp import INPUT, MESSAGES, OPERATION, UNSTAMPED, stamp
from spangate._telemetry import Telemetry


class QuickHooks(Hooks):
    """Puts spans of such trees into them at once, and leaves the rest to the other hooks."""

    def __init__(self, buffer: Buffer, placer: Placer, worker: Worker, telemetry: Telemetry) -> None:
        super().__init__(buffer, placer, worker, telemetry)
        self._quick = buffer.quick

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        """Hold the span with its tree, and stamp it."""
        try:
            if (
                (parent := span._parent) is not None
                and (tree := self._quick.get(parent[0])) is not None
                and (parent_id := parent[1]) in (spans := tree.spans)
                and not parent[2]  # remote
                and len(spans) < tree.room
                and spans.setdefault(span_id := span._context[1], span) is span
                and (tree.quick or (tree := self._buffer.join_after_all(tree, span_id, parent_id, span)) is not None)
            ):
                attributes = span._attributes._dict
                word = attributes.get(OPERATION)
                if word in UNSTAMPED and MESSAGES not in attributes and INPUT not in attributes:
                    tree.said[span_id] = word
                else:
                    stamp(span, span_id, tree, attributes)
            else:
                self._start(span, parent_context)
        except Exception:  # noqa: BLE001  an exception would keep the user's code from running
            self._fault("on_start")

    def on_end(self, span: Any) -> None:
        """Put the ended span in the place of the live one."""
        try:
            try:
                trace_id, span_id = (context := span._context)[0], context[1]
            except AttributeError:  # a processor in between may hand on what it made of the span
                self._end(span)
                return
            if (tree := self._quick.get(trace_id)) is None or span_id not in tree.spans or span_id == tree.root_id:
                self._end(span)
                return
            arrived = tree.arrived
            arrived[span_id] = span
            if not tree.quick:
                if not self._buffer.end_after_all(tree, arrived, span_id, span):
                    self._end_unheld(span)
            elif len(arrived) >= ARRIVED_LIMIT:
                self._buffer.absorb_quick(tree)
        except Exception:  # noqa: BLE001  an exception would replace the user's own
            self._fault("on_end")


if not ARE_KNOWN:  # who knows where this SDK keeps what is read here
    del QuickHooks.on_start, QuickHooks.on_end
