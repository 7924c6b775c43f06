"""What a page holds, before any browser has seen it: nothing foreign, nothing that acts but its own, no secret."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from spangate._redaction import REDACTED, Redaction
from spangate.cli._report.embedded import as_data
from spangate.cli._report.texts import MAX_VALUE, Texts, visible
from tests.report.recorded import SECRET, agent, broken, changed, generation, page_of, recording, sound, tool

STEP = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"
HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)"><!-- \u2028\u202e\x1b[2J\ud83d ]]> {{ 7*7 }}'


class Parsed(HTMLParser):
    """The elements of a page with their attributes, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            kind = dict(attrs).get("type") or tag
            self._inside = kind
            self.texts.setdefault(kind, []).append("")

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = ""

    def policy(self) -> dict[str, list[str]]:
        (told,) = [one["content"] for _, one in self.elements if one.get("http-equiv") == "Content-Security-Policy"]
        return {name: allowed for name, *allowed in (part.split() for part in (told or "").split(";"))}


def parsed(page: str) -> Parsed:
    return Parsed(Path(page).read_text(encoding="utf-8"))


class TestThePolicyOfThePage:
    def test_allows_its_own_scripts_and_style_by_their_hashes_and_nothing_else(self, refused: str) -> None:
        page = parsed(refused)
        policy = page.policy()
        for kind in ("script", "style"):
            hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in page.texts[kind]]
            assert policy[f"{kind}-src"] == [f"'sha256-{digest}'" for digest in hashes]
        assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
        assert policy["img-src"] == ["data:"]

    def test_is_met_by_the_page_itself(self, refused: str) -> None:
        attributes = [(name, value) for _, found in parsed(refused).elements for name, value in found.items()]
        assert [name for name, _ in attributes if name == "style" or name.startswith("on")] == []

    def test_leaves_nothing_to_load(self, refused: str) -> None:
        loads = [
            value
            for tag, found in parsed(refused).elements
            for name, value in found.items()
            if name in ("src", "srcset", "poster", "data") or (name == "href" and tag == "link")
        ]
        assert [value[:5] for value in loads if value] == ["data:"]
        text = Path(refused).read_text(encoding="utf-8")
        assert "@import" not in text
        assert "url(" not in text


class TestDataInThePage:
    @pytest.mark.parametrize(
        "value", [HOSTILE, "<!--<script>", "&lt;", "]]>", "'\"`", "\x00\x7f\ufeff", {"</a>": ["<b>"]}]
    )
    def test_is_read_back_as_it_was_and_cannot_end_its_element(self, value: Any) -> None:
        written = as_data(value)
        assert json.loads(written) == value
        assert written.isascii()
        assert not re.search("[<>&]", written)

    def test_that_json_has_not_is_refused(self) -> None:
        with pytest.raises(ValueError, match="not JSON compliant"):
            as_data(float("nan"))


class TestTexts:
    @pytest.mark.parametrize(
        ("text", "seen"),
        [
            ("plain, größer, 日本, 👍🏽, 👩\u200d🚀", None),
            ("two\nlines\tand a tab", None),
            ("Windows\r\nlines", "Windows\nlines"),
            ("\u202ecba\u2066", r"\u202ecba\u2066"),
            ("a\x1b[31m\x00\x85", r"a\x1b[31m\x00\x85"),
            ("a\u2028b\ufeff", r"a\u2028b\ufeff"),
            ("half \ud83d", r"half \ud83d"),
            ("\U000e0049\U000e0047", r"\U000e0049\U000e0047"),
        ],
    )
    def test_what_nobody_can_see_is_written_out(self, text: str, seen: str | None) -> None:
        assert visible(text) == (text if seen is None else seen)
        visible(text).encode()

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("api_key", SECRET),
            ("http.request.header.authorization", [f"Bearer {SECRET}"]),
            ("arguments", json.dumps({"nested": [{"api_key": SECRET}]})),
            ("arguments", json.dumps({"body": json.dumps({"password": SECRET})})),
            ("arguments", json.dumps({"body": json.dumps({"password": SECRET})})[:-3]),
            ("arguments", json.dumps({"body": json.dumps({"credentials": [SECRET]})})),
            ("arguments", {"command": f"deploy --token {SECRET}"}),
            ("arguments", [[[{"client_secret": {"a": SECRET}}]]]),
            ("note", f"curl -H 'Authorization: Bearer {SECRET}'"),
        ],
    )
    def test_secrets_are_hidden(self, key: str, value: Any) -> None:
        told = Texts(Redaction()).value(key, value)
        assert SECRET not in str(told)
        assert REDACTED in str(told)

    def test_json_in_a_text_is_set_out(self) -> None:
        assert Texts(Redaction()).value("arguments", '{"path":"a"}') == '{\n  "path": "a"\n}'

    @pytest.mark.parametrize("value", ["[" * 100_000, "{", '{"a": ' + "9" * 5000 + "}", "[not json]"])
    def test_what_only_looks_like_json_is_text(self, value: str) -> None:
        told = Texts(Redaction()).value("arguments", value)
        assert (told if isinstance(told, str) else told[0]) == value[:MAX_VALUE]

    def test_a_long_value_says_what_is_missing(self) -> None:
        assert Texts(Redaction()).value("prompt", "x" * (MAX_VALUE + 7)) == ("x" * MAX_VALUE, 7)


def test_no_secret_is_in_the_page(tmp_path: Path) -> None:
    root = agent(name=f"invoke_agent token={SECRET}")
    leak = tool(root, f"call password={SECRET}", 1, None, {"api_key": SECRET}, "")
    spans = [*broken(), root, leak, generation(root, 3, 1, status="ERROR", status_description=f"api_key={SECRET}")]
    path = tmp_path / "run.jsonl"
    recording(path, spans)
    assert SECRET in path.read_text()
    assert SECRET not in Path(page_of(path)).read_text(encoding="utf-8")


def test_texts_of_spans_never_become_markup(tmp_path: Path) -> None:
    root = agent(name=HOSTILE)
    hostile = tool(root, HOSTILE, 1, None, {HOSTILE: HOSTILE}, HOSTILE, status="ERROR", status_description=HOSTILE)
    path = tmp_path / "run.jsonl"
    recording(path, [root, hostile])
    page, harmless = parsed(page_of(path)), parsed(page_of_sound(tmp_path))
    assert {tag for tag, _ in page.elements} - {tag for tag, _ in harmless.elements} == set()
    assert page.texts["script"] == harmless.texts["script"]


def page_of_sound(tmp_path: Path) -> str:
    recording(tmp_path / "sound.jsonl", broken())
    return page_of(tmp_path / "sound.jsonl")


def words(page: str) -> str:
    """Return what a page says without any script, on one line."""
    text = Path(page).read_text(encoding="utf-8")
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", bare).split())


class TestWithoutScripts:
    def test_a_refused_run_says_why_where_and_what_to_do(self, refused: str) -> None:
        told = words(refused)
        assert "Refused : invoke_agent fixer A span was started and never ended." in told
        assert "What to do. End it in a with block or a finally" in told
        assert f"invoke_agent fixer {STEP} execute_tool read_file started and never ended, open for at least" in told

    def test_the_totals_the_time_and_the_gates_are_told(self, refused: str) -> None:
        told = words(refused)
        assert "input tokens 9,500" in told
        assert "20 s from begin to end" in told
        assert "completeness ✕ Failed open_span ; warns of recovered_error" in told
        assert "causality ? Not evaluable no span declares what caused it (caused_by)" in told
        assert "forest ✓ Passed nothing wrong" in told

    def test_ceilings_are_told(self, tmp_path: Path, policy: Path) -> None:
        recording(tmp_path / "run.jsonl", broken())
        told = words(page_of(tmp_path / "run.jsonl", "--policy", str(policy)))
        assert "input tokens ✕ over 9,500 of 5,000 allowed, 190% of it" in told
        assert "model calls 5 of 10 allowed, 50% of it" in told
        assert "26.0% of the run, 90% allowed" in told

    def test_a_passed_run_says_what_that_rests_on(self, tmp_path: Path) -> None:
        recording(tmp_path / "run.jsonl", sound())
        told = words(page_of(tmp_path / "run.jsonl"))
        assert "Passed : invoke_agent fixer 9 gates found nothing wrong. 2 gates had no evidence to judge by" in told

    def test_several_runs_are_listed_refused_ones_first_by_their_fault(self, several: str) -> None:
        told = words(several)
        assert "2 of 3 runs are refused ✕ 2 refused ✓ 1 passed" in told
        fault = told.index(
            "A span was started and never ended, at execute_tool read_file 2 runs completeness.open_span"
        )
        assert fault < told.index("Passed 1 run")

    def test_a_recording_in_one_word(self, tmp_path: Path) -> None:
        recording(tmp_path / "run.jsonl", sound(1), changed(3))
        assert "Both runs passed" in words(page_of(tmp_path / "run.jsonl"))
