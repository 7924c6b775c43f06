"""The model server that other tests rely on: it says what its script says, in OpenAI's words."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from http import HTTPStatus
from http.client import HTTPConnection, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.model_server import Answer, ModelServer, Usage, call, calls, fails, says


def ask(server: ModelServer, **request: Any) -> tuple[int, dict[str, str], str]:
    """Send a request and return status, headers and body."""
    where = urlsplit(server.url)
    connection = HTTPConnection(where.hostname or "", where.port, timeout=5)
    try:
        connection.request("POST", f"{where.path}/chat/completions", json.dumps({"model": "m", **request}))
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[ModelServer]:
    with ModelServer({"m": request.param}) as server:
        yield server


def script(*answers: Answer) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("server", [answers], indirect=True, ids=["script"])


@script(calls(call("look_up", city="Paris"), call("look_up", "mine", city="Rome")), says("Rain.", usage=Usage(7, 3)))
def test_answers_are_given_in_order(server: ModelServer) -> None:
    asking, telling = (json.loads(ask(server)[2]) for _ in range(2))
    wanted = asking["choices"][0]["message"]["tool_calls"]
    assert [(one["id"], one["function"]["arguments"]) for one in wanted] == [
        ("call-m-0-0", '{"city": "Paris"}'),
        ("mine", '{"city": "Rome"}'),
    ]
    assert asking["choices"][0]["finish_reason"] == "tool_calls"
    assert telling["id"] == "chatcmpl-m-1"
    assert telling["choices"][0]["message"]["content"] == "Rain."
    assert (telling["usage"]["prompt_tokens"], telling["usage"]["completion_tokens"]) == (7, 3)


@script(says("once"))
def test_a_request_beyond_the_script_is_the_clients_fault(server: ModelServer) -> None:
    assert [ask(server)[0], ask(server)[0]] == [200, 400]
    assert [request["model"] for request in server.requests] == ["m", "m"]


@script(fails(429, retry_after_s=0.5))
def test_an_error_may_say_when_to_come_again(server: ModelServer) -> None:
    status, headers, _ = ask(server)
    assert (status, headers["Retry-After"]) == (429, "0.5")


@script(says("It rains.", usage=None))
def test_usage_may_be_kept_back(server: ModelServer) -> None:
    assert "usage" not in json.loads(ask(server)[2])


@pytest.mark.parametrize(("options", "usages"), [({}, 0), ({"stream_options": {"include_usage": True}}, 1)])
def test_a_stream_has_a_chunk_a_word_and_usage_if_asked(options: dict[str, Any], usages: int) -> None:
    with ModelServer({"m": [says("It rains.")]}) as server:
        lines = ask(server, stream=True, **options)[2].split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]
    assert [choice["delta"].get("content") for chunk in chunks for choice in chunk["choices"]] == [
        "",
        "It ",
        "rains. ",
        None,
    ]
    assert sum("usage" in chunk for chunk in chunks) == usages


@script(says("It rains.", cut_after=1), says("It rains.", cut_after=1))
def test_a_cut_answer_ends_too_soon(server: ModelServer) -> None:
    for streams in (True, False):
        with pytest.raises(IncompleteRead):
            ask(server, stream=streams)


def test_closing_cuts_a_slow_answer_short() -> None:
    with ModelServer({"m": [says("late", after_s=60)]}) as server:
        where = urlsplit(server.url)
        connection = HTTPConnection(where.hostname or "", where.port, timeout=5)
        connection.request("POST", "/", json.dumps({"model": "m"}))
        while not server.requests:  # a connection that nobody has accepted yet would be refused
            time.sleep(0.001)
    assert connection.getresponse().status == HTTPStatus.OK
    connection.close()
