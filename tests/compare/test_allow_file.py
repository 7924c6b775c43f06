"""An allow file says what may change, why and until when; what it cannot mean is an error that names the place."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from spangate._allow_file import load_allow_file, parse_allow_file
from spangate._errors import PolicyError
from spangate.compare import Allowance, Rules

FULL = """\
coarse = ["search"]
volatile = ["seed"]
redact = ["code_word"]
normalise = ["uuid", "v[0-9]+"]
logs = true

added = ["retrieve", { name = "search", reason = "one more source", expires = 2027-03-31 }]
drift = [{ name = "plan", key = "query" }]
edge_dropped = [{ name = "invoke_agent cook > *" }]

[[dropped]]
name = "lookup"
reason = "the cache answers now"
"""


def test_it_says_what_is_compared_and_what_is_allowed() -> None:
    rules, allowed = parse_allow_file(FULL, "allow.toml")
    assert rules == Rules(
        coarse=("search",), volatile=("seed",), redact=("code_word",), normalise=("uuid", "v[0-9]+"), logs=True
    )
    assert [replace(entry, source="") for entry in allowed] == [
        Allowance(kind="added", name="retrieve"),
        Allowance(kind="added", name="search", reason="one more source", expires=date(2027, 3, 31)),
        Allowance(kind="dropped", name="lookup", reason="the cache answers now"),
        Allowance(kind="drift", name="plan", key="query"),
        Allowance(kind="edge_dropped", name="invoke_agent cook > *"),
    ]
    lines = {entry.name: entry.source for entry in allowed}
    assert (lines["retrieve"], lines["lookup"], lines["plan"]) == ("allow.toml:7", "allow.toml:12", "allow.toml:8")
    assert lines["search"] == "allow.toml", "it stands in two lines"


def test_an_empty_file_changes_no_rule_and_allows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "allow.toml"
    path.write_text("")
    assert load_allow_file(path) == (Rules(), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('coarse = []\nadd = ["x"]', "allow.toml:2: add: no such key; did you mean added?"),
        ('drift = [{ name = "x", keys = "q" }]', "allow.toml:1: drift[1].keys: no such key; did you mean key?"),
        (
            '[[drift]]\nname = "x"\n[[drift]]\nnmae = "y"',
            "allow.toml:4: drift[2].nmae: no such key; did you mean name?",
        ),
        ('[[added]]\nreason = "none"', "allow.toml:1: added[1]: needs a name"),
        ('added = [{ name = "x", key = "q" }]', "allow.toml:1: added[1].key: only a drift has keys"),
        ('added = "retrieve"', 'allow.toml:1: added: is "retrieve"; it should be a list of names and tables'),
        ("added = [1]", "allow.toml:1: added[1]: is 1; it should be a name or a table with a name"),
        (
            'added = [{ name = "x", expires = "2027-01-01" }]',
            'allow.toml:1: added[1].expires: is "2027-01-01"; it should be a date without quotes, as 2027-03-31',
        ),
        ("coarse = [1]", "allow.toml:1: coarse: is [1]; it should be a list, each item a text"),
        ("logs = 1", "allow.toml:1: logs: is 1; it should be true or false"),
        ('normalise = ["("]', "allow.toml:1: normalise: '(' is no regular expression: missing ), "),
        ("added = [", "allow.toml: is not TOML: "),
    ],
)
def test_what_it_cannot_mean_is_an_error_that_names_the_place(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_allow_file(text, "allow.toml")
    assert str(caught.value).startswith(message)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"gone\.toml: cannot be read: No such file"):
        load_allow_file(tmp_path / "gone.toml")
    (tmp_path / "latin.toml").write_bytes(b'added = ["\xe9"]')
    with pytest.raises(PolicyError, match=r"latin\.toml: is not UTF-8"):
        load_allow_file(tmp_path / "latin.toml")
