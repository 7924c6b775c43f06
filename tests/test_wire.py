"""``spangate.wire``: what is really sent to a model, and the call that it belongs to."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import partialmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any
from unittest import mock

import pytest
from opentelemetry import trace

from spangate import wire
from spangate._buffer import Buffer
from spangate._buffer.tree import Tree
from spangate._canonical import canonical_hash
from spangate.testing import GatedProvider

pytest.importorskip("httpx2", reason="comes with the extra 'test'")
pytest.importorskip("httpx", reason="comes with the extra 'test'")

CHAT = {"gen_ai.operation.name": "chat"}
AGENT = {"gen_ai.operation.name": "invoke_agent"}
BODY = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "u"}]}
TEXT_HASH = canonical_hash({"system": "", "user": "u"})

both = pytest.mark.parametrize("library", ["httpx2", "httpx"])


class Server(ThreadingHTTPServer):
    """Keeps the bodies of requests, and answers each with an empty object."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.bodies: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/chat/completions"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b""
            while (size := int(self.rfile.readline(), 16)) > 0:
                body += self.rfile.read(size)
                self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append(body)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def provider() -> Iterator[GatedProvider]:
    with GatedProvider(clock=time.time_ns) as provider:
        yield provider


@pytest.fixture
def wired() -> Iterator[None]:
    wire.instrument()
    yield
    wire.uninstrument()


@contextmanager
def call(provider: GatedProvider, name: str = "chat") -> Iterator[trace.Span]:
    with provider.get_tracer("app").start_as_current_span(name, attributes=CHAT) as span:
        yield span


def attributes(provider: GatedProvider, name: str = "chat") -> dict[str, Any]:
    provider.assert_released()
    return next(dict(span.attributes or {}) for span in provider.released if span.name == name)


def post(library: str, url: str, **what: Any) -> None:
    with import_module(library).Client(verify=False) as client:
        client.post(url, **(what or {"json": BODY}))


def post_async(library: str, url: str, **what: Any) -> None:
    async def posting() -> None:
        async with import_module(library).AsyncClient(verify=False) as client:
            await client.post(url, **(what or {"json": BODY}))

    asyncio.run(posting())


@both
@pytest.mark.parametrize("sends", [post, post_async])
@pytest.mark.usefixtures("wired")
def test_a_call_gets_the_fingerprint_of_what_was_sent_in_it(
    sends: Any, library: str, server: Server, provider: GatedProvider
) -> None:
    with call(provider):
        sends(library, server.url)
    known = attributes(provider)
    assert known["fingerprint.source"] == "wire"
    assert known["prompt.text_hash"] == TEXT_HASH
    assert known["gen_ai.request.model"] == "m"
    assert known["gen_ai.request.temperature"] == 0.0
    assert json.loads(server.bodies[0]) == BODY


@pytest.mark.parametrize(
    ("path", "body", "system"),
    [
        ("/v1/chat/completions", BODY, ""),
        ("/openai/deployments/d/chat/completions?api-version=1", BODY, ""),
        ("/v1/responses", {"model": "m", "input": "u", "instructions": "s"}, "s"),
        ("/v1/responses", {"input": [{"role": "user", "content": [{"type": "input_text", "text": "u"}]}]}, ""),
        ("/v1/messages", {**BODY, "system": "s", "max_tokens": 9}, "s"),
        ("/v1/messages", {**BODY, "system": [{"type": "text", "text": "s"}]}, "s"),
    ],
)
@pytest.mark.usefixtures("wired")
def test_each_api_has_its_words(
    path: str, body: dict[str, Any], system: str, server: Server, provider: GatedProvider
) -> None:
    with call(provider):
        post("httpx2", server.url.replace("/v1/chat/completions", path), json=body)
    assert attributes(provider)["prompt.text_hash"] == canonical_hash({"system": system, "user": "u"})


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/messages/count_tokens", "/v1/threads/1/messages"])
@pytest.mark.usefixtures("wired")
def test_what_asks_no_model_is_left_alone(path: str, server: Server, provider: GatedProvider) -> None:
    body = {"content": "u"} if path.endswith("/messages") else BODY
    with call(provider):
        post("httpx2", server.url.replace("/v1/chat/completions", path), json=body)
    assert not {"prompt.hash", "fingerprint.gap"} & attributes(provider).keys()


@pytest.mark.usefixtures("wired")
def test_the_last_request_in_a_call_counts(server: Server, provider: GatedProvider) -> None:
    with call(provider):
        for said in ("first", "u"):
            post("httpx2", server.url, json={**BODY, "messages": [{"role": "user", "content": said}]})
    assert attributes(provider)["prompt.text_hash"] == TEXT_HASH


@pytest.mark.usefixtures("wired")
def test_a_call_that_is_not_in_the_context_is_found_by_its_time(server: Server, provider: GatedProvider) -> None:
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("invoke_agent", attributes=AGENT):
        tracer.start_span("earlier", attributes=CHAT).end()
        outer = tracer.start_span("outer", attributes=CHAT)
        inner = tracer.start_span("chat", trace.set_span_in_context(outer), attributes=CHAT)
        post("httpx2", server.url)
        inner.end()
        outer.end()
        tracer.start_span("later", attributes=CHAT).end()
    assert attributes(provider)["prompt.text_hash"] == TEXT_HASH
    assert [name for name in ("earlier", "outer", "later") if "prompt.hash" in attributes(provider, name)] == []


@pytest.mark.usefixtures("wired")
def test_of_two_calls_at_once_nobody_knows_which_it_was(server: Server, provider: GatedProvider) -> None:
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("invoke_agent", attributes=AGENT):
        calls = [tracer.start_span(name, attributes=CHAT) for name in ("a", "b")]
        post("httpx2", server.url)
        for one in calls:
            one.end()
    assert "prompt.hash" not in attributes(provider, "a") | attributes(provider, "b")


@pytest.mark.usefixtures("wired")
def test_a_call_beside_the_span_that_it_was_sent_in_is_another_one(server: Server, provider: GatedProvider) -> None:
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("invoke_agent", attributes=AGENT):
        beside = tracer.start_span("chat", attributes=CHAT)
        with tracer.start_as_current_span("tool", attributes={"gen_ai.operation.name": "execute_tool"}):
            post("httpx2", server.url)
        beside.end()
    assert "prompt.hash" not in attributes(provider)


@pytest.mark.usefixtures("wired")
def test_it_is_what_was_sent_not_what_was_recorded(server: Server, provider: GatedProvider) -> None:
    with call(provider) as span:
        post("httpx2", server.url)
        span.set_attribute("gen_ai.input.messages", '[{"role": "user", "content": "something else"}]')
        span.set_attribute("gen_ai.request.temperature", 1.0)
    known = attributes(provider)
    assert known["prompt.text_hash"] == TEXT_HASH
    assert known["gen_ai.request.temperature"] == 1.0  # an attribute of the program stays
    with call(provider, "again"):
        post("httpx2", server.url)
    assert attributes(provider, "again")["fingerprint.tuple"] == known["fingerprint.tuple"]


@pytest.mark.usefixtures("wired")
def test_a_model_that_stands_in_the_address_is_the_one_that_the_span_names(
    server: Server, provider: GatedProvider
) -> None:
    with call(provider, "one") as span:
        post("httpx2", server.url, json={"messages": BODY["messages"], "temperature": 0})
        span.set_attribute("gen_ai.request.model", "m")
    with call(provider, "two"):
        post("httpx2", server.url)
    one, two = attributes(provider, "one"), attributes(provider, "two")
    assert one["fingerprint.missing_model"] == "false"
    assert one["fingerprint.tuple"] == two["fingerprint.tuple"]


def test_a_pinned_model_is_stamped_as_declared(server: Server) -> None:
    with mock.patch.dict(os.environ, {"AGENT_MODEL_ID": "pinned"}), GatedProvider(clock=time.time_ns) as provider:
        wire.instrument()
        with call(provider, "sent"):
            post("httpx2", server.url, json={"messages": BODY["messages"]})
        wire.uninstrument()
        with call(provider, "silent"):
            pass
    for name in ("sent", "silent"):
        known = attributes(provider, name)
        assert known["gen_ai.request.model"] == "pinned"
        assert known["fingerprint.model_source"] == "config"
        assert known["fingerprint.missing_model"] == "false"
    assert all("fingerprints.model_from_config" in map(_code, verdict.warnings) for verdict in provider.verdicts)


def _code(finding: Any) -> str:
    code: str = finding.code
    return code


PLAIN = json.dumps(BODY).encode()
LARGE = json.dumps({**BODY, "messages": [{"role": "user", "content": "u" * (10 << 20)}]}).encode()
ENCODED = {
    "gzip": gzip.compress(PLAIN),
    "deflate": zlib.compress(PLAIN),
    "identity": PLAIN,
}
UNREADABLE = {
    "no JSON": (b"{not JSON", "", "the body that was sent is not JSON"),
    "a form": (b"model=m&messages=u", "", "the body that was sent is not JSON"),
    "not UTF-8": (b'{"messages": "\xff"}', "", "the body that was sent is not JSON"),
    "nested without end": (b'{"messages": ' + b"[" * 100_000, "", "the body that was sent is not JSON"),
    "another encoding": (b"\x28\xb5\x2f\xfd", "zstd", "the encoding of the body is not known here"),
    "a cut encoding": (b"\x00\x01", "gzip", "the body that was sent is not JSON"),
    "too large": (LARGE, "", "the body that was sent is larger than 4 MiB"),
    "too large when unpacked": (gzip.compress(LARGE), "gzip", "the body that was sent is larger than 4 MiB"),
    "NaN": (b'{"messages": [NaN]}', "", "it holds NaN, infinity or itself, which JSON does not have"),
}


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.usefixtures("wired")
def test_a_body_is_read_in_its_encoding(encoding: str, server: Server, provider: GatedProvider) -> None:
    with call(provider):
        post("httpx2", server.url, content=ENCODED[encoding], headers={"Content-Encoding": encoding})
    assert attributes(provider)["prompt.text_hash"] == TEXT_HASH


@pytest.mark.parametrize(("body", "encoding", "why"), UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.usefixtures("wired")
def test_a_body_that_cannot_be_read_gives_a_reason(
    body: bytes, encoding: str, why: str, server: Server, provider: GatedProvider
) -> None:
    with call(provider) as span:
        post("httpx2", server.url, content=body, headers={"Content-Encoding": encoding} if encoding else {})
        span.set_attribute("gen_ai.request.model", "m")
    known = attributes(provider)
    assert "prompt.hash" not in known
    assert known["fingerprint.gap"] == f"wire: {why}"
    (told,) = [one for one in provider.verdicts[0].warnings if one.code == "fingerprints.missing_prompt"]
    assert told.detail.endswith(f"wire: {why}")
    assert server.bodies == [body]


@both
@pytest.mark.usefixtures("wired")
def test_a_body_that_is_a_stream_is_not_consumed(library: str, server: Server, provider: GatedProvider) -> None:
    def parts() -> Iterator[bytes]:
        yield PLAIN[:10]
        yield PLAIN[10:]

    async def later() -> AsyncIterator[bytes]:
        for part in parts():
            yield part

    with call(provider):
        post(library, server.url, content=parts())
        post_async(library, server.url, content=later())
    assert server.bodies == [PLAIN, PLAIN]
    assert "a stream can be read only once" in attributes(provider)["fingerprint.gap"]


@both
@pytest.mark.usefixtures("wired")
def test_a_transport_that_fails_fails_as_ever(library: str, provider: GatedProvider) -> None:
    module = import_module(library)
    with call(provider), pytest.raises(module.ConnectError) as caught:
        post(library, "http://127.0.0.1:1/v1/chat/completions")
    assert caught.value.request.method == "POST"


@pytest.mark.usefixtures("wired")
def test_a_request_that_cannot_be_looked_at_is_sent_all_the_same(
    server: Server, provider: GatedProvider, caplog: pytest.LogCaptureFixture
) -> None:
    with mock.patch("spangate.wire._observe.tell_request", side_effect=KeyError("defect")), call(provider):
        post("httpx2", server.url)
        post("httpx2", server.url)
    assert len(server.bodies) == 2
    assert len([one for one in caplog.records if "sent all the same" in one.message]) <= 1


@both
def test_everything_is_as_before_when_it_is_taken_back(library: str) -> None:
    module = import_module(library)
    classes = module.Client, module.AsyncClient
    before = [one.send for one in classes]
    wire.instrument()
    wire.instrument()
    assert [one.send for one in classes] != before
    assert [one.send.__name__ for one in classes] == ["send", "send"]
    assert asyncio.iscoroutinefunction(module.AsyncClient.send)
    wire.uninstrument()
    wire.uninstrument()
    assert [one.send for one in classes] == before


def test_what_others_put_over_it_stays_and_sees_nothing_of_it(server: Server, provider: GatedProvider) -> None:
    import httpx2

    original = httpx2.Client.send
    wire.instrument()
    ours = httpx2.Client.send
    over = partialmethod(ours)  # as other instrumentations do
    with mock.patch.object(httpx2.Client, "send", over):
        wire.uninstrument()
        assert vars(httpx2.Client)["send"] is over
        with call(provider):
            post("httpx2", server.url)
    assert "prompt.hash" not in attributes(provider)
    wire.instrument()
    wire.uninstrument()
    assert httpx2.Client.send is original


@both
def test_one_client_alone(library: str, server: Server, provider: GatedProvider) -> None:
    module = import_module(library)
    with module.Client(verify=False) as client, module.Client(verify=False) as other:
        assert wire.watch(wire.watch(client)) is client
        with call(provider, "watched"):
            client.post(server.url, json=BODY)
        with call(provider, "other"):
            other.post(server.url, json=BODY)
        assert wire.unwatch(wire.unwatch(client)) is client
        assert client.event_hooks == {"request": [], "response": []}
        with call(provider, "no longer"):
            client.post(server.url, json=BODY)
    assert attributes(provider, "watched")["prompt.text_hash"] == TEXT_HASH
    assert "prompt.hash" not in attributes(provider, "other") | attributes(provider, "no longer")


def test_one_client_of_coroutines(server: Server, provider: GatedProvider) -> None:
    import httpx2

    async def posting() -> None:
        async with wire.watch(httpx2.AsyncClient(verify=False)) as client:
            await client.post(server.url, json=BODY)

    with call(provider):
        asyncio.run(posting())
    assert attributes(provider)["prompt.text_hash"] == TEXT_HASH


@pytest.mark.usefixtures("wired")
def test_a_client_that_is_watched_twice_over_shows_a_request_once(server: Server, provider: GatedProvider) -> None:
    import httpx2

    client = wire.watch(httpx2.Client(verify=False))
    with call(provider), mock.patch("spangate.wire._observe.tell_request") as tell, client:
        client.post(server.url, json=BODY)
    assert tell.call_count == 1


def test_only_clients_can_be_watched() -> None:
    with pytest.raises(TypeError, match="not int"):
        wire.watch(3)


@pytest.mark.parametrize(("armed", "is_on"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_set_up_without_code_switches_it_on_where_it_is_asked_for(armed: str, *, is_on: bool) -> None:
    import httpx2

    pytest.importorskip("opentelemetry.instrumentation.instrumentor", reason="no zero-code set-up is installed")
    before = httpx2.Client.send
    (found,) = entry_points(group="opentelemetry_instrumentor", name="spangate-wire")
    with mock.patch.dict(os.environ, {"SPANGATE_WIRE": armed}):
        instrumentor = found.load()()
        instrumentor.instrument()
        assert (httpx2.Client.send is not before) is is_on
        instrumentor.uninstrument()
    assert httpx2.Client.send is before


def test_bodies_that_nobody_reads_in_time_are_let_go() -> None:
    buffer = Buffer(time.monotonic)
    tree = Tree(1, 2, "tree")
    buffer.open(tree, object())
    for _ in range(70):
        buffer.take_request(((1, 2), 3, bytes(1 << 20), ""))
    heard = buffer.hear_requests()
    assert len(heard) == 70
    assert sum(len(one.body or b"") for one in heard) <= 65 << 20
    assert heard[-1].stamps() == {"fingerprint.gap": "wire: too many bodies waited to be read"}
    assert not buffer.hear_requests()


@pytest.mark.usefixtures("wired")
def test_a_long_run_keeps_few_bodies(server: Server, provider: GatedProvider) -> None:
    """The worker reads them while the run goes on."""
    body = {**BODY, "messages": [{"role": "user", "content": "u" * (1 << 20)}]}
    gate: Any = provider._active_span_processor._span_processors[0]
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("invoke_agent", attributes=AGENT):
        for _ in range(12):
            with call(provider):
                post("httpx2", server.url, json=body)
        deadline = time.monotonic() + 10
        while gate._buffer._sent_size > 5 << 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert gate._buffer._sent_size <= 5 << 20
    provider.assert_released()
    assert sum("prompt.hash" in (span.attributes or {}) for span in provider.released) == 12
