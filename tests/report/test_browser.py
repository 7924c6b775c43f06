"""The page in a real browser: what it shows, by keys and by pointer, in any colour and width, whatever spans hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import recordings
from tests.report.browser import Browser
from tests.report.recorded import SECRET, agent, broken, generation, many, page_of, recording, sound, tool
from tests.report.test_page import HOSTILE

ROWS = "article.run:not([hidden]) .row"
FOCUS = "return document.activeElement"
DETAILS = ".details:not([hidden])"
TREE = "article.run:not([hidden]) .tree"


def labels(browser: Browser) -> list[str]:
    """Return what a screen reader says of each row."""
    return browser.names(ROWS)


def active(browser: Browser) -> str:
    return browser.names(f"{ROWS}.active")[0]


def contrast(browser: Browser, selector: str) -> float:
    """Return the contrast between the text of an element and what lies behind it."""
    script = """
        const channel = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        const light = (colour) => {
          canvas.clearRect(0, 0, 1, 1);
          canvas.fillStyle = colour;
          canvas.fillRect(0, 0, 1, 1);
          const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
          return alpha < 255 ? null : 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
        };
        const element = document.querySelector(arguments[0]);
        let behind = element, ground = null;
        while (ground === null) {
          ground = light(getComputedStyle(behind).backgroundColor);
          behind = behind.parentElement;
        }
        const text = light(getComputedStyle(element).color);
        return (Math.max(text, ground) + 0.05) / (Math.min(text, ground) + 0.05);
    """
    return float(browser.run(script, selector))


class TestWhatItShows:
    def test_a_refused_run(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        assert browser.run("return document.title") == "Refused: invoke_agent fixer · spangate report"
        assert "Refused" in browser.text("h1")
        assert browser.text(".verdict .reasons") == "A span was started and never ended."
        assert browser.text(".finding.fail .do").startswith("What to do. End it in a with block")
        assert labels(browser)[:5] == [
            "agent invoke_agent fixer, took 20 s, begins at 0 s",
            "generation chat small-2, 1,900 in, 140 out, took 2.6 s, begins at 400 ms",
            "tool execute_tool run_tests, took 4.2 s, begins at 3.1 s",
            "tool execute_tool fetch, timeout, took 2 s, begins at 3.2 s, warning: completeness.recovered_error",
            "generation chat small-2, 1,900 in, 140 out, took 2.2 s, begins at 7.5 s",
        ]
        assert "tool execute_tool read_file, still open, begins at 9.8 s, fails: completeness.open_span" in labels(
            browser
        )

    def test_the_words_of_a_row_are_seen_too(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        parts = [f".row:nth-child(4) {part}" for part in (".flag", ".role", ".name", ".outcome", ".figures")]
        seen = [browser.text(part).splitlines()[-1] for part in parts]
        assert seen == ["!", "tool", "execute_tool fetch", "timeout", "2 s"]

    def test_bars_stand_where_their_time_was_and_holes_between_them(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        lane, fetch = (
            browser.run("return document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect()", *where)
            for where in ((".row .lane", 3), (".row .span", 3))
        )
        assert (fetch["left"] - lane["left"]) / lane["width"] == pytest.approx(3.2 / 20, abs=0.01)
        assert fetch["width"] / lane["width"] == pytest.approx(2 / 20, abs=0.01)
        holes = browser.run("return [...document.querySelectorAll('.band')].map((band) => band.style.left)")
        assert pytest.approx(48.5, abs=0.2) in [float(left.rstrip("%")) for left in holes]

    def test_details_of_a_span_with_advice_and_without_secrets(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        browser.one("#run-1-row-3").click()
        told = browser.text(DETAILS)
        assert "something failed and the run went on" in told
        assert "Nothing, if retrying is meant." in told
        assert "gen_ai.tool.call.arguments" in told
        assert '"api_key": "<redacted>"' in told
        assert "exception.type" in told
        assert SECRET not in told

    def test_long_values_are_folded(self, browser: Browser, refused: str) -> None:
        browser.open(refused, "#run-1/1")
        folded = browser.one(f"{DETAILS} details.value")
        assert "characters)" in folded.text
        assert "}" not in folded.text
        folded.find_element("css selector", "summary").click()
        assert folded.text.rstrip().endswith("]")

    def test_a_finding_leads_to_its_span(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        browser.one(".finding .way a").click()
        browser.until(f"return document.querySelector('{DETAILS}')")
        assert active(browser).startswith("tool execute_tool read_file")
        assert browser.text(f"{DETAILS} .head") == "execute_tool read_file"

    def test_the_time_line_stretches_over_a_span_and_back(self, browser: Browser, refused: str) -> None:
        browser.open(refused, "#run-1/2")
        for ticks in (["3.1 s", "+1.1 s", "+2.1 s", "+3.1 s", "+4.2 s"], ["0", "5 s", "10 s", "15 s", "20 s"]):
            browser.one(f"{DETAILS} .acts button").click()
            assert browser.texts(".ticks span") == ticks

    def test_a_recorded_run_of_a_framework(self, browser: Browser, tmp_path: Path) -> None:
        recording(tmp_path / "run.jsonl", recordings.spans("openai-agents-oi/maxturns"))
        browser.open(page_of(tmp_path / "run.jsonl"))
        assert browser.text(".verdict .reasons") == "Something failed, and nothing above it says so."
        assert len(labels(browser)) == 12
        browser.one(".button.next").click()
        browser.picture(tmp_path / "refused.png")
        assert (tmp_path / "refused.png").stat().st_size > 10_000
        assert browser.console() == []


class TestSeveralRuns:
    def test_the_list_comes_first_and_leads_to_each(self, browser: Browser, several: str) -> None:
        browser.open(several)
        assert browser.text("h1") == "2 of 3 runs are refused"
        assert browser.texts("article.run:not([hidden])") == []
        browser.one(".runs a").click()
        browser.until("return document.querySelector('article.run:not([hidden])')")
        assert browser.texts("#overview:not([hidden])") == []
        assert browser.run(FOCUS).get_attribute("id") == "run-2-heading"
        assert len(labels(browser)) == 10
        browser.one("article.run:not([hidden]) .back a").click()
        browser.until("return !document.getElementById('overview').hidden")

    def test_the_way_back_is_the_browsers_own(self, browser: Browser, several: str) -> None:
        browser.open(several)
        browser.one(".runs a").click()
        browser.until("return document.getElementById('overview').hidden")
        browser.run("history.back()")
        browser.until("return !document.getElementById('overview').hidden")

    def test_an_address_leads_to_a_span(self, browser: Browser, several: str) -> None:
        browser.open(several, "#run-3/5")
        assert active(browser).startswith("tool execute_tool read_file")
        assert "Refused" in browser.run("return document.title")


def test_where_no_script_may_run_all_but_the_tree_is_seen(browser: Browser, several: str) -> None:
    seen = browser.open_without_scripts(several)
    assert seen.count("Why it was refused") == 2
    assert seen.count("What to do.") == 2
    assert seen.count("What each gate said") == 3
    assert seen.count("The tree of spans is drawn by scripts, which are off here.") == 3
    assert "Dark theme" not in seen


class TestKeys:
    def test_the_first_stop_skips_to_the_verdict(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        browser.press("Tab")
        assert browser.run(FOCUS).text == "Skip to the verdict"
        browser.press("Enter")
        assert browser.run(FOCUS).get_attribute("id") == "main"

    def test_the_tree_is_one_stop_and_arrows_move_in_it(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        for _ in range(30):
            browser.press("Tab")
            if browser.run(FOCUS).get_attribute("role") == "tree":
                break
        assert active(browser).startswith("agent invoke_agent fixer")
        browser.press("ArrowDown", "ArrowDown")
        assert active(browser).startswith("tool execute_tool run_tests")
        browser.press("End", "ArrowUp", "ArrowLeft")
        assert active(browser).startswith("agent invoke_agent reviewer")
        browser.press("ArrowLeft")
        assert len(labels(browser)) == 8
        browser.press("ArrowRight", "ArrowRight")
        assert active(browser).startswith("generation chat small-2")
        assert len(labels(browser)) == 10
        browser.press("Home")
        assert active(browser).startswith("agent invoke_agent fixer")

    def test_the_focus_is_seen(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        browser.one(".toolbar input").click()
        browser.press("ArrowDown")
        outline = browser.run("return getComputedStyle(document.querySelector('.row.active')).outlineStyle")
        assert outline == "solid"

    def test_enter_shows_and_escape_closes_the_details(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        browser.one(TREE).send_keys("n")
        assert browser.text(f"{DETAILS} .head") == "execute_tool fetch"
        browser.press("ArrowDown")
        assert browser.text(f"{DETAILS} .head") == "chat small-2"
        browser.press("Tab")
        assert browser.run("return document.activeElement.closest('.details') !== null")
        browser.press("Escape")
        assert browser.texts(DETAILS) == []
        assert browser.run(FOCUS).get_attribute("role") == "tree"

    def test_findings_are_jumped_to_and_told(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        seen = []
        for _ in range(3):
            browser.one(".button.next").click()
            seen.append(active(browser).split(",")[0])
        assert seen == ["tool execute_tool fetch", "tool execute_tool read_file", "tool execute_tool fetch"]
        told = browser.run("return document.getElementById('announcements').textContent")
        assert told == "execute_tool fetch, begins at 3.2 s, warning: completeness.recovered_error. 1 of 2"

    def test_a_search_leaves_what_matches_and_what_is_above(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        browser.one(".toolbar input").send_keys("completeness.")
        assert [label.split(",")[0] for label in labels(browser)] == [
            "agent invoke_agent fixer",
            "tool execute_tool fetch",
            "tool execute_tool read_file",
        ]
        assert browser.text(".found") == "2 spans"
        browser.one(".toolbar input").clear()
        browser.one(".toolbar input").send_keys("nowhere")
        assert labels(browser) == []
        assert browser.text(".found") == "No span"


class TestThemes:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_follow_the_system_with_contrast(self, browser: Browser, several: str, theme: str) -> None:
        browser.media(prefers_color_scheme=theme)
        browser.open(several, "#run-2/3")
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(20, 22, 26)") == (theme == "dark")
        parts = (
            ".stamp",
            ".facts dt",
            ".finding .code",
            ".row .role",
            ".row .tokens",
            ".row .outcome",
            ".row .figures",
        )
        run = "#run-2 "
        assert {part: contrast(browser, run + part) for part in parts if contrast(browser, run + part) < 4.5} == {}

    def test_may_be_switched(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        light = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert browser.text("#theme") == "Dark theme"
        browser.one("#theme").click()
        assert browser.run("return getComputedStyle(document.body).backgroundColor") != light
        assert browser.text("#theme") == "Light theme"
        browser.one("#theme").click()
        assert browser.run("return getComputedStyle(document.body).backgroundColor") == light
        browser.run("localStorage.clear()")


class TestOtherScreens:
    @pytest.mark.parametrize("width", [340, 700, 1900])
    def test_nothing_sticks_out(self, browser: Browser, refused: str, width: int) -> None:
        browser.width(width)
        browser.open(refused, "#run-1/3")
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.run("return document.querySelector('#run-1-row-3 .name').getBoundingClientRect().width") > 50
        assert browser.run("return document.querySelector('#run-1-row-3 .span').getBoundingClientRect().width") > 5

    def test_who_wants_no_motion_gets_none(self, browser: Browser, refused: str) -> None:
        script = "return getComputedStyle(document.querySelector('.button')).transitionDuration"
        browser.open(refused)
        assert browser.run(script) == "0s"
        browser.media(prefers_reduced_motion="no-preference")
        assert browser.run(script) != "0s"

    def test_on_paper_there_are_all_rows_and_no_buttons(self, browser: Browser, tmp_path: Path) -> None:
        recording(tmp_path / "run.jsonl", many(300))
        browser.open(page_of(tmp_path / "run.jsonl"))
        assert len(labels(browser)) < 100
        browser.media(prefers_color_scheme="dark")
        browser.run("dispatchEvent(new Event('beforeprint'))")
        assert len(labels(browser)) == 300
        browser.run("dispatchEvent(new Event('afterprint'))")
        assert len(labels(browser)) < 100
        assert browser.printed().startswith(b"JVBERi0")
        assert browser.console() == []


class TestHostileSpans:
    @pytest.fixture
    def hostile(self, tmp_path: Path) -> str:
        root = agent(name=HOSTILE)
        arguments = {HOSTILE: HOSTILE, "js": "javascript:alert(1)"}
        made = [root, tool(root, HOSTILE, 1, None, arguments, HOSTILE), generation(root, 3, 1, said=HOSTILE * 60)]
        made.append(tool(root, "\u202egnp.exe", 5, 1, {}, "", status="ERROR", status_description=HOSTILE))
        recording(tmp_path / "<b>&\u202e.jsonl", made)
        return page_of(tmp_path / "<b>&\u202e.jsonl")

    def test_are_seen_as_they_are_written_and_do_nothing(self, browser: Browser, hostile: str) -> None:
        browser.open(hostile)
        browser.run("window.alert = () => { window.hit = true; }")
        for row in range(4):
            browser.one(f"#run-1-row-{row}").click()
            for summary in browser.run("return [...document.querySelectorAll('.details summary')]"):
                summary.click()
            assert browser.run("return document.querySelectorAll('img, iframe, object, embed').length") == 0
        assert browser.run("return window.hit === undefined")
        assert "<script>alert(1)</script>" in browser.text("h1")
        assert r"\u202egnp.exe" in browser.texts(".row .name")[-1]
        assert r"\u2028\u202e\x1b[2J\ud83d" in browser.text("h1")
        assert browser.console() == []

    def test_make_nothing_load(self, browser: Browser, hostile: str) -> None:
        browser.open(hostile)
        browser.one("#run-1-row-1").click()
        asked = [address for address in browser.requests() if address != "about:blank"]
        assert [address.partition(":")[0] for address in asked if not address.startswith("data:")] == ["file"]

    def test_could_not_if_a_script_came_in(self, browser: Browser, refused: str) -> None:
        browser.open(refused)
        browser.run(
            """
            const script = document.createElement("script");
            script.textContent = "window.hit = true";
            document.body.append(script);
            const image = document.createElement("img");
            image.src = "https://example.com/x.png";
            image.setAttribute("onerror", "window.hit = true");
            document.body.append(image);
            """
        )
        assert browser.run("return window.hit === undefined")
        forbidden = [line for line in browser.console() if "Content Security Policy" in line]
        assert [any(what in line for line in forbidden) for what in ("script-src", "img-src")] == [True, True]


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """Return pages of runs by their number of spans."""
    folder = tmp_path_factory.mktemp("large")
    pages: dict[int, str] = {}
    for number in (1_000, 10_000):
        recording(folder / f"{number}.jsonl", many(number, leak=number - 4))
        pages[number] = page_of(folder / f"{number}.jsonl")
    return pages


class TestLargeRuns:
    def test_open_as_quickly_and_keep_as_little_in_sight(self, browser: Browser, sized: dict[int, str]) -> None:
        told: dict[int, Any] = {}
        for number, page in sized.items():
            browser.open(page)
            told[number] = browser.run(
                "return [Number(document.documentElement.dataset.ready), document.querySelectorAll('*').length]"
            )
        (quick, few), (long, more) = told.values()
        assert more < few + 100, "rows that are not in sight are in the page"
        assert long < 10 * quick, f"ready after {long} ms, ten times fewer spans after {quick} ms"

    def test_are_walked_to_their_end(self, browser: Browser, sized: dict[int, str]) -> None:
        browser.open(sized[10_000])
        assert browser.text(".facts div:nth-child(2) dd") == "10,000 spans, 9,999 of them ended"
        browser.one(".button.next").click()
        assert active(browser).startswith("tool execute_tool tool_")
        assert "still open" in active(browser)
        assert browser.text(f"{DETAILS} .head").startswith("execute_tool tool_")
        browser.one(TREE).send_keys("n")
        browser.press("End")
        assert browser.run("return document.querySelector('.row.active').dataset.row") == "9999"
        browser.one(".toolbar input").send_keys("tool_3")
        assert browser.text(".found").endswith(" spans")
        assert len(labels(browser)) < 150
        assert browser.console() == []


def test_a_sound_run_and_the_policy_of_somebody(browser: Browser, tmp_path: Path, policy: Path) -> None:
    recording(tmp_path / "run.jsonl", sound(), broken())
    browser.open(page_of(tmp_path / "run.jsonl", "--policy", str(policy)), "#run-1")
    assert "Refused" in browser.text("#run-1 .title"), "the ceiling holds for the sound run, too"
    bars = browser.texts("#run-1 .budget .bar-line")
    assert bars[0].splitlines() == ["input tokens", "✕ over 7,600 of 5,000 allowed, 152% of it"]
