"""A model server for tests: real HTTP on 127.0.0.1 that speaks as models do, and answers from a script.

It speaks OpenAI's chat completions and, where a client asks for these, OpenAI's responses and Anthropic's messages.

A script maps a model's name to its answers, which are given in the order of the requests for that model; runs that go
on side by side use a model each. Every answer is made by one of four words::

    server = ModelServer(
        {
            "model-a": [
                calls(call("look_up", city="Paris"), call("look_up", city="Rome")),  # one turn, two parallel tool calls
                fails(429, retry_after_s=0),  # then the same request again
                says("It rains in both."),
            ],
            "model-b": [says("too late", after_s=60)],  # for timeouts: closing the server cuts the wait short
            "model-c": [says("one two", cut_after=3)],  # the connection closes in the middle of the answer
            "model-d": [says("one two", usage=None)],  # no usage, streaming or not
        }
    )

    with server:
        client = OpenAI(base_url=server.url, api_key="-", max_retries=0)

Nothing else is random or depends on time: the n-th answer (from 0) for ``model-a`` has the response id
``chatcmpl-model-a-n`` and the call ids ``call-model-a-n-0`` and so on. A stream is sent as one chunk for the role, one
for each word or two for each tool call (its name, then its arguments), one for the finish reason, and, if the request's
``stream_options.include_usage`` asks for it, one for the usage. A request beyond the script is answered with 400.
``server.requests`` holds the bodies of all requests.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from tests.model_apis import message_body, message_events, response_body, response_events

CREATED = 1_700_000_000
Said = TypeVar("Said")


class Usage(NamedTuple):
    """Tokens of one answer; ``cached`` is part of the input and ``reasoning`` part of the output."""

    input: int
    output: int
    cached: int = 0
    reasoning: int = 0

    def body(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.input,
            "completion_tokens": self.output,
            "total_tokens": self.input + self.output,
            "prompt_tokens_details": {"cached_tokens": self.cached},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning},
        }

    def response_body(self) -> dict[str, Any]:
        return {
            "input_tokens": self.input,
            "output_tokens": self.output,
            "total_tokens": self.input + self.output,
            "input_tokens_details": {"cached_tokens": self.cached},
            "output_tokens_details": {"reasoning_tokens": self.reasoning},
        }


USAGE = Usage(100, 20)
"""What an answer uses unless the script says otherwise."""


@dataclass(frozen=True)
class Call:
    """A tool call that the model asks for. ``call_id`` None: numbered by the server."""

    name: str
    arguments: Mapping[str, Any]
    call_id: str | None = None


@dataclass(frozen=True)
class Answer:
    """One answer. Made by :func:`says`, :func:`calls` and :func:`fails`.

    Attributes:
        text: What the model says.
        calls: The tool calls that it asks for.
        status: An HTTP status; other than 200 the answer is an error.
        retry_after_s: The header Retry-After of an error.
        usage: None: the answer does not say what it used.
        after_s: Seconds before the answer begins.
        cut_after: The connection is closed after so many chunks of a stream, or in the middle of a plain answer.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = HTTPStatus.OK
    retry_after_s: float | None = None
    usage: Usage | None = USAGE
    after_s: float = 0.0
    cut_after: int | None = None


def says(text: str, **settings: Any) -> Answer:
    """Make an answer of plain text."""
    return Answer(text=text, **settings)


def calls(*wanted: Call, **settings: Any) -> Answer:
    """Make an answer that asks for tools, in parallel if for several."""
    return Answer(calls=wanted, **settings)


def fails(status: int, **settings: Any) -> Answer:
    """Make an error."""
    return Answer(status=status, **settings)


def call(name: str, call_id: str | None = None, **arguments: Any) -> Call:
    """Make a tool call for :func:`calls`."""
    return Call(name, arguments, call_id)


class ModelServer:
    """Serves a script from a thread while it is entered as a context manager."""

    def __init__(self, script: Mapping[str, Sequence[Answer]]) -> None:
        self._answers = {model: iter(tuple(enumerate(answers))) for model, answers in script.items()}
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _HTTPServer(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="model-server")
        self.requests: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        """The base URL for clients."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def take(self, request: dict[str, Any]) -> Reply | None:
        """Take the next answer for a request; None if the script has no more."""
        with self._lock:
            self.requests.append(request)
            number, answer = next(self._answers.get(request["model"], iter(())), (0, None))
        return None if answer is None else Reply(answer, str(request["model"]), number)

    def wait(self, seconds: float) -> None:
        """Wait, but no longer than the server lives."""
        self._closing.wait(seconds)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _HTTPServer(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for every answer's thread

    def __init__(self, script: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that lose patience: they are what the tests are about."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@dataclass(frozen=True)
class Reply:
    """An answer with what makes its ids."""

    answer: Answer
    model: str
    number: int
    created: int = CREATED

    @property
    def _finish_reason(self) -> str:
        return "tool_calls" if self.answer.calls else "stop"

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.model}-{self.number}",
            "object": kind,
            "created": self.created,
            "model": f"{self.model}-2026",
        }

    def tool_calls(self) -> Iterator[dict[str, Any]]:
        for place, wanted in enumerate(self.answer.calls):
            yield {
                "id": wanted.call_id or f"call-{self.model}-{self.number}-{place}",
                "type": "function",
                "function": {"name": wanted.name, "arguments": json.dumps(wanted.arguments)},
            }

    def body(self) -> dict[str, Any]:
        """Return the answer to a request that does not stream."""
        if self.answer.status != HTTPStatus.OK:
            return {"error": {"message": f"scripted {self.answer.status}", "type": "server_error", "code": None}}
        message: dict[str, Any] = {"role": "assistant", "content": self.answer.text or None}
        if self.answer.calls:
            message["tool_calls"] = list(self.tool_calls())
        choice = {"index": 0, "message": message, "finish_reason": self._finish_reason, "logprobs": None}
        usage = {} if self.answer.usage is None else {"usage": self.answer.usage.body()}
        return {**self._head("chat.completion"), "choices": [choice], **usage}

    def chunks(self, *, include_usage: bool) -> Iterator[dict[str, Any]]:
        """Return the answer as the chunks of a stream."""
        yield self._chunk({"role": "assistant", "content": "" if self.answer.text else None})
        for word in self.answer.text.split():
            yield self._chunk({"content": word + " "})
        for place, wanted in enumerate(self.tool_calls()):
            function = wanted["function"]
            name_only = {**wanted, "function": {"name": function["name"], "arguments": ""}}
            yield self._chunk({"tool_calls": [{"index": place, **name_only}]})
            yield self._chunk({"tool_calls": [{"index": place, "function": {"arguments": function["arguments"]}}]})
        yield self._chunk({}, self._finish_reason)
        if include_usage and self.answer.usage is not None:
            yield {**self._head("chat.completion.chunk"), "choices": [], "usage": self.answer.usage.body()}

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return {**self._head("chat.completion.chunk"), "choices": [choice]}


class _Handler(BaseHTTPRequestHandler):
    server: _HTTPServer
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_POST(self) -> None:
        script = self.server.script
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = script.take(request)
        if reply is None:
            self._send_json(
                HTTPStatus.BAD_REQUEST, {"error": {"message": f"the script of {request['model']!r} is over"}}
            )
            return
        script.wait(reply.answer.after_s)
        if request.get("stream") and reply.answer.status == HTTPStatus.OK:
            self._send_stream(self._events(reply, request), reply.answer)
        else:
            body = self._other(reply, response_body, message_body) if reply.answer.status == HTTPStatus.OK else None
            self._send_json(reply.answer.status, body or reply.body(), reply.answer)

    def _other(self, reply: Reply, response: Callable[[Reply], Said], message: Callable[[Reply], Said]) -> Said | None:
        """Say an answer in the words of the API that was asked, None for chat completions."""
        if self.path.endswith("/responses"):
            return response(reply)
        return message(reply) if self.path.endswith("/messages") else None

    def _events(self, reply: Reply, request: Mapping[str, Any]) -> Iterator[str]:
        """Return the answer as the events of a stream, as they are written."""
        other = self._other(reply, response_events, message_events)
        if other is not None:
            return (f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in other)
        options = request.get("stream_options") or {}
        chunks = reply.chunks(include_usage=bool(options.get("include_usage")))
        return (f"data: {text}\n\n" for text in [*map(json.dumps, chunks), "[DONE]"])

    def _send_json(self, status: int, body: dict[str, Any], answer: Answer | None = None) -> None:
        payload = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Content-Length": str(len(payload))}
        if answer is not None and answer.retry_after_s is not None:
            headers["Retry-After"] = str(answer.retry_after_s)
        self._send_head(status, headers)
        is_cut = answer is not None and answer.cut_after is not None
        self.wfile.write(payload[: len(payload) // 2] if is_cut else payload)

    def _send_stream(self, events: Iterator[str], answer: Answer) -> None:
        self._send_head(HTTPStatus.OK, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        for event in islice(events, answer.cut_after):
            self._send_chunk(event.encode())
        if answer.cut_after is None:
            self._send_chunk(b"")

    def _send_chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing: the tests' output is theirs."""
