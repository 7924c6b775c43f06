"""Record a run once, and replay it without a model and without tools; ``--broken`` edits the prompt before the replay.

A decision that was not recorded is told with how far the run agreed, and where it first differs.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

from spangate import tape


def model(messages: list[dict[str, str]]) -> dict[str, str]:
    """Stand in for a model: it asks for the weather, then says it."""
    if messages[-1]["role"] == "tool":
        return {"text": f"It is {messages[-1]['content']}."}
    return {"tool": "weather", "city": "Paris"}


def weather(city: str) -> str:
    return {"Paris": "sunny"}.get(city, "grey")


def agent(recorder: tape.Tape, prompt: str) -> str:
    """Ask the model until it answers; every decision goes through the tape."""
    look_up = recorder.tool(weather)
    messages = [{"role": "user", "content": prompt}]
    while True:
        answer = recorder.call("llm", {"model": "small", "messages": messages}, partial(model, messages))
        if "text" in answer:
            return answer["text"]
        messages = [*messages, {"role": "tool", "content": look_up(answer["city"])}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broken", action="store_true", help="edit the prompt between recording and replay")
    broken = parser.parse_args().broken
    prompt = "What is the weather in Paris?"
    with tempfile.TemporaryDirectory() as folder:
        cassette = Path(folder) / "weather.jsonl"
        with tape.record(cassette) as recording:
            print("recorded:", agent(recording, prompt))
        try:
            with tape.replay(cassette, commit="ignore", left_over="raise") as replaying:
                print("replayed:", agent(replaying, "How is Paris?" if broken else prompt))
        except tape.ReplayMiss as miss:
            print(f"missed: {miss}")
        else:
            print("the same digest:", replaying.digest == recording.digest)


if __name__ == "__main__":
    main()
