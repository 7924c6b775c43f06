from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from spangate import archive
from spangate._errors import RecordingError
from spangate._otlp import json as _otlp_json
from spangate._otlp.write import write_line
from spangate._recording import forms
from spangate._records import Event, Span
from tests.otlp import GONE, facts, otlp_document, otlp_line, otlp_span
from tests.spans import span
from tests.test_otlp import RECORDED, records


def hex_id(number: int, size: int = 16) -> str:
    return format(number, f"0{2 * size}x")


def of_trace(trace: int, number: int = 1, **fields: Any) -> dict[str, Any]:
    return otlp_span(traceId=hex_id(trace), spanId=hex_id(number, 8), parentSpanId=GONE, links=[], **fields)


def saved(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "recording"
    path.write_bytes(content)
    return path


def traces(path: Path) -> list[list[int]]:
    """Read a recording as [trace id, span id, span id ...] for each trace that is handed over."""
    return [[trace.spans[0].trace_id, *(span.span_id for span in trace.spans)] for trace in archive.read(path)]


# A recording of two traces in every form that can be read.
LINES = otlp_line(of_trace(1, 1), of_trace(2, 2)) + otlp_line(of_trace(1, 3))


def in_protobuf() -> bytes:
    data = TracesData()
    for number, trace in ((1, 1), (2, 2), (3, 1)):
        data.resource_spans.add().scope_spans.add().spans.add(
            trace_id=trace.to_bytes(16, "big"), span_id=number.to_bytes(8, "big"), start_time_unix_nano=number
        )
    return bytes(data.SerializeToString())


def pretty(indent: int) -> bytes:
    return b"\n".join(json.dumps(json.loads(line), indent=indent).encode() for line in LINES.splitlines())


def native() -> bytes:
    stream = io.StringIO()
    writer = archive.Writer(stream)
    for number, trace in ((1, 1), (2, 2), (3, 1)):
        writer.started(span(trace_id=trace, span_id=number, end=None))
    for number, trace in ((3, 1), (2, 2), (1, 1)):
        writer.ended(span(trace_id=trace, span_id=number))
    return stream.getvalue().encode()


FORMS: dict[str, bytes] = {
    "otlp json lines": LINES,
    "with blank lines": b"\n\n" + LINES.replace(b"\n", b"\r\n \n"),
    "without a line break at the end": LINES.rstrip(),
    "with a byte order mark": b"\xef\xbb\xbf" + LINES,
    "pretty-printed": pretty(2),
    "pretty-printed without indentation": pretty(0),
    "otlp protobuf": in_protobuf(),
    "native": native(),
}


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("content", FORMS.values(), ids=FORMS.keys())
def test_the_form_is_told_by_the_content(tmp_path: Path, content: bytes, pack: Callable[[bytes], bytes]) -> None:
    assert sorted(traces(saved(tmp_path, pack(content)))) == [[1, 1, 3], [2, 2]]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n" * 5000, b"\xef\xbb\xbf\n", gzip.compress(b"")])
def test_nothing_in_it_is_no_trace(tmp_path: Path, content: bytes) -> None:
    assert traces(saved(tmp_path, content)) == []


NO_RECORDING = "no recording: OTLP/JSON, OTLP protobuf or a recording of spangate, in UTF-8 or gzip is wanted"
UNREADABLE: list[tuple[bytes, str]] = [
    (b"hello\n", NO_RECORDING),
    (b"[]", NO_RECORDING),
    (b"PK\x03\x04 a zip file", NO_RECORDING),
    (otlp_line(of_trace(1)).decode().encode("utf-16"), NO_RECORDING),
    (b"\x28\xb5\x2f\xfd and so on", "compressed with zstd: decompress it first"),
    (b"\x00\x00\x01\x00\x28\xb5\x2f\xfd and so on", "compressed with zstd: decompress it first"),
    (gzip.compress(LINES)[:-9], "damaged gzip data: Compressed file ended before the end-of-stream marker was reached"),
    (gzip.compress(LINES)[:20] + b"\0" * 20, "damaged gzip data: "),
    (b'{"spans": []}\n', "line 1: no OTLP trace data: resourceSpans is wanted, here is 'spans'"),
    (LINES + b'\n{"resourceSpans": [', "line 4: not JSON at character 20: Expecting value"),
    (LINES + otlp_line(of_trace(1, 0)), "line 3: resourceSpans[0].scopeSpans[0].spans[0].spanId: an id of zeros only"),
    (pretty(2) + b"\n{\n  x", "line 138: not JSON at character 3: Expecting property name"),
    (pretty(2) + b"\n[]", "document in line 137: an object is wanted, not an array"),
    (in_protobuf()[:-1], "message 3: cut short: "),
    (in_protobuf() + b"\x0a\x02\x12\x07", "message 4: no OTLP trace data in protobuf"),
    (in_protobuf() + b"\x12\x00", "message 4: no OTLP trace data in protobuf: a field that is not resource_spans"),
    (b'{"spangate.recording": 2}\n', "line 1: version 2 of the format: this spangate reads 1"),
    (native() + b"{}\n", "line 9: spangate.recording, resource, start or end is wanted, here is ''"),
    (native() + b"{\n", "line 9: not JSON at character 2: Expecting property name"),
    (native().replace(b'{"resource":0', b'{"resource":5'), "line 3: resource: resource 0 was not told before"),
    (native() + b'{"start":5,"resource":0}\n', "line 9: start: an object is wanted, not 5"),
    (native().replace(b'"endTime', b'"finTime'), "line 6: end.endTimeUnixNano: an end time is wanted, which is miss"),
]


@pytest.mark.parametrize(("content", "message"), UNREADABLE, ids=[message[:40] for _, message in UNREADABLE])
def test_what_cannot_be_read_is_an_error_with_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = saved(tmp_path, content)
    with pytest.raises(RecordingError) as caught:
        list(archive.read(path))
    assert str(caught.value).startswith(f"{path}: {message}")


def test_a_file_that_is_not_there_is_the_system_s_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(archive.read(tmp_path / "none"))


def test_a_trace_is_handed_over_when_its_last_line_has_been_read(tmp_path: Path) -> None:
    lines = [(1, 1), (2, 2), (1, 3), (3, 4)]
    path = saved(tmp_path, b"".join(otlp_line(of_trace(trace, number)) for trace, number in lines) + b"{spoiled}\n")
    handed_over: list[int] = []
    with pytest.raises(RecordingError, match="line 5"):
        handed_over.extend(trace.spans[0].trace_id for trace in archive.read(path))
    assert handed_over == [2, 1, 3]


def test_a_link_to_a_trace_does_not_lose_or_split_it(tmp_path: Path) -> None:
    link = [{"traceId": hex_id(1), "spanId": hex_id(1, 8)}]
    far = otlp_line(otlp_span(traceId=hex_id(2), spanId=hex_id(2, 8), parentSpanId=GONE, links=link))
    unknown = otlp_line(otlp_span(traceId=hex_id(3), links=[{"traceId": hex_id(9), "spanId": hex_id(1, 8)}]))
    path = saved(tmp_path, otlp_line(of_trace(1, 1)) + far + unknown)
    assert sorted(trace for trace, *_ in traces(path)) == [1, 2, 3]


def test_the_letter_case_of_an_id_does_not_split_a_trace(tmp_path: Path) -> None:
    path = saved(tmp_path, otlp_line(of_trace(0xABC, 1)) + otlp_line(of_trace(0xABC, 2)).replace(b"abc", b"ABC"))
    assert traces(path) == [[0xABC, 1, 2]]


def test_an_id_that_only_json_itself_finds_is_not_lost(tmp_path: Path) -> None:
    path = saved(tmp_path, otlp_line(of_trace(1)).replace(b'"traceId"', b'"trace\\u0049d"') + otlp_line(of_trace(2)))
    assert sorted(traces(path)) == [[1, 1], [2, 1]]


def test_spans_come_in_the_order_of_their_starts_and_parents_first(tmp_path: Path) -> None:
    times = {4: ("30", "40"), 3: ("20", "21"), 2: ("20", "30"), 1: ("10", "40")}
    spans = [
        of_trace(1, number, startTimeUnixNano=start, endTimeUnixNano=end) for number, (start, end) in times.items()
    ]
    assert traces(saved(tmp_path, otlp_line(*spans))) == [[1, 1, 2, 3, 4]]


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = saved(tmp_path, b"".join(otlp_line(of_trace(trace)) for trace in (1, 2, 3)))

    def rewrite(done: int, total: int) -> None:
        if 2 * done == total:
            path.write_bytes(LINES)

    with pytest.raises(RecordingError, match="the file changed while it was read"):
        list(archive.read(path, progress=rewrite))


def test_what_is_added_while_it_is_read_waits_for_the_next_time(tmp_path: Path) -> None:
    path = saved(tmp_path, LINES)

    def append(done: int, total: int) -> None:
        if 2 * done == total:
            path.write_bytes(LINES + otlp_line(of_trace(1, 7)))

    assert sorted(trace.spans[0].trace_id for trace in archive.read(path, progress=append)) == [1, 2]
    assert [len(trace.spans) for trace in archive.read(path)] == [1, 3]


def test_only_the_native_recording_knows_starts(tmp_path: Path) -> None:
    known = {name: {trace.starts_known for trace in archive.read(saved(tmp_path, FORMS[name]))} for name in FORMS}
    assert {name for name, answers in known.items() if answers == {True}} == {"native"}
    assert {name for name, answers in known.items() if answers == {False}} == FORMS.keys() - {"native"}


class TestNative:
    """The native recording, which keeps starts."""

    def test_a_span_without_an_end_stays_open_and_keeps_what_it_had(self, tmp_path: Path) -> None:
        stream = io.StringIO()
        writer = archive.Writer(stream)
        root = span(name="root", end=None, attributes={"a": 1}, resource={"service.name": "agent"})
        inner = span(parent=root, end=None)
        writer.started(root)
        writer.started(inner)
        writer.ended(replace(inner, end_ns=5, name="renamed", attributes={"b": (1, 2)}, status="OK"))
        (trace,) = archive.read(saved(tmp_path, stream.getvalue().encode()))
        assert facts(trace.spans) == facts(
            [root, replace(inner, end_ns=5, name="renamed", attributes={"b": (1, 2)}, status="OK")]
        )

    def test_starts_keep_their_order_whatever_the_clock_says(self, tmp_path: Path) -> None:
        path = tmp_path / "recording"
        archive.write(path, [span(trace_id=1, span_id=number, start=9 - number, end=None) for number in (1, 2, 3)])
        assert traces(path) == [[1, 1, 2, 3]]

    def test_an_end_without_a_start_is_a_span_all_the_same(self, tmp_path: Path) -> None:
        stream = io.StringIO()
        archive.Writer(stream).ended(span(trace_id=1, span_id=1))
        assert traces(saved(tmp_path, stream.getvalue().encode())) == [[1, 1]]

    def test_one_id_started_twice_is_two_spans(self, tmp_path: Path) -> None:
        path = tmp_path / "recording"
        archive.write(path, [span(trace_id=1, span_id=1), span(trace_id=1, span_id=1)])
        assert traces(path) == [[1, 1, 1]]

    def test_an_end_that_is_told_twice_hides_nothing(self, tmp_path: Path) -> None:
        stream = io.StringIO()
        writer = archive.Writer(stream)
        writer.started(span(trace_id=1, span_id=1, end=None))
        for name in ("first", "second"):
            writer.ended(span(trace_id=1, span_id=1, name=name))
        (trace,) = archive.read(saved(tmp_path, stream.getvalue().encode()))
        assert [span.name for span in trace.spans] == ["first", "second"]

    def test_a_resource_is_told_once(self) -> None:
        stream = io.StringIO()
        writer = archive.Writer(stream)
        for name in ("a", "a", "b", "a"):
            writer.started(span(resource={"service.name": name}))
        assert stream.getvalue().count('"attributes":[{"key":"service.name"') == 2

    def test_recordings_may_be_strung_together(self, tmp_path: Path) -> None:
        one, other = tmp_path / "one", tmp_path / "other"
        archive.write(one, [span(trace_id=1, span_id=1, resource={"n": 1})])
        archive.write(other, [span(trace_id=1, span_id=2, resource={"n": 2})])
        (trace,) = archive.read(saved(tmp_path, one.read_bytes() + other.read_bytes()))
        assert [span.resource for span in trace.spans] == [{"n": 1}, {"n": 2}]

    @pytest.mark.parametrize("lost", [1, 40, 150])
    def test_a_last_line_cut_short_is_told_and_left_out(self, tmp_path: Path, lost: int) -> None:
        path = saved(tmp_path, native()[: -1 - lost])
        told: list[str] = []
        read = {trace.spans[0].trace_id: trace.spans for trace in archive.read(path, tell=told.append)}
        assert told == [f"{path}: line 8 was cut short while it was written, and is left out"]
        assert [span.is_open for span in read[1]] == [True, False]

    def test_a_last_line_that_lacks_only_its_line_break_counts(self, tmp_path: Path) -> None:
        path = saved(tmp_path, native()[:-1])
        assert not any(span.is_open for trace in archive.read(path) for span in trace.spans)

    def test_who_does_not_listen_is_warned(self, tmp_path: Path) -> None:
        path = saved(tmp_path, native()[:-9])
        with pytest.warns(archive.RecordingWarning, match="line 8 was cut short"):
            list(archive.read(path))

    @settings(max_examples=40)
    @given(st.lists(records(), max_size=4), st.booleans(), st.booleans())
    def test_what_is_written_is_read_as_it_was(self, spans: list[Span], sampled: bool, parent_sampled: bool) -> None:  # noqa: FBT001 - drawn
        spans = [
            replace(span, trace_id=1, span_id=number, sampled=sampled, parent_sampled=parent_sampled)
            for number, span in enumerate(spans, 1)
        ]
        stream = io.StringIO()
        writer = archive.Writer(stream)
        for each in spans:
            writer.started(each)
        for each in reversed(spans):
            if not each.is_open:
                writer.ended(each)
        assert facts(read_bytes(stream.getvalue().encode())) == facts(spans)


def read_bytes(content: bytes) -> list[Span]:
    form = forms.form_of(io.BytesIO(content))
    assert form is not None
    gatherer = form.gatherer()
    for chunk in form.cut(io.BytesIO(content)):
        gatherer.absorb(chunk)
    return [span for trace_id in gatherer.left() for span in gatherer.take(trace_id)]


def test_write_keeps_ended_and_open_spans(tmp_path: Path) -> None:
    root = span(end=None, attributes={"a": 1})
    inner = span(parent=root, attributes={"b": None}, events=(Event("e", {}, 3),), status="ERROR")
    archive.write(tmp_path / "recording", [root, inner])
    (trace,) = archive.read(tmp_path / "recording")
    assert trace.starts_known
    assert facts(trace.spans) == facts([root, inner])


def test_write_otlp_writes_lines_that_hold_a_bounded_number_of_spans(tmp_path: Path) -> None:
    path = tmp_path / "recording"
    spans = [span(trace_id=1, start=number, end=number + 1) for number in range(1200)]
    archive.write_otlp(path, iter(spans))
    assert len(path.read_bytes().splitlines()) == 3
    (trace,) = archive.read(path)
    assert not trace.starts_known
    assert facts(trace.spans) == facts(spans)


@pytest.mark.parametrize("path", RECORDED, ids=[path.name for path in RECORDED])
def test_what_real_frameworks_wrote_is_read_whole(path: Path) -> None:
    with gzip.open(path) as file:
        expected = sum(len(_otlp_json.read_line(line)) for line in file)
    assert sum(len(trace.spans) for trace in archive.read(path)) == expected > 0


def test_without_msgspec_everything_is_read_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, LINES)
    expected = [facts(trace.spans) for trace in archive.read(path)]
    monkeypatch.setattr(forms, "_read_otlp_line", _otlp_json.read_line)
    assert [facts(trace.spans) for trace in archive.read(path)] == expected


@pytest.fixture
def piped() -> Iterator[Callable[[bytes], Any]]:
    """Make pipes that give what they are told to."""
    files = []

    def make(content: bytes) -> Any:
        read_end, write_end = os.pipe()
        files.append(os.fdopen(read_end, "rb"))

        def feed() -> None:
            with os.fdopen(write_end, "wb") as file:
                file.write(content)

        threading.Thread(target=feed).start()
        return files[-1]

    yield make
    for file in files:
        file.close()


def test_standard_input_may_be_a_pipe(monkeypatch: pytest.MonkeyPatch, piped: Callable[[bytes], Any]) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=piped(gzip.compress(LINES))))
    assert traces(Path("-")) == [[2, 2], [1, 1, 3]]


def test_an_error_on_standard_input_names_it(monkeypatch: pytest.MonkeyPatch, piped: Callable[[bytes], Any]) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=piped(b"{x}\n")))
    with pytest.raises(RecordingError, match=r"^standard input: line 1: not JSON"):
        list(archive.read("-"))


def test_progress_ends_with_all_bytes_of_both_passes(tmp_path: Path) -> None:
    path = saved(tmp_path, b"".join(otlp_line(of_trace(trace, name="n" * 1000)) for trace in range(1, 4000)))
    told: list[tuple[int, int]] = []
    list(archive.read(path, progress=lambda done, total: told.append((done, total))))
    assert {total for _, total in told} == {2 * path.stat().st_size}
    assert told == sorted(told)
    assert len(told) > 4
    assert told[-1][0] == told[-1][1]


def peak_bytes(path: Path, runs: int) -> tuple[int, int]:
    """Return the size of a file of so many runs, and the most memory that reading it took."""
    with path.open("w") as file:
        for run in range(1, runs + 1):
            file.write(write_line([span(trace_id=run, attributes={"text": "x" * 2000}) for _ in range(10)]))
    tracemalloc.start()
    try:
        assert sum(1 for _ in archive.read(path)) == runs
        return path.stat().st_size, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    archive_warm_up = peak_bytes(tmp_path / "warm", 1)
    small_size, small_peak = peak_bytes(tmp_path / "small", 200)
    large_size, large_peak = peak_bytes(tmp_path / "large", 2000)
    assert archive_warm_up[0] < small_size
    assert large_size > 9 * small_size
    assert large_peak < 1.5 * small_peak


def test_closing_early_closes_the_file(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reader = archive.read(saved(tmp_path, LINES))
        next(reader)
        assert isinstance(reader, Generator)
        reader.close()


def test_a_document_beside_other_fields_is_read(tmp_path: Path) -> None:
    content = json.dumps(otlp_document(of_trace(1), schemaUrl="x")).encode()
    assert traces(saved(tmp_path, content)) == [[1, 1]]
