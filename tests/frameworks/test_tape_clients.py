"""The clients of OpenAI and Anthropic, unchanged, through a tape: recorded against a server, replayed without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest

from spangate import tape
from spangate.tape import ReplayMiss
from tests.frameworks.clients import NO_TLS
from tests.model_server import Answer, ModelServer, call, calls, fails, says

QUESTION: Any = [{"role": "user", "content": "Is it raining?"}]
SCRIPT: Mapping[str, Sequence[Answer]] = {"m": [says("Yes, and hard."), says("No."), calls(call("look", city="Paris"))]}


def openai_chat(client: Any) -> Iterator[Any]:
    yield client.chat.completions.create(model="m", messages=QUESTION)


def openai_chat_stream(client: Any) -> Iterator[Any]:
    yield from client.chat.completions.create(model="m", messages=QUESTION, stream=True)


def openai_responses(client: Any) -> Iterator[Any]:
    yield client.responses.create(model="m", input="Is it raining?")


def openai_responses_stream(client: Any) -> Iterator[Any]:
    yield from client.responses.create(model="m", input="Is it raining?", stream=True)


def anthropic_messages(client: Any) -> Iterator[Any]:
    yield client.messages.create(model="m", max_tokens=9, messages=QUESTION)


def anthropic_messages_stream(client: Any) -> Iterator[Any]:
    yield from client.messages.create(model="m", max_tokens=9, messages=QUESTION, stream=True)


OF_OPENAI = [openai_chat, openai_chat_stream, openai_responses, openai_responses_stream]
OF_ANTHROPIC = [anthropic_messages, anthropic_messages_stream]


@contextmanager
def openai_client(url: str, one: tape.Tape, **settings: Any) -> Iterator[openai.OpenAI]:
    inner = httpx2.HTTPTransport(verify=NO_TLS)
    with httpx2.Client(transport=tape.httpx2_transport(one, inner)) as transport:
        yield openai.OpenAI(base_url=url, api_key="sk-secret-4242", http_client=transport, **settings)


@contextmanager
def anthropic_client(url: str, one: tape.Tape) -> Iterator[anthropic.Anthropic]:
    kind = httpx2 if issubclass(anthropic.DefaultHttpxClient, httpx2.Client) else httpx
    make = tape.httpx2_transport if kind is httpx2 else tape.httpx_transport
    with kind.Client(transport=make(one, kind.HTTPTransport(verify=NO_TLS))) as transport:
        base = url.removesuffix("/v1")
        yield anthropic.Anthropic(base_url=base, api_key="sk-secret-4242", http_client=transport)


@pytest.mark.parametrize(
    ("client_of", "ask"),
    [*((openai_client, ask) for ask in OF_OPENAI), *((anthropic_client, ask) for ask in OF_ANTHROPIC)],
    ids=lambda one: one.__name__,
)
def test_a_client_is_replayed_object_by_object(
    client_of: Callable[..., Any], ask: Callable[[Any], Iterator[Any]], tmp_path: Path
) -> None:
    def everything(one: tape.Tape, url: str) -> list[Any]:
        with client_of(url, one) as client:
            return [found.model_dump() for _ in range(3) for found in ask(client)]

    path = tmp_path / "run.jsonl"
    with ModelServer(SCRIPT) as server, tape.record(path) as recording:
        url = server.url
        recorded = everything(recording, url)
    assert len(recorded) >= 3
    with tape.replay(path, left_over="raise") as replaying:
        assert everything(replaying, url) == recorded
    assert replaying.digest == recording.digest
    assert "sk-secret-4242" not in path.read_text()


def test_asynchronous_clients_too_side_by_side(tmp_path: Path) -> None:
    async def everything(one: tape.Tape, url: str) -> list[str]:
        inner = httpx2.AsyncHTTPTransport(verify=NO_TLS)
        async with httpx2.AsyncClient(transport=tape.httpx2_async_transport(one, inner)) as transport:
            client: Any = openai.AsyncOpenAI(base_url=url, api_key="-", http_client=transport)

            async def ask(city: str) -> str:
                question: Any = [{"role": "user", "content": f"Rain in {city}?"}]
                stream = await client.chat.completions.create(model=city, messages=question, stream=True)
                words = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
                return "".join(words).strip()

            return await asyncio.gather(*map(ask, ("a", "b", "c", "d")))

    path = tmp_path / "run.jsonl"
    with ModelServer({city: [says(f"In {city}, yes.")] for city in "abcd"}) as server, tape.record(path) as recording:
        url = server.url
        recorded = asyncio.run(everything(recording, url))
    assert recorded == [f"In {city}, yes." for city in "abcd"]
    for _ in range(10):
        with tape.replay(path, left_over="raise") as replaying:
            assert asyncio.run(everything(replaying, url)) == recorded
        assert replaying.digest == recording.digest


def test_threads_share_a_tape(tmp_path: Path) -> None:
    def everything(one: tape.Tape, url: str) -> list[Any]:
        with openai_client(url, one) as client, ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda city: answer_of(client, city), "abcd"))

    path = tmp_path / "run.jsonl"
    with ModelServer({city: [says(f"In {city}, yes.")] for city in "abcd"}) as server, tape.record(path) as recording:
        url = server.url
        recorded = everything(recording, url)
    with tape.replay(path, left_over="raise") as replaying:
        assert everything(replaying, url) == recorded


def answer_of(client: Any, model: str, text: str = "Is it raining?") -> Any:
    question: Any = [{"role": "user", "content": text}]
    return client.chat.completions.create(model=model, messages=question).choices[0].message.content


def test_a_stream_that_is_left_early_ends_there_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def first_two(one: tape.Tape, url: str) -> list[Any]:
        with openai_client(url, one) as client:
            stream = client.chat.completions.create(model="m", messages=QUESTION, stream=True)
            found = [next(stream).model_dump(), next(stream).model_dump()]
            stream.close()
            return found

    with ModelServer({"m": [says("one two three four five six")]}) as server, tape.record(path) as recording:
        url = server.url
        recorded = first_two(recording, url)
    (decision,) = tape.read_cassette(path).decisions
    assert decision.outcome.is_partial
    with tape.replay(path, left_over="raise") as replaying:
        assert first_two(replaying, url) == recorded


def test_each_attempt_of_a_client_is_a_decision(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    script = {"m": [fails(429, retry_after_s=0), fails(503, retry_after_s=0), says("at last")]}
    with ModelServer(script) as server, tape.record(path) as recording:
        url = server.url
        with openai_client(url, recording, max_retries=2) as client:
            assert answer_of(client, "m") == "at last"
    assert [one.outcome.value["status"] for one in tape.read_cassette(path).decisions] == [429, 503, 200]
    with tape.replay(path, left_over="raise") as replaying, openai_client(url, replaying, max_retries=2) as client:
        assert answer_of(client, "m") == "at last"


def test_an_error_of_the_connection_is_the_librarys_own_again(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with ModelServer({}) as server:
        url = server.url
    with (
        tape.record(path) as recording,
        openai_client(url, recording, max_retries=0) as client,
        pytest.raises(openai.APIConnectionError) as there,
    ):
        answer_of(client, "m")
    with (
        tape.replay(path, left_over="raise") as replaying,
        openai_client(url, replaying, max_retries=0) as client,
        pytest.raises(openai.APIConnectionError) as again,
    ):
        answer_of(client, "m")
    assert type(there.value.__cause__) is type(again.value.__cause__) is httpx2.ConnectError


class TestMisses:
    @pytest.fixture
    def recorded(self, tmp_path: Path) -> Path:
        path = tmp_path / "run.jsonl"
        with (
            ModelServer({"m": [says("a"), says("b"), says("c")]}) as server,
            tape.record(path) as recording,
            openai_client(server.url, recording) as client,
        ):
            for turn in range(3):
                answer_of(client, "m", f"turn {turn}")
        return path

    def ask_all(self, recorded: Path, *texts: str) -> None:
        url = "http://127.0.0.1:9/v1"
        with tape.replay(recorded, left_over="raise") as replaying, openai_client(url, replaying) as client:
            for text in texts:
                answer_of(client, "m", text)

    def test_reach_the_user_as_what_they_are(self, recorded: Path) -> None:
        """The client makes an error of its own of it, and does not try again."""
        with pytest.raises(ReplayMiss) as caught:
            self.ask_all(recorded, "turn 0", "turn 1", "edited")
        miss = caught.value
        assert (miss.agreed, miss.recorded) == (2, 3)
        assert miss.difference == "$.body.messages[0].content: 'turn 2' was recorded, 'edited' is here"
        assert isinstance(miss.__cause__, openai.BadRequestError)
        assert "2 of 3 decisions agreed" in str(miss.__cause__)

    def test_are_not_lost_where_somebody_swallows_errors(self, recorded: Path) -> None:
        with (
            pytest.raises(ReplayMiss, match="'edited' is here"),
            tape.replay(recorded, left_over="ignore") as replaying,
            openai_client("http://127.0.0.1:9/v1", replaying) as client,
            pytest.raises(openai.OpenAIError),
        ):
            answer_of(client, "m", "edited")


def test_every_client_at_once_and_none_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    before = httpx2.HTTPTransport.handle_request
    with (
        ModelServer({"m": [says("a"), says("b")]}) as server,
        openai.OpenAI(base_url=server.url, api_key="-", http_client=openai.DefaultHttpxClient(verify=NO_TLS)) as client,
    ):
        with tape.record(path) as recording, tape.patch_httpx(recording):
            assert answer_of(client, "m") == "a"
        assert httpx2.HTTPTransport.handle_request is before
        with tape.replay(path, left_over="raise") as replaying, tape.patch_httpx(replaying):
            assert answer_of(client, "m") == "a"
        assert answer_of(client, "m") == "b"
        assert len(server.requests) == 2


def test_what_does_not_match_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"

    def is_of_a_model(request: Any) -> bool:
        return not request.url.path.endswith("/chat/completions")

    with ModelServer({"m": [says("a"), says("b")]}) as server, httpx2.Client(verify=NO_TLS) as client:
        body = {"model": "m", "messages": QUESTION}
        with tape.record(path) as recording, tape.patch_httpx(recording, match=is_of_a_model):
            client.post(f"{server.url}/chat/completions", json=body)
        assert tape.read_cassette(path).decisions == []
        with tape.replay(path) as replaying, tape.patch_httpx(replaying, match=is_of_a_model):
            assert client.post(f"{server.url}/chat/completions", json=body).status_code == 200
