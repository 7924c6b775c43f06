"""What a program says itself of its next model call: the block that says it, and the span that it is put on."""

from __future__ import annotations

import warnings
from contextlib import suppress
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Final

from opentelemetry import trace

from spangate._dialects._base import Request
from spangate._fingerprint import Stamps, fingerprint
from spangate._hosts import watch_starts
from spangate._records import ABSENT

_UNUSED: Final = "no model call has started in this generation block, so nothing is stamped with what it says"


class generation:  # noqa: N801  it is used as a function is: ``with spangate.generation(...):``
    """Says what the next model call in a ``with`` block asks for, whatever its instrumentation records or hides.

    The next generation span that starts inside, in this context (in tasks and in threads with a copied context, too),
    gets the fingerprint of it, with ``fingerprint.source=explicit``; nothing of the words themselves is written. The
    first takes it and no other does; a span in a nested block takes what the innermost says, and what the blocks around
    it say is spent with that: they meant the same call. Where a span says only at its end that it was a model call, it
    gets the stamps when it is released. A block that ends without one gives a ``RuntimeWarning``, unless an exception
    ends it.

    It does nothing unless there is a :class:`spangate.GateSpanProcessor`. One object is one block: make another for the
    next call. The hash is taken here, not when the span starts, so a prompt of ten megabytes delays no hook.

    Args:
        system: The system text, or its parts.
        user: What the user says: a text, or the parts of one message.
        messages: In place of ``user``, the whole list of messages.
        tools: The definitions of the tools that are offered; ``[]`` for none, left out where they are unknown.
        model: The model that is asked for; left out, what the span says.
        temperature: Likewise.
        params: All other decoding parameters.

    Raises:
        TypeError: neither ``user`` nor ``messages`` is given, or both are.
    """

    def __init__(
        self,
        *,
        system: Any = ABSENT,
        user: Any = ABSENT,
        messages: Any = ABSENT,
        tools: Any = ABSENT,
        model: str | None = None,
        temperature: float | None = None,
        **params: Any,
    ) -> None:
        if (user is ABSENT) == (messages is ABSENT):
            raise TypeError("generation() wants either user=, a text, or messages=, the whole list")
        sent = [{"role": "user", "content": user}] if messages is ABSENT else messages
        request = Request(ABSENT if model is None else model, temperature, system, sent, tools, params)
        self._stamps = fingerprint(request, source="explicit")
        self._block: Block | None = None
        self._token: Token[Block | None] | None = None

    def __enter__(self) -> None:
        """Begin to wait for the call."""
        if self._block is not None:
            raise RuntimeError("this generation block was entered before: make another for the next call")
        context = trace.get_current_span().get_span_context()
        is_recorded = not context.is_valid or context.trace_flags.sampled
        is_seen = is_recorded and watch_starts(context.trace_id, context.span_id)
        self._block = Block(self._stamps, _current.get(), is_seen=is_seen)
        self._token = _current.set(self._block)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Wait no longer."""
        block, token = self._block, self._token
        if block is None or token is None:
            return
        with suppress(ValueError):  # a generator may be closed in another context, which never saw the block
            _current.reset(token)
        block.is_over = True
        if kind is None and block.is_unused and block.is_seen:
            warnings.warn(_UNUSED, RuntimeWarning, stacklevel=2)


class Block:
    """What was said, and whom it was put on. ``is_seen`` says that there is a gate that looks at what starts.

    Threads with copied contexts share it, so the span that takes it is settled in one atomic step.
    """

    def __init__(self, stamps: Stamps, around: Block | None, *, is_seen: bool) -> None:
        self.stamps = stamps
        self.around = around
        self.is_seen = is_seen
        self.is_over = False
        self.has_candidates = False
        self._taker: dict[None, tuple[int, int]] = {}

    @property
    def is_taken(self) -> bool:
        """Whether a span has it."""
        return bool(self._taker)

    @property
    def is_unused(self) -> bool:
        """Whether no span has it, or may turn out to be the one that gets it."""
        return not self._taker and not self.has_candidates

    def take(self, trace_id: int, span_id: int) -> bool:
        """Take what was said for a span. False if another has; the blocks around are spent with it."""
        block: Block | None = self
        while block is not None:
            taker = block._taker.setdefault(None, (trace_id, span_id))  # noqa: SLF001  another of its kind
            if block is self and taker != (trace_id, span_id):
                return False
            block = block.around
        return True


_current: Final = ContextVar["Block | None"]("spangate-generation", default=None)


def block_here() -> Block | None:
    """Return the block whose call is the next one in this context, None if none waits for one."""
    block = _current.get()
    while block is not None and block.is_over:  # a task may outlive the block that it was started in
        block = block.around
    return None if block is None or block.is_taken else block
