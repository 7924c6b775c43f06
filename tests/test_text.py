"""The text of a verdict: literal examples, and what never gets through."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spangate._codes import DEFAULT_LEVELS
from spangate._records import Finding, Span, Totals, Verdict, not_evaluable
from spangate._run import Run
from spangate._units import counted, duration, shown
from spangate._verdict.advice import ADVICE
from spangate._verdict.text import Part, one_line, verdict_text
from tests.spans import run_of, span


def fail(code: str, at: Span | None = None, detail: str = "") -> Finding:
    return Finding(code, at, detail, "fail")


def warn(code: str, at: Span | None = None, detail: str = "") -> Finding:
    return Finding(code, at, detail, "warn")


def verdict_of(run: Run, *findings: Finding, gaps: tuple[Finding, ...] = (), **fields: Any) -> Verdict:
    failed = any(finding.level == "fail" for finding in findings)
    given_: dict[str, Any] = {
        "verdict": "fail" if failed else "pass",
        "run_id": run.run_id,
        "run_name": run.name,
        "trigger": run.trigger,
        "root": run.root,
        "findings": findings,
        "gaps": gaps,
        "gates": {},
        "totals": Totals(len(run.spans), len(run.spans) - 1, 1204, 1, 2048),
        "policy": "3e05dba9addf",
        "cluster": "137ce9c14ad7" if failed else None,
    }
    return Verdict(**{**given_, **fields})


def research() -> Run:
    root = span("agent", "invoke_agent research", span_id=1)
    model = span("generation", "chat gpt-4o", parent=root, span_id=2)
    tool = span("tool", "execute_tool search", parent=model, span_id=3, end=None)
    return run_of([root, model, tool, span("tool", "lost", parent_id=99, span_id=4)])


FAILED = """\
FAIL  invoke_agent research
      3 of 4 spans ended, 1,204 input tokens, 1 output token, 2,048 bytes from tools

completeness.open_span: a span was started and never ended
    where  invoke_agent research > chat gpt-4o > execute_tool search  [tool 0000000000000003]
    what   open for 9 s
    do     End it in a with block or a finally; close abandoned streams and generators. If it only
           ends late, raise grace_s.

forest.missing_parent: a span's parent never started here
    where  (outside the tree) > lost  [tool 0000000000000004]
    do     Often there is a second tracer provider, or the gate was added after the parent had
           started: keep one provider and add the gate first.

warnings
  budget.usage_coerced (2)  chat gpt-4o: "311"

not evaluable
  timing.not_evaluable  no clock

run run-1, trace 000000000000000000000000000a11ce, trigger root_end, cluster 137ce9c14ad7, policy 3e05dba9addf"""


def failed(run: Run) -> Verdict:
    model, tool, lost = run.spans[1:]
    return verdict_of(
        run,
        fail("completeness.open_span", tool, "open for 9 s"),
        fail("forest.missing_parent", lost),
        warn("budget.usage_coerced", model, '"311"'),
        warn("budget.usage_coerced", model, '"12"'),
        gaps=(not_evaluable("timing.not_evaluable", "no clock"),),
    )


def test_a_failed_run() -> None:
    run = research()
    assert verdict_text(failed(run), run) == FAILED


def test_a_failed_run_of_which_only_the_verdict_is_left() -> None:
    text = verdict_text(failed(research()))
    assert "    where  execute_tool search  [tool 0000000000000003]\n" in text
    assert "outside the tree" not in text


def test_a_passed_run() -> None:
    run = run_of([span("agent", "answer")])
    assert verdict_text(verdict_of(run, totals=Totals(1, 1)), run) == (
        "PASS  answer\n"
        "      1 of 1 span ended, input tokens unknown, output tokens unknown\n"
        "\n"
        "run run-1, trace 000000000000000000000000000a11ce, trigger root_end, policy 3e05dba9addf"
    )


def test_a_code_of_the_users_own_has_no_advice() -> None:
    run = research()
    text = verdict_text(verdict_of(run, fail("house.rule", None, "not ours")), run)
    assert "\nhouse.rule\n    what   not ours\n\nrun run-1" in text


def test_many_places_are_cut_with_their_number() -> None:
    run = research()
    text = verdict_text(verdict_of(run, *[fail("timing.inverted_span", run.root)] * 1234), run)
    assert "\ntiming.inverted_span (1,234): a span ends before it starts\n" in text
    assert text.count("    where  ") == 3
    assert "\n    and 1,231 more\n" in text


def test_many_codes_are_cut_with_their_number() -> None:
    run = research()
    failures = [fail(f"house.rule_{number:02}") for number in range(25)]
    warnings = [warn(f"house.hint_{number:02}") for number in range(21)]
    text = verdict_text(verdict_of(run, *failures, *warnings), run)
    assert "house.rule_19" in text
    assert "house.rule_20" not in text
    assert "\n  and 5 more codes\n" in text
    assert "house.hint_20" not in text
    assert "\n  and 1 more code\n" in text


def test_a_long_way_is_cut_in_the_middle() -> None:
    spans = [span("workflow", "s0")]
    for number in range(1, 12):
        spans.append(span("workflow", f"s{number}", parent=spans[-1]))
    run = run_of(spans)
    text = verdict_text(verdict_of(run, fail("timing.inverted_span", spans[-1])), run)
    assert "    where  s0 > s1 > ... > s9 > s10 > s11  [workflow " in text


def test_the_way_to_a_model_call_of_a_request_starts_at_the_request() -> None:
    request = span("entry", "POST /chat", kind="SERVER")
    call = span("generation", "chat", parent=request, span_id=7)
    run = run_of([call], root=request)
    text = verdict_text(verdict_of(run, fail("timing.inverted_span", call)), run)
    assert "    where  POST /chat > chat  [generation 0000000000000007]\n" in text


def test_an_amended_verdict_names_the_one_it_supersedes() -> None:
    run = research()
    text = verdict_text(verdict_of(run, fail("forest.late_child"), supersedes="00000000000000aa"), run)
    assert text.endswith("policy 3e05dba9addf, supersedes 00000000000000aa")


def test_a_style_sees_each_piece_once_and_the_text_stays_the_same() -> None:
    seen: list[tuple[str, Part]] = []

    def style(text: str, part: Part) -> str:
        seen.append((text, part))
        return text

    run = research()
    assert verdict_text(failed(run), run, style=style) == FAILED
    assert [(text, part) for text, part in seen if part != "dim"] == [
        ("FAIL", "fail"),
        ("completeness.open_span", "fail"),
        ("forest.missing_parent", "fail"),
        ("budget.usage_coerced", "warn"),
        ("timing.not_evaluable", "gap"),
    ]


def test_one_line() -> None:
    run = research()
    assert one_line(failed(run)) == (
        "fail: invoke_agent research (run run-1): completeness.open_span at execute_tool search: open for 9 s;"
        " 1 more; 2 warnings"
    )
    assert one_line(verdict_of(run, fail("gate.error"))) == "fail: invoke_agent research (run run-1): gate.error"
    assert one_line(verdict_of(run)) == "pass: invoke_agent research (run run-1); 4 spans"
    assert one_line(verdict_of(run, warn("budget.lower_bound"))) == (
        "pass: invoke_agent research (run run-1); 4 spans; 1 warning"
    )


@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=200), st.text(max_size=20))
def test_what_spans_are_called_cannot_move_the_cursor_or_break_an_encoder(name: str, code: str) -> None:
    root = span("agent", name)
    run = run_of([root])
    verdict = verdict_of(run, fail(code, root, name), warn(code, root, name), gaps=(not_evaluable(code, name),))
    verdict = replace(verdict, run_id=name)
    for text in (verdict_text(verdict, run), verdict_text(verdict), one_line(verdict)):
        text.encode("utf-8")
        assert text.replace("\n", "").isprintable()
    assert "\n" not in one_line(verdict)
    assert verdict_text(verdict, run).count("\n") < 30


def test_names_of_megabytes_are_cut() -> None:
    root = span("agent", "\x1b" * (4 << 20))
    verdict = verdict_of(run_of([root]), fail("gate.error", root, "x" * (4 << 20)))
    assert len(verdict_text(verdict)) < 3000


def test_every_code_has_its_advice() -> None:
    assert ADVICE.keys() == DEFAULT_LEVELS.keys()


@pytest.mark.parametrize("code", ADVICE)
def test_advice_is_short_and_whole(code: str) -> None:
    meaning, do = ADVICE[code]
    assert meaning[0].islower()
    assert not meaning.endswith(".")
    assert do[0].isupper()
    assert do.endswith(".")
    assert len(meaning) < 100
    assert len(do) < 200


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"),
        (1_500, "2 µs"),
        (12_400_000, "12 ms"),
        (1_000_000_000, "1 s"),
        (1_250_000_000, "1.2 s"),
        (90_000_000_000, "1.5 min"),
        (7_200_000_000_000, "2 h"),
        (172_800_000_000_000, "2 d"),
        (-2_000_000_000, "-2 s"),
    ],
)
def test_durations(ns: int, text: str) -> None:
    assert duration(ns) == text


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ("søk ☕ 検索", "søk ☕ 検索"),
        ("a\nb\x1b[2J", "a\\nb\\x1b[2J"),
        ("\ud83e", "\\ud83e"),
        ("abc\u202edef", "abc\\u202edef"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 77 + "..."),
    ],
)
def test_shown_names(given_: str, text: str) -> None:
    assert shown(given_) == text


def test_counted() -> None:
    assert (counted(0, "span"), counted(1, "span"), counted(12345, "span")) == ("0 spans", "1 span", "12,345 spans")
