"""What strangers and broken programs send: refused or bounded, counted, told, and no other run suffers from it."""

from __future__ import annotations

import gzip
import logging
import socket
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]
import pytest
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]

from spangate._receiver.room import Room
from spangate._receiver.tokens import Tokens
from spangate.process import Receiver
from tests.receiver.sender import Sender, open_run

MOST = 64 << 10


@pytest.fixture
def settings() -> Receiver:
    return Receiver(max_request_bytes=MOST, max_pending_bytes=2 * MOST, request_timeout_s=0.5)


def refused(sender: Sender) -> dict[str, int]:
    return sender.gated.gate.refused_requests


class TestStrangers:
    """Whoever has no token, or one that was not made here, gets nothing in, and no run hears of it."""

    TOKENS = (
        ("nothing at all", lambda _: ""),
        ("a made up one", lambda _: "0" * 32 + "." + "0" * 16 + "." + "0" * 64),
        ("another form", lambda _: "secret"),
        ("half a character", lambda _: "\xe9"),
        ("another program's name signed as this one's", lambda token: ("0" if token[0] == "f" else "f") + token[1:]),
        ("a signature cut short", lambda token: token[:-1]),
    )

    @pytest.mark.parametrize(("what", "made"), TOKENS)
    def test_over_http(self, sender: Sender, what: str, made: Callable[[str], str]) -> None:
        answer = sender.post(sender.request("work").SerializeToString(), made(sender.token))
        assert answer.status_code == 401, what
        assert "token" in Status.FromString(answer.content).message
        assert refused(sender) == {"token": 1}
        assert sender.finish() == "pass"
        assert "work" not in sender.gated.names

    @pytest.mark.parametrize(("what", "made"), [row for row in TOKENS if row[0] != "half a character"])
    def test_over_grpc(self, sender: Sender, what: str, made: Callable[[str], str]) -> None:
        with pytest.raises(grpc.RpcError) as error:
            sender.call(sender.request("work"), made(sender.token))
        assert error.value.code() is grpc.StatusCode.UNAUTHENTICATED, what
        assert sender.finish() == "pass"

    def test_another_scheme(self, sender: Sender) -> None:
        assert sender.post(b"", "", authorization=f"Basic {sender.token}").status_code == 401

    def test_the_token_of_another_gate(self, sender: Sender) -> None:
        answer = sender.post(sender.request("work").SerializeToString(), Tokens().of(*sender.parent))
        assert answer.status_code == 401
        assert sender.finish() == "pass"


class TestOtherRuns:
    def test_what_bears_the_trace_of_another_run_goes_there(self, sender: Sender) -> None:
        with open_run(sender.gated, "other") as other:
            assert sender.post(other.request("work").SerializeToString()).status_code == 200
            assert other.finish() == "pass"
            assert "work" in sender.gated.names
        assert sender.finish() == "pass"

    def test_the_token_of_a_run_that_was_refused(self, sender: Sender) -> None:
        with open_run(sender.gated, "other") as other:
            other.gated.start("tool", "leaked", under=other.root)
            assert other.finish() == "fail completeness.open_span"
            before = sender.gated.gate._telemetry.withheld
            assert sender.post(other.request("work").SerializeToString(), other.token).status_code == 200
        sender.gated.until(lambda: sender.gated.gate._telemetry.withheld == before + 1)
        assert sender.finish() == "pass"
        assert "work" not in sender.gated.names

    def test_the_token_of_a_run_that_nobody_remembers(self, sender: Sender) -> None:
        tokens = sender.gated.gate._door._server._tokens  # type: ignore[union-attr]
        answer = sender.post(sender.request("work", trace_id=b"\1" * 16).SerializeToString(), tokens.of(77, 78))
        assert answer.status_code == 403
        assert refused(sender) == {"run_over": 1}
        assert sender.finish() == "pass"


BOMB = gzip.compress(b"\0" * (50 << 20))
"""Fifty megabytes in fifty kilobytes."""


def chunked(size: int) -> Iterator[bytes]:
    for _ in range(size // 1024):
        yield b"x" * 1024


class TestTooLarge:
    """A program of a run that sends too much may have lost spans: its run hears of it, and fails."""

    @pytest.mark.parametrize(
        ("what", "body", "headers"),
        [
            ("the length is told", lambda: b"x" * (MOST + 1), {}),
            ("no length is told", lambda: chunked(4 * MOST), {}),
            ("a gzip bomb", lambda: BOMB, {"content-encoding": "gzip"}),
            ("a bomb of two members", lambda: gzip.compress(b"a") + BOMB, {"content-encoding": "gzip"}),
            ("a deflate bomb", lambda: zlib.compress(b"\0" * (50 << 20)), {"content-encoding": "deflate"}),
        ],
    )
    def test_over_http(self, sender: Sender, what: str, body: Callable[[], object], headers: dict[str, str]) -> None:
        answer = sender.post(body(), **headers)
        assert answer.status_code == 413, what
        assert refused(sender) == {"too_large": 1}
        assert sender.finish() == "fail receiver.refused"

    def test_over_grpc(self, sender: Sender) -> None:
        request = sender.request("x" * (MOST + 1))
        with pytest.raises(grpc.RpcError) as error:
            sender.call(request)
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert sender.finish() == "fail receiver.refused"

    def test_a_bomb_over_grpc(self, sender: Sender) -> None:
        request = sender.request("x" * (8 * MOST))
        with pytest.raises(grpc.RpcError) as error:
            sender.call(request, compression=grpc.Compression.Gzip)
        assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert sender.finish() == "fail receiver.refused"


class TestMalformed:
    @pytest.mark.parametrize(
        ("what", "body", "headers"),
        [
            ("no protobuf", b"\xff\xff\xff\xff", {}),
            ("a message cut off", b"\x0a\x7f\x00", {}),
            ("no gzip", b"plain", {"content-encoding": "gzip"}),
            ("gzip cut off", gzip.compress(b"x" * 1000)[:-9], {"content-encoding": "gzip"}),
            ("another packing", b"", {"content-encoding": "zstd"}),
            ("no JSON", b"{", {"content-type": "application/json"}),
            ("JSON of something else", b"[1]", {"content-type": "application/json"}),
            ("JSON too deep", b"[" * 50_000, {"content-type": "application/json"}),
            (
                "an id that is none",
                b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xy"}]}]}]}',
                {"content-type": "application/json"},
            ),
        ],
    )
    def test_over_http(self, sender: Sender, what: str, body: bytes, headers: dict[str, str]) -> None:
        answer = sender.post(body, **headers)
        assert answer.status_code == 400, what
        told = answer.json() if "json" in headers.get("content-type", "") else None
        assert told["message"] if told is not None else Status.FromString(answer.content).message
        assert refused(sender) == {"malformed": 1}
        assert sender.finish() == "fail receiver.refused"

    def test_another_form(self, sender: Sender) -> None:
        assert sender.post(b"spans", **{"content-type": "text/plain"}).status_code == 415
        assert sender.finish() == "fail receiver.refused"

    @pytest.mark.parametrize(
        ("what", "fields"),
        [
            ("a short trace id", {"trace_id": b"\1" * 15}),
            ("a trace id of zeros", {"trace_id": bytes(16)}),
            ("no span id", {"span_id": b""}),
            ("a span id of zeros", {"span_id": bytes(8)}),
        ],
    )
    def test_spans_with_ids_that_are_none_are_left_out_and_told(
        self, sender: Sender, what: str, fields: dict[str, bytes]
    ) -> None:
        request = sender.request("good")
        request.MergeFrom(sender.request("bad", **fields))
        answer = sender.call(request)
        assert answer.partial_success.rejected_spans == 1, what
        assert "1 span" in answer.partial_success.error_message
        assert sender.finish() == "fail receiver.refused"

    def test_values_that_no_sdk_sends(self, sender: Sender, caplog: pytest.LogCaptureFixture) -> None:
        request = sender.request("odd", kind=77, start_time_unix_nano=0, end_time_unix_nano=2**64 - 1)
        span = request.resource_spans[0].scope_spans[0].spans[0]
        span.status.code = 9
        span.attributes.add(key="nothing")
        span.attributes.add(key="nested").value.kvlist_value.values.add(key="a").value.int_value = 1
        span.events.add(name="event", time_unix_nano=2**64 - 1)
        span.links.add(trace_id=b"", span_id=b"\1")
        span.trace_state = "not a state;;"
        resource = request.resource_spans[0].resource
        resource.attributes.add(key="nested").value.kvlist_value.values.add(key="a").value.int_value = 1
        resource.attributes.add(key="nothing")
        assert sender.post(request.SerializeToString()).status_code == 200
        assert sender.finish() == "pass (completeness.outlived_root)"
        assert sender.gated.one("odd").resource.attributes["nested"] == '{"a": 1}'
        assert sender.gated.attributes("odd")["nested"] == {"a": 1}
        assert not caplog.records  # whoever sends such things must not fill the log

    def test_a_connection_that_speaks_something_else(self, sender: Sender) -> None:
        with connected(sender) as connection:
            connection.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            assert b"400" in connection.recv(1024)
        assert sender.finish() == "pass"

    @pytest.mark.parametrize(
        ("method", "path", "content", "status"),
        [
            ("GET", "/v1/traces", "application/x-protobuf", 404),
            ("POST", "/v1/metrics", "application/x-protobuf", 404),
            ("POST", "/", "application/x-protobuf", 404),
        ],
    )
    def test_what_is_not_here(self, sender: Sender, method: str, path: str, content: str, status: int) -> None:
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {sender.token}\r\n"
        with connected(sender) as connection:
            connection.sendall(f"{head}content-type: {content}\r\ncontent-length: 0\r\n\r\n".encode())
            assert f" {status} ".encode() in connection.recv(1024)
        assert sender.finish() == "pass"


def connected(sender: Sender) -> socket.socket:
    address = urlsplit(sender.address)
    return socket.create_connection((address.hostname or "", address.port or 0), timeout=10)


class TestSlow:
    def test_a_body_that_does_not_come_is_waited_for_only_so_long(self, sender: Sender) -> None:
        head = f"POST /v1/traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {sender.token}\r\n"
        with connected(sender) as connection:
            connection.sendall(f"{head}content-type: application/x-protobuf\r\ncontent-length: 100\r\n\r\nx".encode())
            assert b" 408 " in connection.recv(1024)
        assert refused(sender) == {"slow": 1}
        assert sender.finish() == "fail receiver.refused"

    def test_others_do_not_wait_for_it(self, sender: Sender) -> None:
        head = f"POST /v1/traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {sender.token}\r\n"
        with connected(sender) as connection:
            connection.sendall(f"{head}content-type: application/x-protobuf\r\ncontent-length: 100\r\n\r\nx".encode())
            assert sender.post(sender.request("work").SerializeToString()).status_code == 200
        assert sender.gated.gate.received == 1

    def test_many_at_once_are_bounded_in_bytes(self, sender: Sender) -> None:
        body = b"x" * (MOST - 100)
        head = f"POST /v1/traces HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {sender.token}\r\n"
        start = f"{head}content-type: application/x-protobuf\r\ncontent-length: {MOST}\r\n\r\n".encode() + body
        connections = [connected(sender) for _ in range(4)]
        try:
            threads = [threading.Thread(target=connection.sendall, args=(start,)) for connection in connections]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            answers = [connection.recv(1024).split(b" ")[1] for connection in connections]
        finally:
            for connection in connections:
                connection.close()
        assert set(answers) == {b"408", b"503"}


class TestManyAtOnce:
    def test_a_run_hears_of_many_refusals_a_few_times(self, sender: Sender) -> None:
        for _ in range(40):
            sender.post(b"\xff")
        assert refused(sender) == {"malformed": 40}
        assert sender.finish() == "fail receiver.refused"
        assert len(sender.gated.verdicts[0].findings) == 16

    def test_packed_bodies_count_with_what_they_hold(self) -> None:
        room = Room(100)
        with room.taken() as one, room.taken() as two:
            assert one(60)
            assert two(40)
            assert not two(1)
        with room.taken() as again:
            assert again(100)


class TestAnythingElse:
    def test_the_port_is_gone_when_the_gate_is(self, sender: Sender) -> None:
        sender.root.end()
        sender.gated.shutdown()
        with pytest.raises(OSError, match="refused"):
            connected(sender)

    def test_nothing_listens_beyond_loopback(self, sender: Sender) -> None:
        server: Any = sender.gated.gate._door._server  # type: ignore[union-attr]
        assert server._socket.getsockname()[0] == "127.0.0.1"
        assert not server._socket.get_inheritable()

    def test_the_token_is_in_no_log_line(self, sender: Sender, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        sender.post(b"\xff")
        sender.post(b"", sender.token[:-1])
        secret = sender.token.rpartition(".")[2]
        assert "malformed" in caplog.text
        assert secret[:-1] not in caplog.text

    def test_a_defect_is_answered_and_told(self, sender: Sender, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> None:
            raise LookupError("boom")

        monkeypatch.setattr(sender.gated.gate._buffer, "receive", broken)
        assert sender.post(sender.request("work").SerializeToString()).status_code == 500
        assert refused(sender) == {"defect": 1}
        assert sender.finish() == "fail receiver.refused"
