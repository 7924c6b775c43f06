"""Hashes what is really sent to models: a hook for the clients of httpx and of its successor httpx2.

Some instrumentations record no prompt, some record another than was sent: the last message only, the history in a form
of their own, the model or the temperature of the answer. This looks at the body of each request to a model (its path
ends in ``/chat/completions``, ``/responses`` or ``/messages``) when it is sent, and the model call that it belongs to
gets the fingerprint of that body when its run is judged, with ``fingerprint.source=wire``. Nothing of the body is
written anywhere, and nothing is changed, waited for or consumed: a body that is a stream stays unknown.

    >>> from spangate import wire
    >>> wire.instrument()
    >>> wire.uninstrument()

or, for one client alone, ``OpenAI(http_client=wire.watch(httpx2.Client()))``. A request belongs to the generation span
in which it was sent; where the instrumentation leaves its span out of the context, to the one generation below the
current span that was open then. Of requests that an SDK repeats inside one span the last counts. Where no span is
current at all, nobody can tell. Bodies over 4 MiB, and encodings other than gzip and deflate, are not read; the
``fingerprints`` gate says so. It takes a :class:`spangate.GateSpanProcessor` in the same process.
"""

from __future__ import annotations

from spangate.wire._clients import instrument, uninstrument, unwatch, watch

__all__ = ["instrument", "uninstrument", "unwatch", "watch"]
