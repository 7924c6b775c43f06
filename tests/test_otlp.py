from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spangate._errors import RecordingError
from spangate._otlp import fast
from spangate._otlp import json as _otlp_json
from spangate._otlp.write import write_line
from spangate._records import Event, Link, Span
from tests.otlp import GONE, PARENT, SPAN, TRACE, facts, otlp_document, otlp_line, otlp_span, with_value

READERS = pytest.mark.parametrize(
    "read_line", [_otlp_json.read_line, fast.read_line], ids=["standard library", "msgspec"]
)
ReadLine = Callable[[bytes], list[Span]]


def attribute(read_line: ReadLine, value: Any) -> Any:
    (span,) = read_line(otlp_line(with_value(value)))
    return span.attributes["k"]


@READERS
def test_every_field_of_a_span_is_read(read_line: ReadLine) -> None:
    (span,) = read_line(
        otlp_line(
            otlp_span(
                flags=0x300,
                droppedAttributesCount=1,
                droppedEventsCount=2,
                droppedLinksCount=3,
                status={"code": 2, "message": "no"},
            )
        )
    )
    assert facts([span]) == facts(
        [
            Span(
                trace_id=int(TRACE, 16),
                span_id=int(SPAN, 16),
                parent_id=int(PARENT, 16),
                name="chat",
                start_ns=1796028127771056896,
                end_ns=1796028127803536896,
                kind="CLIENT",
                scope="lib",
                scope_version="1.2",
                status="ERROR",
                status_description="no",
                attributes={"gen_ai.usage.input_tokens": 120},
                events=(Event("first token", {}, 1796028127771056900),),
                links=(Link(int(TRACE, 16), int(PARENT, 16), {}),),
                resource={"service.name": "agent"},
                parent_remote=True,
                dropped_attributes=1,
                dropped_events=2,
                dropped_links=3,
            )
        ]
    )


VALUES: list[tuple[Any, Any]] = [
    ({"stringValue": "text"}, "text"),
    ({"stringValue": ""}, ""),
    ({"stringValue": "half an emoji \ud83e"}, "half an emoji \ud83e"),
    ({"boolValue": False}, False),
    ({"intValue": "0"}, 0),
    ({"intValue": 0}, 0),
    ({"intValue": "-9223372036854775808"}, -(1 << 63)),
    ({"intValue": 9223372036854775807}, (1 << 63) - 1),
    ({"doubleValue": 0}, 0.0),
    ({"doubleValue": -0.5}, -0.5),
    ({"doubleValue": "1e3"}, 1000.0),
    ({"doubleValue": "NaN"}, math.nan),
    ({"doubleValue": "Infinity"}, math.inf),
    ({"doubleValue": "-Infinity"}, -math.inf),
    ({"bytesValue": base64.b64encode(b"\xff\xfe").decode()}, b"\xff\xfe"),
    ({"bytesValue": "__4"}, b"\xff\xfe"),
    ({"bytesValue": ""}, b""),
    ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}, {}]}}, ("a", 1, None)),
    ({"arrayValue": {"values": [{"arrayValue": {"values": [{"boolValue": True}]}}]}}, ((True,),)),
    ({"arrayValue": {}}, ()),
    ({"kvlistValue": {"values": [{"key": "n", "value": {"doubleValue": 1.5}}]}}, {"n": 1.5}),
    ({"kvlistValue": {"values": [{"key": "k", "value": {"kvlistValue": {"values": []}}}]}}, {"k": {}}),
    ({}, None),
    (None, None),
    ({"stringValue": None}, None),
    ({"stringValue": "a", "intValue": None}, "a"),
    ({"somethingNew": 1}, None),
    ({"stringValue": "a", "somethingNew": 1}, "a"),
]


@READERS
@pytest.mark.parametrize(("value", "expected"), VALUES, ids=[json.dumps(value)[:50] for value, _ in VALUES])
def test_values(read_line: ReadLine, value: Any, expected: Any) -> None:
    assert repr(attribute(read_line, value)) == repr(expected)


@READERS
def test_absent_null_and_zero_are_three_things(read_line: ReadLine) -> None:
    pairs = [{"key": "zero", "value": {"intValue": "0"}}, {"key": "null", "value": {}}, {"key": "bare"}]
    (span,) = read_line(otlp_line(otlp_span(attributes=pairs)))
    assert span.attributes == {"zero": 0, "null": None, "bare": None}


@READERS
def test_a_key_that_comes_twice_has_its_last_value(read_line: ReadLine) -> None:
    pairs = [{"key": "k", "value": {"intValue": "1"}}, {"key": "k", "value": {"intValue": "2"}}]
    assert read_line(otlp_line(otlp_span(attributes=pairs)))[0].attributes == {"k": 2}


FIELDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"parentSpanId": GONE}, {"parent_id": None}),
    ({"parentSpanId": ""}, {"parent_id": None}),
    ({"parentSpanId": None}, {"parent_id": None}),
    ({"parentSpanId": "0" * 16}, {"parent_id": None}),
    ({"parentSpanId": "ABCDEF0123456789"}, {"parent_id": 0xABCDEF0123456789}),
    ({"flags": 0x301}, {"parent_remote": True}),
    ({"flags": 0x100}, {"parent_remote": False}),
    ({"flags": 0x200}, {"parent_remote": False}),
    ({"flags": GONE}, {"parent_remote": False}),
    ({"flags": 0x300, "parentSpanId": GONE}, {"parent_remote": False}),
    ({"kind": 0}, {"kind": "INTERNAL"}),
    ({"kind": GONE}, {"kind": "INTERNAL"}),
    ({"kind": "SPAN_KIND_SERVER"}, {"kind": "SERVER"}),
    ({"status": {}}, {"status": "UNSET"}),
    ({"status": GONE}, {"status": "UNSET", "status_description": ""}),
    ({"status": None}, {"status": "UNSET"}),
    ({"status": {"code": "STATUS_CODE_ERROR", "message": "no"}}, {"status": "ERROR", "status_description": "no"}),
    ({"startTimeUnixNano": 5}, {"start_ns": 5}),
    ({"startTimeUnixNano": "18446744073709551615"}, {"start_ns": (1 << 64) - 1}),
    ({"endTimeUnixNano": GONE}, {"end_ns": None, "is_open": True}),
    ({"endTimeUnixNano": "0"}, {"end_ns": None, "is_open": True}),
    ({"name": GONE}, {"name": ""}),
    ({"name": None}, {"name": ""}),
    ({"attributes": None, "events": None, "links": None}, {"attributes": {}, "events": (), "links": ()}),
    ({"droppedAttributesCount": "7"}, {"dropped_attributes": 7}),
    ({"somethingNew": {"deep": [1]}}, {"name": "chat"}),
]


@READERS
@pytest.mark.parametrize(("fields", "expected"), FIELDS, ids=[str(expected) for _, expected in FIELDS])
def test_fields(read_line: ReadLine, fields: dict[str, Any], expected: dict[str, Any]) -> None:
    (span,) = read_line(otlp_line(otlp_span(**fields)))
    assert {name: getattr(span, name) for name in expected} == expected


@READERS
@pytest.mark.parametrize(
    "document",
    [{}, {"resourceSpans": []}, {"resourceSpans": None}, {"resourceLogs": [{}]}, {"resourceSpans": [{}]}],
)
def test_lines_without_a_span(read_line: ReadLine, document: Any) -> None:
    assert read_line(json.dumps(document).encode()) == []


SPANS = "resourceSpans[0].scopeSpans[0].spans[0]"
BAD_SPANS: list[tuple[Any, str]] = [
    (otlp_span(traceId="ab"), f"{SPANS}.traceId: an id of 32 hex digits is wanted, not 'ab'"),
    (otlp_span(traceId=GONE), f"{SPANS}.traceId: an id of 32 hex digits is wanted, which is missing"),
    (otlp_span(traceId="W4qlotLIcugyHPNzCNad8g=="), "32 hex digits is wanted, not 'W4qlotLIcugyHPNzCNad8g=='"),
    (otlp_span(traceId="0" * 32), f"{SPANS}.traceId: an id of zeros only is not valid"),
    (otlp_span(traceId="٣" * 32), "an id of 32 hex digits is wanted"),
    (otlp_span(spanId=TRACE), f"{SPANS}.spanId: an id of 16 hex digits is wanted, not '{TRACE}'"),
    (otlp_span(spanId=" 51581bf3cb55c13"), "an id of 16 hex digits is wanted"),
    (otlp_span(spanId="0515 81bf3cb55c13"), "an id of 16 hex digits is wanted"),
    (otlp_span(spanId=7), f"{SPANS}.spanId: an id of 16 hex digits is wanted, not 7"),
    (otlp_span(parentSpanId=["5fb397be34d26b51"]), f"{SPANS}.parentSpanId: an id of 16 hex digits is wanted, not an"),
    (otlp_span(startTimeUnixNano=GONE), f"{SPANS}.startTimeUnixNano: a start time is wanted, which is missing"),
    (otlp_span(startTimeUnixNano="soon"), f"{SPANS}.startTimeUnixNano: a whole number is wanted, not 'soon'"),
    (otlp_span(startTimeUnixNano=1.5e18), "startTimeUnixNano: a whole number is wanted, not 1.5e+18"),
    (otlp_span(startTimeUnixNano="+796028127771056896"), "a whole number is wanted, not '+79602812"),
    (otlp_span(startTimeUnixNano="1_96028127771056896"), "a whole number is wanted"),
    (otlp_span(startTimeUnixNano="٣" * 19), "a whole number is wanted"),
    (otlp_span(endTimeUnixNano="-1"), "endTimeUnixNano: -1 is not within 0 and 18446744073709551615"),
    (otlp_span(endTimeUnixNano=True), "endTimeUnixNano: a whole number is wanted, not true"),
    (otlp_span(name=5), f"{SPANS}.name: text is wanted, not 5"),
    (otlp_span(kind=6), f"{SPANS}.kind: 0 to 5 or a name as SPAN_KIND_CONSUMER is wanted, not 6"),
    (otlp_span(kind=True), f"{SPANS}.kind: 0 to 5 or a name"),
    (otlp_span(kind="SERVER"), "not 'SERVER'"),
    (otlp_span(flags=-1), f"{SPANS}.flags: -1 is not within 0 and 4294967295"),
    (otlp_span(status="OK"), f"{SPANS}.status: an object is wanted, not 'OK'"),
    (otlp_span(status={"code": 3}), f"{SPANS}.status.code: 0 to 2 or a name as STATUS_CODE_ERROR is wanted, not 3"),
    (otlp_span(status={"message": {}}), f"{SPANS}.status.message: text is wanted, not an object"),
    (otlp_span(attributes={"a": 1}), f"{SPANS}.attributes: an array is wanted, not an object"),
    (otlp_span(attributes=["a"]), f"{SPANS}.attributes[0]: an object is wanted, not 'a'"),
    (otlp_span(attributes=[{"value": {}}]), f"{SPANS}.attributes[0].key: text is wanted, not null"),
    (with_value("bare"), f"{SPANS}.attributes[0].value: an object is wanted, not 'bare'"),
    (with_value({"intValue": "1.5"}), "attributes[0].value.intValue: a whole number is wanted, not '1.5'"),
    (with_value({"intValue": "٣"}), "attributes[0].value.intValue: a whole number is wanted, not '٣'"),
    (with_value({"intValue": True}), "attributes[0].value.intValue: a whole number is wanted, not true"),
    (with_value({"intValue": 1 << 63}), "9223372036854775808 is not within -9223372036854775808 and 922337"),
    (with_value({"doubleValue": "nan"}), "value.doubleValue: a number, NaN or Infinity is wanted, not 'nan'"),
    (with_value({"doubleValue": True}), "value.doubleValue: a number, NaN or Infinity is wanted, not true"),
    (with_value({"doubleValue": 10**400}), "value.doubleValue: a number of more than 64 bits is no double"),
    (with_value({"boolValue": "true"}), "value.boolValue: true or false is wanted, not 'true'"),
    (with_value({"boolValue": 1}), "value.boolValue: true or false is wanted, not 1"),
    (with_value({"stringValue": ["a"]}), "value.stringValue: text is wanted, not an array"),
    (with_value({"bytesValue": "a"}), "value.bytesValue: this is not base64"),
    (with_value({"bytesValue": "é==="}), "value.bytesValue: this is not base64"),
    (with_value({"arrayValue": [1]}), "value.arrayValue: an object is wanted, not an array"),
    (with_value({"arrayValue": {"values": [1]}}), "value.arrayValue.values[0]: an object is wanted, not 1"),
    (with_value({"kvlistValue": {"values": [{}]}}), "value.kvlistValue.values[0].key: text is wanted"),
    (with_value({"stringValue": "a", "boolValue": True}), "one value is wanted, not stringValue and boolValue"),
    (otlp_span(events=[{"name": 1}]), f"{SPANS}.events[0].name: text is wanted, not 1"),
    (otlp_span(links=[{"traceId": TRACE}]), f"{SPANS}.links[0].spanId: an id of 16 hex digits is wanted, which is mis"),
    ("text", f"{SPANS}: an object is wanted, not 'text'"),
]


@READERS
@pytest.mark.parametrize(("bad", "message"), BAD_SPANS, ids=[message[-50:] for _, message in BAD_SPANS])
def test_a_bad_span_is_an_error_that_says_where_and_what(read_line: ReadLine, bad: Any, message: str) -> None:
    with pytest.raises(RecordingError) as caught:
        read_line(otlp_line(bad))
    assert message in str(caught.value)


BAD_LINES: list[tuple[bytes, str]] = [
    (b"{", "not JSON at character 2: Expecting property name"),
    (b'{"resourceSpans":[]} {}', "not JSON at character 22: Extra data"),
    (b'{"resourceSpans":[]', "not JSON at character"),
    (b'{"name":"\xff"}', "not UTF-8 at byte 10"),
    (b'{"n":' + b"9" * 5000 + b"}", "not JSON: a number of thousands of digits"),
    (b"[" * 100_000, "nested too deeply"),
    (b"[]", "an object is wanted, not an array"),
    (b"null", "an object is wanted, not null"),
    (b'{"traceId":"ab"}', "no OTLP trace data: resourceSpans is wanted, here is 'traceId'"),
    (b'{"resource_spans":[]}', "not resource_spans: OTLP/JSON writes its field names in lowerCamelCase"),
    (b'{"resourceSpans":{}}', "resourceSpans: an array is wanted, not an object"),
    (b'{"resourceSpans":[{"instrumentationLibrarySpans":[]}]}', "write it again as scopeSpans"),
    (b'{"resourceSpans":[{"resource":1}]}', "resourceSpans[0].resource: an object is wanted, not 1"),
    (b'{"resourceSpans":[{"resource":{"attributes":1}}]}', "resourceSpans[0].resource.attributes: an array is wanted"),
    (b'{"resourceSpans":[{"scopeSpans":[{"scope":[]}]}]}', "scopeSpans[0].scope: an object is wanted, not an array"),
    (b'{"resourceSpans":[{"scopeSpans":[{"scope":{"name":1}}]}]}', "scopeSpans[0].scope.name: text is wanted, not 1"),
]


@READERS
@pytest.mark.parametrize(("line", "message"), BAD_LINES, ids=[message[:50] for _, message in BAD_LINES])
def test_a_bad_line_is_an_error_that_says_what(read_line: ReadLine, line: bytes, message: str) -> None:
    with pytest.raises(RecordingError) as caught:
        read_line(line)
    assert message in str(caught.value)


@READERS
@pytest.mark.parametrize("kind", ["array", "kvlist"])
def test_values_are_nested_up_to_a_bound(read_line: ReadLine, kind: str) -> None:
    def nested(depth: int) -> dict[str, Any]:
        value: dict[str, Any] = {"intValue": "1"}
        for _ in range(depth):
            inner = value if kind == "array" else {"key": "k", "value": value}
            value = {f"{kind}Value": {"values": [inner]}}
        return value

    assert attribute(read_line, nested(63)) is not None
    with pytest.raises(RecordingError, match="nested more than 64 deep"):
        attribute(read_line, nested(64))


@READERS
def test_a_text_of_four_mebibytes_is_read(read_line: ReadLine) -> None:
    text = "ä" * (4 << 20)
    assert attribute(read_line, {"stringValue": text}) == text


@READERS
def test_a_half_emoji_may_be_written_raw(read_line: ReadLine) -> None:
    line = otlp_line(with_value({"stringValue": "HERE"})).replace(b"HERE", "\ud83e".encode("utf-8", "surrogatepass"))
    assert read_line(line)[0].attributes == {"k": "\ud83e"}


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["", " 1", "1.0", "1e3", "1_0", "+1", "٣", "NaN", "0" * 16, "-5", "²", "18446744073709551616"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
VALUE_KINDS = ["stringValue", "intValue", "boolValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue", "new"]
LOOSE_VALUE: st.SearchStrategy[Any] = st.deferred(
    lambda: (
        ANY_JSON
        | st.dictionaries(st.sampled_from(VALUE_KINDS), ANY_JSON, max_size=2)
        | st.builds(lambda items: {"arrayValue": {"values": items}}, st.lists(LOOSE_VALUE, max_size=2))
        | st.builds(
            lambda items: {"kvlistValue": {"values": [{"key": "k", "value": item} for item in items]}},
            st.lists(LOOSE_VALUE, max_size=2),
        )
    )
)
LOOSE_PAIRS = st.lists(
    st.builds(lambda key, value: {"key": key, "value": value}, st.text(max_size=2) | ANY_JSON, LOOSE_VALUE), max_size=3
)
LOOSE_SPAN = st.builds(
    lambda fields, pairs, inside: otlp_span(
        **{"attributes": pairs, **fields, **({"events": [inside], "links": [inside]} if inside else {})}
    ),
    st.dictionaries(st.sampled_from([*otlp_span(), "droppedLinksCount", "new"]), ANY_JSON, max_size=2),
    LOOSE_PAIRS,
    st.none() | st.fixed_dictionaries({"traceId": st.just(TRACE), "spanId": st.just(SPAN), "attributes": LOOSE_PAIRS}),
)


@given(LOOSE_SPAN, st.sampled_from(["resource", "scope", None]), ANY_JSON)
def test_both_readers_say_the_same_whatever_a_line_holds(span: Any, spoiled: str | None, by: Any) -> None:
    document = otlp_document(span, otlp_span())
    if spoiled == "resource":
        document["resourceSpans"][0]["resource"] = by
    elif spoiled == "scope":
        document["resourceSpans"][0]["scopeSpans"][0]["scope"] = by
    line = json.dumps(document).encode()

    def answer(read_line: ReadLine) -> Any:
        try:
            return facts(read_line(line))
        except RecordingError as error:
            return str(error)

    assert answer(fast.read_line) == answer(_otlp_json.read_line)


def test_an_ordinary_line_is_not_left_to_the_strict_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_line: bytes) -> list[Span]:
        raise AssertionError("read by the strict reader")

    monkeypatch.setattr(fast, "read_line_strictly", refuse)
    for path in RECORDED:
        for line in gzip.decompress(path.read_bytes()).splitlines():
            assert fast.read_line(line)


RECORDED = sorted((Path(__file__).parent / "data" / "otlp").glob("*.jsonl.gz"))


@READERS
@pytest.mark.parametrize("path", RECORDED, ids=[path.name for path in RECORDED])
def test_what_real_frameworks_wrote_is_read_and_written_again(path: Path, read_line: ReadLine) -> None:
    for line in gzip.decompress(path.read_bytes()).splitlines():
        spans = read_line(line)
        assert spans
        assert facts(read_line(write_line(spans).encode())) == facts(spans)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats()
    | st.text(st.characters())
    | st.binary()
)
ATTRIBUTES: st.SearchStrategy[Mapping[str, Any]] = st.dictionaries(
    st.text(),
    st.recursive(
        SCALARS,
        lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
TIMES = st.integers(0, (1 << 64) - 1)
SPAN_IDS, TRACE_IDS = st.integers(1, (1 << 64) - 1), st.integers(1, (1 << 128) - 1)
COUNTS = st.integers(0, (1 << 32) - 1)


@st.composite
def records(draw: st.DrawFn) -> Span:
    """Draw any span that OTLP can hold."""
    parent = draw(st.none() | SPAN_IDS)
    return Span(
        trace_id=draw(TRACE_IDS),
        span_id=draw(SPAN_IDS),
        parent_id=parent,
        name=draw(st.text()),
        start_ns=draw(TIMES),
        end_ns=draw(st.none() | st.integers(1, (1 << 64) - 1)),
        kind=draw(st.sampled_from(["INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"])),
        scope=draw(st.text()),
        status=draw(st.sampled_from(["UNSET", "OK", "ERROR"])),
        status_description=draw(st.text()),
        attributes=draw(ATTRIBUTES),
        events=tuple(draw(st.lists(st.builds(Event, st.text(), ATTRIBUTES, TIMES), max_size=2))),
        links=tuple(draw(st.lists(st.builds(Link, TRACE_IDS, SPAN_IDS, ATTRIBUTES), max_size=2))),
        resource=draw(ATTRIBUTES),
        parent_remote=parent is not None and draw(st.booleans()),
        dropped_attributes=draw(COUNTS),
        dropped_events=draw(COUNTS),
        dropped_links=draw(COUNTS),
        scope_version=draw(st.text()),
    )


@settings(max_examples=40)
@given(st.lists(records(), max_size=3))
def test_what_is_written_is_read_as_it_was(spans: list[Span]) -> None:
    line = write_line(spans).encode()
    assert line.count(b"\n") == 1
    for read_line in (_otlp_json.read_line, fast.read_line):
        assert facts(read_line(line)) == facts(spans)


def test_what_json_cannot_hold_is_written_as_text() -> None:
    span = Span(1, 2, None, "s", 0, 1, attributes={"big": 1 << 70, "odd": frozenset({"a"}), "list": [1]})
    (read,) = _otlp_json.read_line(write_line([span]).encode())
    assert read.attributes == {"big": str(1 << 70), "odd": "frozenset({'a'})", "list": (1,)}
