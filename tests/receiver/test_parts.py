"""The parts of the receiver by themselves: tokens, bodies, the rate."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable
from contextlib import suppress

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1 import trace_pb2

from spangate._receiver.bodies import BadBodyError, content_of, unpacked
from spangate._receiver.json_bodies import from_json
from spangate._receiver.rate import Rate
from spangate._receiver.tokens import Bearer, Tokens
from spangate.process import Receiver

TRACE_IDS = st.integers(1, 2**128 - 1)
SPAN_IDS = st.integers(0, 2**64 - 1)


class TestTokens:
    @given(TRACE_IDS, SPAN_IDS)
    def test_a_token_names_its_span(self, trace_id: int, span_id: int) -> None:
        tokens = Tokens()
        assert tokens.read(tokens.of(trace_id, span_id)) == Bearer(trace_id, span_id)
        assert Tokens().read(tokens.of(trace_id, span_id)) is None

    @given(TRACE_IDS, SPAN_IDS, st.data())
    def test_a_token_with_any_other_character_names_nobody(
        self, trace_id: int, span_id: int, data: st.DataObject
    ) -> None:
        tokens = Tokens()
        token = tokens.of(trace_id, span_id)
        at = data.draw(st.integers(0, len(token) - 1))
        other = data.draw(st.characters().filter(lambda character: character != token[at]))
        assert tokens.read(token[:at] + other + token[at + 1 :]) is None

    @given(st.text())
    def test_any_text_names_nobody(self, text: str) -> None:
        assert Tokens().read(text) is None


class TestUnpacked:
    @pytest.mark.parametrize(("packing", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress), ("", bytes)])
    @given(body=st.binary(max_size=2000))
    def test_what_was_packed_comes_back(self, packing: str, pack: Callable[[bytes], bytes], body: bytes) -> None:
        assert unpacked(pack(body), packing, 2000) == body

    @given(st.lists(st.binary(max_size=100), min_size=1))
    def test_gzip_may_have_members(self, members: list[bytes]) -> None:
        body = b"".join(map(gzip.compress, members))
        assert unpacked(body, "gzip", 10_000) == b"".join(members)

    @given(st.integers(0, 300), st.integers(1, 200))
    def test_the_bound_is_exact(self, size: int, most: int) -> None:
        body = gzip.compress(b"x" * size)
        if size <= most:
            assert len(unpacked(body, "gzip", most)) == size
        else:
            with pytest.raises(BadBodyError) as error:
                unpacked(body, "gzip", most)
            assert error.value.is_too_large

    @given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate", "br"]))
    def test_anything_is_read_or_refused(self, body: bytes, packing: str) -> None:
        with suppress(BadBodyError):
            assert len(unpacked(body, packing, 100)) <= 100


Row = tuple[int, str, int, int]
ROWS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 5)), max_size=20)


def traces_data(rows: list[Row]) -> trace_pb2.TracesData:
    """Make a request: each row is a resource, a scope, a trace id, and a span id, which 0 makes none."""
    data = trace_pb2.TracesData()
    for number in range(3):
        resource = data.resource_spans.add(schema_url=f"r{number}")
        resource.resource.attributes.add(key="n").value.int_value = number
        for name in "ab":
            scope = resource.scope_spans.add(schema_url=f"s{name}")
            scope.scope.name = name
            for row in rows:
                if row[:2] == (number, name):
                    scope.spans.add(trace_id=row[2].to_bytes(16, "big"), span_id=row[3].to_bytes(8, "big"))
    return data


def rows_of(message: bytes) -> list[Row]:
    data = trace_pb2.TracesData.FromString(message)
    found: list[Row] = []
    for resource in data.resource_spans:
        number = resource.resource.attributes[0].value.int_value
        for scope in resource.scope_spans:
            assert (resource.schema_url, scope.schema_url) == (f"r{number}", f"s{scope.scope.name}")
            for span in scope.spans:
                ids = int.from_bytes(span.trace_id, "big"), int.from_bytes(span.span_id, "big")
                found.append((number, scope.scope.name, *ids))
    return found


class TestContent:
    @given(ROWS)
    def test_every_span_is_in_the_part_of_its_trace_or_rejected(self, rows: list[Row]) -> None:
        content = content_of(traces_data(rows).SerializeToString(), sender_id=7)
        good = [row for row in rows if row[3]]
        assert (content.accepted, content.rejected) == (len(good), len(rows) - len(good))
        assert len({part.trace_id for part in content.received}) == len(content.received)
        for part in content.received:
            mine = rows_of(part.message)
            assert {row[2] for row in mine} == {part.trace_id}
            assert part.count == sum(1 for row in mine if row[3])
            assert part.sender_id == 7
        assert sorted(row for part in content.received for row in rows_of(part.message)) == sorted(good)

    @given(st.binary(max_size=200))
    def test_any_bytes_are_read_or_refused(self, message: bytes) -> None:
        with suppress(BadBodyError):
            content_of(message, 1)


class TestJson:
    @given(ROWS)
    def test_what_was_written_as_json_comes_back(self, rows: list[Row]) -> None:
        """Whatever is written: by protobuf's own writer, with ids as OTLP has them."""
        data = traces_data(rows)
        written = json_format.MessageToDict(data)
        for resource in written.get("resourceSpans", ()):
            for span in (span for scope in resource.get("scopeSpans", ()) for span in scope.get("spans", ())):
                span.update({key: base64.b64decode(span[key]).hex() for key in ("traceId", "spanId")})
        assert trace_pb2.TracesData.FromString(from_json(json.dumps(written).encode())) == data

    @given(
        st.recursive(
            st.none() | st.text() | st.integers(),
            lambda inner: (
                st.dictionaries(
                    st.sampled_from(["resourceSpans", "scopeSpans", "spans", "links", "traceId", "name"]), inner
                )
                | st.lists(inner)
            ),
        )
    )
    def test_any_json_is_read_or_refused(self, data: object) -> None:
        with suppress(BadBodyError):
            from_json(json.dumps(data).encode())


class TestRate:
    def test_a_second_s_worth_passes_at_once_and_the_rest_in_time(self) -> None:
        now = [100.0]
        rate = Rate(10, lambda: now[0])
        now[0] += 5
        assert rate.take(10) == 0
        assert rate.take(5) == pytest.approx(0.5)
        assert rate.take(5) == pytest.approx(1.0)
        now[0] += 1
        assert rate.take(1) == pytest.approx(0.1)

    def test_what_is_given_back_was_never_taken(self) -> None:
        rate = Rate(10, lambda: 0.0)
        waited = rate.take(100)
        rate.give_back(100)
        assert rate.take(100) == pytest.approx(waited)


class TestSettings:
    @pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "1", True])
    @pytest.mark.parametrize("name", Receiver.__slots__)
    def test_a_bound_that_is_none_is_refused(self, name: str, value: object) -> None:
        with pytest.raises(ValueError, match=name):
            Receiver(**{name: value})  # type: ignore[arg-type]
