"""Where the time of a run went: stretches of time, the account of a run, its holes, and what is said of them."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from spangate import Run, archive
from spangate._forest.recorded import recorded_runs
from spangate._records import Role, Span
from spangate._timing import MAX_OVERLAPS, times
from spangate._timing.intervals import gaps, length, overlaps, union
from spangate.cli._group import spangate
from spangate.cli._timing_report import timing_json
from tests import recordings
from tests.spans import SECOND, run_of, span

VECTOR = json.loads((Path(__file__).parent / "data" / "vectors" / "exclusive_time.json").read_text(encoding="utf-8"))
MS = 1_000_000
stretches = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)
within = st.tuples(st.integers(0, 30), st.integers(30, 60))


def points(given: Any, within: tuple[int, int]) -> set[int]:
    """Return the unit steps that stretches cover, one by one."""
    return {at for begin, end in given for at in range(max(begin, within[0]), min(end, within[1]))}


class TestStretches:
    @given(stretches, within)
    def test_a_union_covers_what_its_parts_do(self, given: list[tuple[int, int]], whole: tuple[int, int]) -> None:
        covered = union(given, whole)
        assert points(covered, whole) == points(given, whole)
        assert all(one[1] < other[0] for one, other in itertools.pairwise(covered))

    @given(stretches, within)
    def test_it_is_the_same_in_any_order_and_done_twice(
        self, given: list[tuple[int, int]], whole: tuple[int, int]
    ) -> None:
        covered = union(given, whole)
        assert union(reversed(given), whole) == union(covered, whole) == union([*given, *given], whole) == covered

    @given(stretches, within)
    def test_what_is_covered_and_its_gaps_are_the_whole(
        self, given: list[tuple[int, int]], whole: tuple[int, int]
    ) -> None:
        covered = union(given, whole)
        assert length(covered) + length(gaps(covered, whole)) == whole[1] - whole[0]

    @given(stretches)
    def test_overlaps_are_the_pairs_that_share_time(self, given: list[tuple[int, int]]) -> None:
        expected = {}
        for one, (begin, end) in enumerate(given):
            for other in range(one):
                shared = min(end, given[other][1]) - max(begin, given[other][0])
                if shared > 0:
                    expected[frozenset((one, other))] = shared
        count, listed = overlaps(given, 1000)
        assert count == len(expected)
        assert {frozenset((pair.first, pair.second)): pair.length_ns for pair in listed} == expected

    def test_of_very_many_overlaps_the_first_are_listed_and_all_counted(self) -> None:
        count, listed = overlaps([(0, 10)] * 2000, 3)
        assert (count, len(listed)) == (2000 * 1999 // 2, 3)


def vector_run() -> tuple[Run, dict[str, Span]]:
    """Return the run of the golden values, below a root that takes its whole time."""
    told = VECTOR["run"]
    root = span("agent", "run", start_ns=told["started_at_ms"] * MS, end_ns=told["ended_at_ms"] * MS)
    named: dict[str, Span] = {}
    for row in told["spans"]:
        named[row["span_id"]] = span(
            "generation" if row["kind"] == "model" else "tool",
            row["span_id"],
            parent=named.get(row["parent_id"], root),
            start_ns=row["start_ms"] * MS,
            end_ns=row["end_ms"] * MS,
        )
    return run_of([root, *named.values()]), named


class TestAccount:
    def test_golden_values(self) -> None:
        run, named = vector_run()
        account, expected = times(run), VECTOR["expect"]
        assert account.wall_ns == expected["wall_ms"] * MS
        assert account.covered_ns == expected["covered_ms"] * MS
        assert account.untraced_ns == expected["untraced_ms"] * MS
        assert round(account.untraced_fraction, 3) == expected["untraced_fraction"]
        own = {name: account.exclusive_ns[id(one)] // MS for name, one in named.items()}
        assert own == expected["exclusive_ms"]
        assert account.by_role["generation"] == expected["exclusive_model_ms"] * MS
        assert account.by_role["tool"] == expected["exclusive_tool_ms"] * MS
        found = [[one.name, other.name, shared // MS] for one, other, shared in account.overlaps]
        assert found == expected["overlaps"]

    def test_containers_and_the_root_cover_nothing(self) -> None:
        root = span("agent", end=10.0)
        step = span("iteration", parent=root, start=1.0, end=9.0)
        account = times(run_of([root, step, span("generation", parent=step, start=2.0, end=4.0)]))
        assert (account.covered_ns, account.untraced_ns) == (2 * SECOND, 8 * SECOND)

    def test_a_program_in_a_tool_is_covered_once_and_owns_its_time(self) -> None:
        root = span("agent", end=10.0)
        tool = span("tool", parent=root, start=1.0, end=5.0)
        program = span("process", parent=tool, start=2.0, end=4.0)
        account = times(run_of([root, tool, program]))
        assert account.covered_ns == 4 * SECOND
        assert account.by_role == {"agent": 6 * SECOND, "tool": 2 * SECOND, "process": 2 * SECOND}

    def test_a_program_in_which_an_agent_works_is_a_container(self) -> None:
        root = span("other", "spangate run", end=10.0)
        command = span("process", parent=root, end=10.0)
        agent = span("agent", parent=command, start=1.0, end=9.0)
        tool = span("tool", parent=agent, start=2.0, end=4.0)
        program = span("process", parent=tool, start=2.0, end=3.0)
        assert times(run_of([root, command, agent, tool, program])).covered_ns == 2 * SECOND

    def test_parallel_children_are_taken_off_once(self) -> None:
        root = span("agent", end=10.0)
        tools = [span("tool", parent=root, start=1.0, end=5.0), span("tool", parent=root, start=3.0, end=7.0)]
        account = times(run_of([root, *tools]))
        assert account.exclusive_ns[id(root)] == 4 * SECOND
        assert account.overlaps == [(*tools, 2 * SECOND)]

    def test_what_outlives_the_root_counts_as_far_as_the_root_lasts(self) -> None:
        root = span("agent", end=10.0)
        assert times(run_of([root, span("tool", parent=root, start=8.0, end=99.0)])).covered_ns == 2 * SECOND

    def test_holes_lie_between_their_neighbours(self) -> None:
        root = span("agent", end=10.0)
        first = span("tool", "read", parent=root, start=1.0, end=2.0)
        second = span("tool", "write", parent=root, start=5.0, end=10.0)
        holes = times(run_of([root, first, second])).holes
        assert [(hole.length_ns // SECOND, hole.before, hole.after) for hole in holes] == [
            (1, None, first),
            (3, first, second),
        ]

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"end": None}, "still open"),
            ({"start": 3.0, "end": 2.0}, "ends before it starts"),
            ({"resource": {"host.id": "b"}}, "timed by another host (host.id b)"),
            ({"parent_remote": True, "start": -5.0}, "its clock is more than a second away from its parent's"),
        ],
    )
    def test_what_cannot_be_timed_is_left_out_and_named(self, fields: dict[str, Any], why: str) -> None:
        root = span("agent", end=10.0, resource={"host.id": "a"} if "resource" in fields else {})
        odd = span("tool", parent=root, **fields)
        account = times(run_of([root, odd]))
        assert account.left_out == [(odd, why)]
        assert account.covered_ns == 0

    def test_what_is_below_a_stranger_goes_with_it(self) -> None:
        root = span("agent", end=10.0)
        server = span("tool", parent=root, parent_remote=True, start=100.0, end=101.0)
        below = span("generation", parent=server, start=100.0, end=101.0)
        assert [one for one, _ in times(run_of([root, server, below])).left_out] == [server, below]

    def test_an_open_root_has_no_wall_clock(self) -> None:
        assert times(run_of([span("agent", end=None)])).blind

    def test_calls_without_an_agent_below_a_request_last_from_the_first_to_the_last(self) -> None:
        request = span("entry", end=10.0)
        calls = [
            span("generation", parent=request, start=2.0, end=3.0),
            span("tool", parent=request, start=4.0, end=6.0),
        ]
        account = times(run_of(calls, root=request))
        assert (account.wall_ns, account.untraced_ns) == (4 * SECOND, 1 * SECOND)

    @given(st.integers(0, 2**32))
    def test_the_own_times_of_a_tree_add_up_to_its_root(self, seed: int) -> None:
        run = run_of(nested(seed))
        account = times(run)
        assert sum(account.exclusive_ns.values()) == account.wall_ns
        assert account.covered_ns + account.untraced_ns == account.wall_ns
        assert all(0 <= account.exclusive_ns[id(one)] <= (one.end_ns or 0) - one.start_ns for one in run.spans)

    def test_every_recorded_run_has_an_account(self) -> None:
        for name in recordings.names():
            for run in recorded_runs(recordings.spans(name), starts_known=True)[0]:
                account = times(run)
                assert account.blind or 0 <= account.untraced_fraction <= 1
                json.dumps(timing_json(account))

    def test_twenty_times_the_spans_are_little_more_than_twenty_times_the_work(self) -> None:
        """Counted in comparisons, which no neighbour on the machine disturbs."""
        few, many = (comparisons_of(count) for count in (2_000, 40_000))
        assert many < 40 * few


ROLES: tuple[Role, ...] = ("tool", "generation", "iteration", "process")


def nested(seed: int) -> list[Span]:
    """Return a tree in which no child overlaps another, or its parent's ends."""
    made = [span("agent", start_ns=0, end_ns=1 << 20)]
    for number in range(20):
        parent = made[(seed >> number) % len(made)]
        taken = [one.end_ns or 0 for one in made if one.parent_id == parent.span_id]
        begin, end = max([parent.start_ns, *taken]), parent.end_ns or 0
        middle = begin + (end - begin) // (2 + (seed + number) % 3)
        role = ROLES[(seed + number) % len(ROLES)]
        made.append(span(role, parent=parent, start_ns=begin, end_ns=middle))
    return made


class Counted(int):
    """A time that counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) < other

    def __le__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) <= other

    def __gt__(self, other: int) -> bool:
        Counted.compared += 1
        return int(self) > other


def comparisons_of(count: int) -> int:
    root = span("agent", start_ns=0, end_ns=count * 10)
    tools = [
        span("tool", parent=root, start_ns=Counted(at * 7 % count * 10), end_ns=Counted(at * 7 % count * 10 + 25))
        for at in range(count)
    ]
    Counted.compared = 0
    assert times(run_of([root, *tools])).overlap_count > MAX_OVERLAPS
    return Counted.compared


def invoke(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(spangate, list(arguments))


AGENT = {"gen_ai.operation.name": "invoke_agent"}
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}


def recorded(path: Path, **tool: Any) -> str:
    root = span("agent", "invoke_agent helper", end=10.0, attributes=AGENT)
    made = {"start": 1.0, "end": 4.0, **tool}
    path.mkdir(exist_ok=True)
    archive.write_otlp(path / "run.jsonl", [root, span("tool", "search", parent=root, attributes=TOOL, **made)])
    return str(path / "run.jsonl")


class TestCommands:
    def test_check_tells_where_the_time_went(self, tmp_path: Path) -> None:
        said = invoke("check", "--timing", recorded(tmp_path)).output
        assert "time  10 s wall, 3 s covered by calls, 7 s untraced (70.0%)" in said
        assert "own   agent 7 s, tool 3 s" in said
        assert "hole  6 s between search and the end" in said

    def test_without_being_asked_it_says_nothing_of_time(self, tmp_path: Path) -> None:
        assert "untraced" not in invoke("check", recorded(tmp_path)).output

    def test_json(self, tmp_path: Path) -> None:
        told = json.loads(invoke("check", "--timing", "--format", "json", recorded(tmp_path)).output)["timing"]
        assert (told["wall_ms"], told["covered_ms"], told["untraced_fraction"]) == (10_000.0, 3_000.0, 0.7)
        assert told["exclusive_ms"] == {"agent": 7_000.0, "tool": 3_000.0}

    def test_the_tree_shows_bars_and_holes(self, tmp_path: Path) -> None:
        lines = invoke("tree", "--timing", recorded(tmp_path)).output.splitlines()
        rows = [line for line in lines if "agent invoke" in line or "untraced, " in line or "tool search" in line]
        assert ["untraced" in row for row in rows] == [False, True, False, True]
        assert [row.count("━") + row.count("┅") for row in rows] == [25, 3, 8, 15]
        assert max(map(len, lines)) <= 80

    def test_the_tree_as_json(self, tmp_path: Path) -> None:
        told = json.loads(invoke("tree", "--timing", "--format", "json", recorded(tmp_path)).output)
        assert [one["exclusive_ns"] for one in told["spans"]] == [7 * SECOND, 3 * SECOND]
        assert [(hole["start_ms"], hole["end_ms"]) for hole in told["timing"]["holes"]] == [
            (0.0, 1_000.0),
            (4_000.0, 10_000.0),
        ]

    def test_a_tree_of_ten_thousand_spans_is_drawn(self, tmp_path: Path) -> None:
        root = span("agent", "invoke_agent helper", end=10_000.0, attributes=AGENT)
        tools = [span("tool", parent=root, start=at, end=at + 0.5, attributes=TOOL) for at in range(10_000)]
        archive.write_otlp(tmp_path / "wide.jsonl", [root, *tools])
        said = invoke("tree", "--timing", str(tmp_path / "wide.jsonl")).output
        assert "and 9,990 shorter holes" in said
        assert len(said.splitlines()) < 10_100

    def test_a_baseline_holds_its_runs(self, tmp_path: Path) -> None:
        healthy, file = recorded(tmp_path), str(tmp_path / "timing.toml")
        written = invoke("check", "--timing-baseline", file, "--update-timing-baseline", healthy)
        assert (written.exit_code, Path(file).exists()) == (0, True)
        assert invoke("check", "--timing-baseline", file, healthy).exit_code == 0
        slow = invoke("check", "--timing-baseline", file, recorded(tmp_path / "slow", end=9.0))
        assert slow.exit_code == 1
        assert "over  tool takes 8,000.0 ms of its own, more than 3,755.0 (baseline 3,000.0)" in slow.output
        idle = invoke("check", "--timing-baseline", file, recorded(tmp_path / "idle", end=1.1))
        assert "over  99.0% untraced, more than 89.5% (baseline 70.0%)" in idle.output

    def test_a_baseline_says_what_it_lacks_and_has_too_much(self, tmp_path: Path) -> None:
        file = tmp_path / "timing.toml"
        file.write_text('[runs."other *"]\nuntraced_fraction = 0.1\n', encoding="utf-8")
        said = invoke("check", "--timing-baseline", str(file), recorded(tmp_path))
        assert said.exit_code == 1
        assert "no baseline for runs named invoke_agent helper" in said.stderr
        assert "no run for the baseline of other *" in said.stderr

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[run]\n", "run: no such key; there are tolerance, runs"),
            ("[runs.a]\nuntraced = 1\n", 'runs."a".untraced: no such key; there are untraced_fraction, exclusive_ms'),
            ('[runs.a]\nuntraced_fraction = "x"\n', 'runs."a".untraced_fraction: is "x"; it should be a number'),
            ("tolerance = true\n", "tolerance: is true; it should be a number"),
            ("[runs\n", "is not TOML"),
        ],
    )
    def test_a_wrong_baseline_names_the_key(self, tmp_path: Path, text: str, said: str) -> None:
        file = tmp_path / "timing.toml"
        file.write_text(text, encoding="utf-8")
        done = invoke("check", "--timing-baseline", str(file), recorded(tmp_path))
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr

    def test_a_baseline_that_is_not_there(self, tmp_path: Path) -> None:
        done = invoke("check", "--timing-baseline", str(tmp_path / "nope"), recorded(tmp_path))
        assert (done.exit_code, "cannot be read" in done.stderr) == (2, True)
        assert invoke("check", "--update-timing-baseline", recorded(tmp_path)).exit_code == 2

    def test_a_refused_run_is_no_baseline(self, tmp_path: Path) -> None:
        root = span("agent", "invoke_agent helper", end=10.0, attributes=AGENT)
        lost = replace(span("tool", parent=root, attributes=TOOL), parent_id=99)
        archive.write_otlp(tmp_path / "bad.jsonl", [root, lost])
        file = tmp_path / "timing.toml"
        invoke("check", "--timing-baseline", str(file), "--update-timing-baseline", str(tmp_path / "bad.jsonl"))
        assert "runs." not in file.read_text(encoding="utf-8")
