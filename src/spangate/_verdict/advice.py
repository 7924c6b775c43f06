"""What each finding means and what to do about it, in words for the person whose run was refused."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final, NamedTuple


class Advice(NamedTuple):
    """What a code says about the run, and what to do."""

    meaning: str
    do: str


ADVICE: Final = MappingProxyType[str, Advice](
    {
        "completeness.open_span": Advice(
            "a span was started and never ended",
            "End it in a with block or a finally; close abandoned streams and generators. If it only ends late, raise"
            " grace_s.",
        ),
        "completeness.root_open": Advice(
            "the run was decided before its root span ended",
            "End the root before the program shuts down; if a bound on idle time, age or memory was reached, raise it.",
        ),
        "completeness.cited_tool_missing": Advice(
            "a model call received the result of a tool, and no span shows that the tool ran",
            "Instrument the tool or open a span around it; in another thread or process it needs the run's context.",
        ),
        "completeness.call_lost": Advice(
            "the model asked for more calls than were run or answered",
            "Look at what dispatches parallel calls: one of them got lost on the way.",
        ),
        "completeness.unrecovered_error": Advice(
            "something failed, and nothing above it says so",
            "Set the root's status to ERROR when the run fails; a failure that is handled is followed by a model call.",
        ),
        "completeness.recovered_error": Advice(
            "something failed and the run went on",
            "Nothing, if retrying is meant.",
        ),
        "completeness.control_flow_error": Advice(
            "an exception that only steers the framework",
            "Nothing: interrupts, hand-offs and requested retries are no faults.",
        ),
        "completeness.cancelled": Advice(
            "work was cancelled or a stream abandoned",
            "Nothing, if that is meant.",
        ),
        "completeness.outlived_root": Advice(
            "a span ended after the root",
            "Await what runs in the background before the root ends.",
        ),
        "forest.multiple_roots": Advice(
            "the run has a second root",
            "Start the span in the context of the run; threads and executors do not take it along by themselves.",
        ),
        "forest.multiple_trace_ids": Advice(
            "the run's spans lie in several traces",
            "Somewhere the context was lost or replaced: hand it on to threads, executors and child processes.",
        ),
        "forest.missing_parent": Advice(
            "a span's parent never started here",
            "Often there is a second tracer provider, or the gate was added after the parent had started: keep one"
            " provider and add the gate first.",
        ),
        "forest.late_child": Advice(
            "a span started after its parent had ended",
            "An old span stayed current, as after a generator that was closed in another task: detach each context"
            " where it was attached.",
        ),
        "forest.stray_root": Advice(
            "a part of the run started without the run's context",
            "Run it with contextvars.copy_context().run(...) in its worker thread, or attach the context there; a"
            " program of its own continues TRACEPARENT (attach_parent() in Python).",
        ),
        "forest.stray_generation": Advice(
            "a model call beside the run may belong to it",
            "If it does, start it in the run's context; its tokens are not counted here.",
        ),
        "forest.parent_outside_run": Advice(
            "a span hangs from one outside the run that it belongs to",
            "A program inherited the context around the run: put the tool's own TRACEPARENT in its environment.",
        ),
        "forest.duplicate_span_id": Advice(
            "two spans have one id",
            "Two processes draw the same random numbers: do not seed them, and reseed after a fork.",
        ),
        "forest.parent_cycle": Advice(
            "spans are each other's parents",
            "No SDK writes this: look at what made or changed the ids.",
        ),
        "forest.foreign_parent": Advice(
            "the run hangs from a span of another tracer provider",
            "Use one provider for both, or the top of the tree is missing in the backend.",
        ),
        "forest.parent_unsampled": Advice(
            "a span's parent was not sampled",
            "Sample runs as a whole (a parent-based sampler); until then the sums are lower bounds.",
        ),
        "forest.after_entry": Advice(
            "an agent started after its request was answered",
            "Nothing, if a background task is meant; else await it before you answer.",
        ),
        "budget.ceiling": Advice(
            "the run used more than it may",
            "Stop such runs earlier, or raise the ceiling.",
        ),
        "budget.usage_missing": Advice(
            "a model call recorded no token usage",
            'Ask for it: streams need stream_options={"include_usage": True} or the like.',
        ),
        "budget.usage_negative": Advice(
            "a token count is negative",
            "The instrumentation wrote it: update it, or drop the attribute.",
        ),
        "budget.usage_nonfinite": Advice(
            "a token count is infinite or not a number",
            "The instrumentation wrote it: update it, or drop the attribute.",
        ),
        "budget.usage_invalid": Advice(
            "a token count is no number at all",
            "The instrumentation wrote it: update it, or drop the attribute.",
        ),
        "budget.usage_coerced": Advice(
            "a token count was written as text or with a point",
            "It was counted as the whole number that it means; a newer instrumentation may write numbers.",
        ),
        "budget.suspicious_zero": Advice(
            "a count of zero where something was used",
            "The provider or a proxy before it reports no usage; the sum is too low.",
        ),
        "budget.rollup_mismatch": Advice(
            "a total on a span is not the sum of the calls below it",
            "A call has no span or is there twice: compare the calls with the total.",
        ),
        "budget.root_usage": Advice(
            "the root has a token count of its own",
            "Leave the counts to the model calls.",
        ),
        "budget.double_instrumentation": Advice(
            "two instrumentations recorded the same call",
            "It was counted once; switch one of them off.",
        ),
        "budget.replayed_response": Advice(
            "one answer of the model appears twice",
            "It was counted once; a cache or a repeated span explains it.",
        ),
        "budget.payload_missing": Advice(
            "a tool recorded no result to measure",
            "Switch content capture on for it, or set tool_payload_bytes on its span.",
        ),
        "budget.lower_bound": Advice(
            "the sum is a floor: some calls cannot be counted",
            "A call that failed has no usage, and one that was not sampled was not seen.",
        ),
        "exits.leak": Advice(
            "a program ran, and no span tells of it",
            "Start it where a span of the run is current, and sample the whole run.",
        ),
        "exits.orphan": Advice(
            "a span claims a program that nobody saw end",
            "Start programs through spangate.process or call its instrument(); do not write such spans by hand.",
        ),
        "exits.status_mismatch": Advice(
            "a span tells the end of its program otherwise than its exit code does",
            "Let the exit code decide the status: 0 is ok, anything else an error.",
        ),
        "exits.duplicate_invocation": Advice(
            "one invocation id stands for several programs",
            "Each start needs an id of its own; a retry names the earlier one in spangate.parent_invocation_id.",
        ),
        "exits.ceiling": Advice(
            "the run started more programs than it may, or more of them failed",
            "Look at what the agent repeats, or raise max_exits or max_error_exits.",
        ),
        "exits.tool_disagrees": Advice(
            "a tool that did not fail ran a program that did",
            "Nothing, if the tool reads the exit code; otherwise have it report the failure to the model and the span.",
        ),
        "exits.unwatched_spawn": Advice(
            "a program was started in a way that nobody watches",
            "Use subprocess, asyncio or spangate.process; what os.posix_spawn or pty start leaves no exit here.",
        ),
        "worktree.ghost": Advice(
            "a file of the working tree changed, and no closed span says so",
            "Write it through spangate.files, name its tool in writers, or declare it: outputs of a tool, or allow.",
        ),
        "worktree.phantom": Advice(
            "a span says it changed a file, and nothing has changed there",
            "Record the hash of what is on disk after the write, not of what was meant to be written.",
        ),
        "worktree.hash_mismatch": Advice(
            "a file holds something else than the last span left there",
            "Something wrote after it: give that a span too, or have a formatter's tool declare its outputs.",
        ),
        "worktree.no_mutation": Advice(
            "the run was to change something, and no span of it has",
            "Look at what the agent did instead; without require_mutation such a run passes.",
        ),
        "halt.missing": Advice(
            "a loop ended, and nothing says why",
            "Call run.halt(...) with the reason before the run is left, also where the loop is left by break.",
        ),
        "halt.unknown_reason": Advice(
            "a loop halted for a reason that is none, or for two",
            "Halt once, with done, budget_exhausted, tool_error, span_open, schema_drift, timeout or cancelled.",
        ),
        "halt.open_iteration": Advice(
            "a loop went on, or halted, with an iteration still open",
            "Close what is open in an iteration before the next: leave with blocks, join threads, await tasks.",
        ),
        "halt.iteration_gap": Advice(
            "an iteration is missing, or its number is wrong",
            "Look at what numbers the iterations: one has left no span, or was counted twice.",
        ),
        "halt.schema_drift": Advice(
            "a tool had another schema later in the loop",
            "Offer one schema for as long as a run goes on; give a changed tool another name.",
        ),
        "halt.over_budget": Advice(
            "a loop took more iterations than it may",
            "Look at why it did not halt; raise max_iters if it may take so many.",
        ),
        "retries.repeated_failure": Advice(
            "a call that failed was made again, and nothing had changed",
            "Have the agent change something first: RetryLedger.guard blocks such calls, exempt allows those that are"
            " meant.",
        ),
        "fingerprints.missing_model": Advice(
            "a model call does not say which model was asked for, so the run compares with no other",
            "Name the model in the request, or pin it: model_from_config, or AGENT_MODEL_ID in the environment.",
        ),
        "fingerprints.missing_prompt": Advice(
            "what a model call was asked is not known, so the run compares with no other",
            "Switch the completion hook or spangate.wire on (content stays where it is), or say it with"
            " spangate.generation.",
        ),
        "fingerprints.no_generations": Advice(
            "an agent ran, and no model call of it is in the trace",
            "Instrument the client of the model, too; some frameworks record agents alone.",
        ),
        "fingerprints.model_from_config": Advice(
            "the model was taken from the configuration: it is declared, not observed",
            "Nothing, if the pin is true; else have the request name its model.",
        ),
        "causality.cycle": Advice(
            "spans are declared to cause each other",
            "Look at caused_by of the spans that are named: a cause is what came first, and never a span's own child.",
        ),
        "causality.missing_cause": Advice(
            "a cause is named that is no span of the run",
            "Write the id of a span of the same run, 16 hex digits; see that the cause is recorded and sampled.",
        ),
        "causality.tool_without_prompt": Advice(
            "a tool ran that neither a prompt nor a retry asked for",
            "Name the model call that asked for it in caused_by.",
        ),
        "causality.retry_without_origin": Advice(
            "a retry does not say what it repeats",
            "Name the prompt or the tool that it replaces in caused_by.",
        ),
        "causality.summary_incomplete": Advice(
            "a summary leaves out a prompt that went into it",
            "Name every prompt that leads to it in caused_by, or the summary that has summed it up.",
        ),
        "causality.unordered_writers": Advice(
            "two calls wrote the same path, and nothing says which came first",
            "Name the first among the causes of the second, or both in commutative if the order does not matter.",
        ),
        "cardinality.span_bytes": Advice(
            "a span is larger than receivers take",
            "Record less on it, or switch content capture off there.",
        ),
        "cardinality.run_bytes": Advice(
            "the spans of the run weigh more than was declared",
            "Record less on them, raise max_run_bytes, or divide the work into several runs.",
        ),
        "cardinality.fan_out": Advice(
            "more children were open at once under one span than was declared",
            "Start fewer at a time, say with a semaphore, or raise max_open_children.",
        ),
        "cardinality.missing_result": Advice(
            "a call was recorded without what came of it",
            "Record its result before its span ends, or do not require results.",
        ),
        "cardinality.attributes_dropped": Advice(
            "the limits of the SDK threw evidence away",
            "Raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT (events and links have their own), or record less.",
        ),
        "timing.untraced": Advice(
            "more of the run's time than allowed is covered by no model call, tool or program",
            "Open spans around what runs in the holes, which spangate tree --timing shows, or allow for it.",
        ),
        "timing.no_tool_time": Advice(
            "the run was meant to spend time in tools, and did not",
            "Look at why no tool ran; a tool whose time is all its children's needs none of its own.",
        ),
        "timing.ambiguous_parent": Advice(
            "one span was recorded below two parents",
            "Record a span once; two exporters of one program must not rewrite the parents of its spans.",
        ),
        "timing.inverted_span": Advice(
            "a span ends before it starts",
            "Take its start and end from the same clock, in nanoseconds since the epoch.",
        ),
        "gate.error": Advice(
            "a gate broke while it looked at the run",
            "Mend the gate; until then the run is not believed.",
        ),
        "gate.not_evaluable": Advice(
            "a required gate had no evidence to judge",
            "Record what it names, or do not require it.",
        ),
        "logs.orphan_record": Advice(
            "a log record of the run names none of its spans",
            "It was emitted where the run's context was lost, or in a span of another provider: hand the context on.",
        ),
        "logs.after_close": Advice(
            "a log record came when the span that it names had ended",
            "Something went on after its span was closed: end the span when its work is done, not before.",
        ),
        "receiver.refused": Advice(
            "a program of the run sent spans that the receiver did not take, so they are missing",
            "Raise the bound that is named (Receiver), or have the program send less at once.",
        ),
        "buffer.overflow": Advice(
            "the run outgrew what may be held",
            "Raise max_held_bytes, max_run_spans or max_run_age_s, or end runs earlier.",
        ),
        "context.traceparent_invalid": Advice(
            "the TRACEPARENT that the program inherited is malformed",
            "It was ignored; look at what sets it: two, 32, 16 and two hex digits with hyphens between them.",
        ),
        "encoding.truncated_json": Advice(
            "recorded JSON was cut off",
            "Raise OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT or record less: what was cut proves nothing.",
        ),
        "encoding.lone_surrogate": Advice(
            "a text holds half a character",
            "Cut texts between characters, not inside an emoji.",
        ),
        "export.duplicate_span": Advice(
            "a span was handed over twice",
            "It was exported once; look for a second end() or a second processor chain.",
        ),
        "export.unsampled_run": Advice(
            "the run was recorded and not sampled",
            "Nothing was exported, not even this verdict; sample what is to be seen.",
        ),
        "export.partial": Advice(
            "the exporter refused a part of the run",
            "The log of the exporter says why; the backend holds a run without its root.",
        ),
    }
)
"""Advice by code. A user's own codes have none."""
