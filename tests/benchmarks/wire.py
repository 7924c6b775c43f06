"""What looking at a request to a model adds to it: wall time, to a local server, with the hook and without in turn."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, Final

import httpx2

from spangate import GateSpanProcessor, wire
from tests.benchmarks._rows import Row
from tests.benchmarks._workload import AGENT, GENERATION, Counter, tracer_of

LIMIT = 1.02
BODY_BYTES: Final = 4096
TURNS: Final = 20
CALLS: Final = 400
_spawn = multiprocessing.get_context("spawn")


def rows() -> Iterator[Row]:
    """Send the same request by a client that shows it and by one that does not, turn by turn: pairs tell the rest."""
    with httpx2.Client(verify=False) as plain, wire.watch(httpx2.Client(verify=False)) as shown:
        yield _row("by one client that is watched", _pairs(plain, shown))
    with _Unwatched(verify=False) as unwatched, httpx2.Client(verify=False) as shown:
        wire.instrument()
        pairs = _pairs(unwatched, shown)
        wire.uninstrument()
        yield _row("with every client watched", pairs)


class _Unwatched(httpx2.Client):
    """What a client is as long as nobody instruments its class."""

    send = httpx2.Client.send


def _pairs(plain: httpx2.Client, shown: httpx2.Client) -> list[tuple[float, float]]:
    """Return the microseconds of requests in the calls of runs, each by both clients: shown, and not."""
    tracer = tracer_of(GateSpanProcessor(Counter()))
    body = _body()
    pairs: list[tuple[float, float]] = []
    with server() as url:
        for _ in range(TURNS):
            with tracer.start_as_current_span("invoke_agent", attributes=AGENT):
                for number in range(CALLS):
                    with tracer.start_as_current_span("chat", attributes=GENERATION):
                        clients = (shown, plain) if number % 2 else (plain, shown)
                        walls = {client: _send(client, url, body) for client in clients}
                        pairs.append((walls[shown], walls[plain]))
    return pairs


def _row(how: str, pairs: list[tuple[float, float]]) -> Row:
    theirs = median(without for _, without in pairs)
    return Row(
        benchmark="wire",
        measured=f"a request of {BODY_BYTES:,} bytes, {how}",
        unit="µs",
        ours=theirs + median(with_it - without for with_it, without in pairs),
        peer="the same, not watched",
        theirs=theirs,
        limit=LIMIT,
    )


def _send(client: httpx2.Client, url: str, body: dict[str, Any]) -> float:
    """Return the microseconds that a request takes."""
    start = time.perf_counter()
    client.post(url, json=body)
    return (time.perf_counter() - start) * 1e6


def _body() -> dict[str, Any]:
    """Return a request of the size that is wanted."""
    body: dict[str, Any] = {"model": "gpt-4o", "temperature": 0, "messages": [{"role": "user", "content": ""}]}
    body["messages"][0]["content"] = "x" * (BODY_BYTES - len(json.dumps(body)))
    return body


@contextmanager
def server() -> Iterator[str]:
    """Run a server in a process of its own that takes anything and answers with little; yields its address."""
    here, there = _spawn.Pipe()
    runner = _spawn.Process(target=_serve, args=(there,), daemon=True)
    runner.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1/chat/completions"
    finally:
        runner.terminate()
        runner.join()


def _serve(pipe: Connection) -> None:
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    http.daemon_threads = True
    pipe.send(http.server_address[1])
    http.serve_forever()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")  # in one piece: two would be held back

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""
