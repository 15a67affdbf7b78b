"""Traces arrive at a real OTLP receiver, and no run suffers when they do not."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podium.app.app import Podium
from podium.config.configuration import load_configuration
from podium.core.decisions import Usage
from podium.core.errors import ToolMissing, UserMustAct
from podium.core.events import (
    AgentAsked,
    AgentReplied,
    Event,
    ModelAnswered,
    RunNeededHuman,
    RunSucceeded,
    StepCompleted,
    StepStarted,
    ToolCompleted,
    ToolRequested,
)
from podium.core.turns import ModelAnswer
from podium.core.work import QueueSpec, Run, RunStatus
from podium.engine import FlowDefinition
from podium.ports import FlowContext, StepContext
from podium.telemetry import span_outbox
from podium.telemetry.event_feed import HostedRun
from podium.telemetry.span_model import FinishedSpan, span_ref_of, trace_of
from podium.telemetry.trace_export import TraceExport, endpoint_for_people, traces_endpoint
from podium.testing import MemoryStore, retry_until
from tests.integration.wiring.otlp_receiver import Receiver, attributes, receiving
from tests.unit.journal.hosted_harness import ME, HostedHarness

SECRET = "hunter2-the-secret"
PATH_KEY = "key-of-a-vendor"
ON = {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
QUEUE = QueueSpec(name="default")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


async def _leaf(ctx: FlowContext, input: object) -> str:
    async def think(step: StepContext) -> str:
        return SECRET

    return await ctx.step("think", think)


async def _tree(ctx: FlowContext, input: object) -> str:
    child = await ctx.start_child("leaf", "leaf", SECRET, queue="default", task=SECRET)
    return str((await ctx.child(child)).status)


@asynccontextmanager
async def opened(folder: Path, environ: dict[str, str]) -> AsyncIterator[Podium]:
    """A Podium with two flows."""
    for name in ("project", "home"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "project/podium.yaml").touch()
    home = str(folder / "home")
    settings = {"PATH": "/usr/bin:/bin", "HOME": home, "PODIUM_HOME": home}
    configuration = load_configuration(settings, project=folder / "project")
    podium = Podium(configuration, {**settings, **environ}, flows={})
    engine = await podium.engine()
    engine.register(FlowDefinition("leaf", _leaf))
    engine.register(FlowDefinition("tree", _tree))
    try:
        yield podium
    finally:
        await podium.close()


async def export(podium: Podium) -> TraceExport:
    engine = await podium.engine()
    made = await TraceExport.open(
        await podium.store(), engine.worker_id, podium.environ, podium.redactor.text
    )
    assert made is not None
    return made


async def host(podium: Podium, flow: str, runs: int = 1) -> list[Run]:
    """Start runs of a queue, serve it, and see them all to their end."""
    engine = await podium.engine()
    started = [await engine.start(flow, task=SECRET, queue="default") for _ in range(runs)]
    async with engine.serve([QUEUE]):
        return [await engine.finish(run.id) for run in started]


async def test_a_run_and_its_child_arrive_as_two_linked_traces(
    tmp_path: Path, receiver: Receiver
) -> None:
    environ = {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    async with opened(tmp_path, environ) as podium:
        traces = await export(podium)
        [run] = await host(podium, "tree")
        await traces.close()
        worker_id = (await podium.engine()).worker_id
    assert run.status is RunStatus.SUCCEEDED
    assert set(receiver.paths) == {"/v1/traces"}
    spans = receiver.named()
    assert set(spans) == {
        *("run tree", "host tree", "step child:leaf"),
        *("run leaf", "host leaf", "step think"),
    }
    whole, host_span, leaf = spans["run tree"], spans["host tree"], spans["run leaf"]
    assert whole.trace_id == trace_of(run.id).to_bytes(16)
    assert f"run_{whole.trace_id.hex()}" == run.id
    assert (whole.parent_span_id, host_span.parent_span_id) == (b"", whole.span_id)
    assert spans["step think"].parent_span_id == leaf.span_id
    [link] = leaf.links
    assert (link.trace_id, link.span_id) == (whole.trace_id, whole.span_id)
    assert leaf.trace_id != whole.trace_id
    assert whole.start_time_unix_nano <= leaf.start_time_unix_nano
    assert whole.end_time_unix_nano >= leaf.end_time_unix_nano
    assert attributes(whole.attributes)["podium.run.id"] == run.id
    assert attributes(spans["step think"].attributes)["podium.outcome"] == "completed"
    assert receiver.resource["service.name"] == "podium"
    assert receiver.resource["service.instance.id"] == worker_id
    assert SECRET.encode() not in receiver.raw
    assert traces.problems == ()


async def test_two_processes_that_host_a_run_in_turn_add_to_one_trace(
    tmp_path: Path, receiver: Receiver
) -> None:
    environ = {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}

    async def patient(ctx: FlowContext, input: object) -> None:
        await ctx.wait("go")

    async with opened(tmp_path, environ) as podium:
        engine = await podium.engine()
        engine.register(FlowDefinition("patient", patient))
        traces = await export(podium)
        run = await engine.start("patient")
        await engine.finish(run.id, stop_when_waiting=True)
        await engine.close()
        await traces.close()
    async with opened(tmp_path, environ) as podium:
        engine = await podium.engine()
        engine.register(FlowDefinition("patient", patient))
        traces = await export(podium)
        await engine.signal(run.id, "go")
        await engine.resume(run.id)
        await engine.finish(run.id)
        await traces.close()
    names = sorted(span.name for span in receiver.spans)
    assert names == ["host patient", "host patient", "run patient"]
    root = span_ref_of(run.id).span_id.to_bytes(8)
    assert {span.trace_id for span in receiver.spans} == {trace_of(run.id).to_bytes(16)}
    assert {s.parent_span_id for s in receiver.spans if s.name == "host patient"} == {root}
    assert len({span.span_id for span in receiver.spans}) == 3
    workers = {str(r.resource_spans[0].resource.attributes) for r in receiver.requests}
    assert len(workers) == 2


async def test_model_answers_and_calls_arrive_by_the_conventions_for_generative_models(
    receiver: Receiver,
) -> None:
    harness = HostedHarness()
    environ = {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    traces = await TraceExport.open(harness.store, ME, environ, str)
    assert traces is not None
    run = await harness.queue(flow="playbook")
    await harness.start(run)
    call = f"{run.id}:turn#0:abc.0"
    turn: dict[str, Any] = {"role": "playbook", "agent": "gemini"}
    answer = ModelAnswer(
        number=0,
        request="x",
        text=SECRET,
        model="m-1",
        usage=Usage(input_tokens=7, output_tokens=3),
    )
    await harness.say(
        run,
        StepStarted(step="turn#0"),
        AgentAsked(prompt=SECRET, step="turn#0", **turn),
        ModelAnswered(step="turn#0", answer=answer, **turn),
        ToolRequested(
            call=call, tool="read_file", arguments={"path": SECRET}, digest="", tier="T0", rule="r",
            reason=SECRET,
        ),
        ToolCompleted(call=call, tool="read_file", result=SECRET, receipt=1),
        AgentReplied(text=SECRET, model="m-1", **turn),
        StepCompleted(step="turn#0"),
        RunSucceeded(result=SECRET),
    )  # fmt: skip
    await traces.close()
    spans = receiver.named()
    agent, chat, tool = (
        spans[name] for name in ("invoke_agent playbook", "chat m-1", "execute_tool read_file")
    )
    assert chat.parent_span_id == tool.parent_span_id == agent.span_id
    output = attributes(chat.attributes)
    assert output["gen_ai.operation.name"] == "chat"
    assert output["gen_ai.request.model"] == "m-1"
    assert (output["gen_ai.usage.input_tokens"], output["gen_ai.usage.output_tokens"]) == (7, 3)
    assert attributes(tool.attributes)["gen_ai.tool.name"] == "read_file"
    assert attributes(agent.attributes)["gen_ai.agent.name"] == "gemini"
    assert SECRET.encode() not in receiver.raw
    assert traces.problems == ()


async def test_events_that_could_not_be_made_into_spans_are_counted_and_the_others_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness = HostedHarness()
    environ = {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    traces = await TraceExport.open(harness.store, ME, environ, str)
    assert traces is not None
    take = traces._maker.take

    def breaks_at_steps(event: Event, run: HostedRun) -> list[FinishedSpan]:
        if isinstance(event.body, StepCompleted):
            raise ValueError("cannot be placed")
        return take(event, run)

    # No event is known that cannot be made into a span; one day there will be.
    monkeypatch.setattr(traces._maker, "take", breaks_at_steps)
    run = await harness.queue(flow="leaf")
    await harness.start(run)
    await harness.say(run, StepCompleted(step="think"), RunSucceeded())
    await traces.close()
    assert set(receiver.named()) == {"run leaf", "host leaf"}
    assert traces.problems == (
        "the export of traces failed for 1 event, most recently with ValueError: cannot be placed",
    )


class Quiet(MemoryStore):
    """A store that never says that something changed."""

    async def changes(self) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield


async def test_closing_sends_what_was_not_read_yet_and_what_will_not_end(
    receiver: Receiver,
) -> None:
    harness = HostedHarness()
    harness.store = Quiet(harness.clock)
    environ = {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    traces = await TraceExport.open(harness.store, ME, environ, str)
    assert traces is not None
    run = await harness.queue(flow="asks")
    await harness.start(run)
    await harness.say(run, StepCompleted(step="think"), RunNeededHuman(reason=SECRET))
    await traces.close()
    assert set(receiver.named()) == {"step think", "host asks"}


async def test_runs_go_on_while_the_receiver_is_silent_and_what_is_too_much_is_dropped(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_outbox, "MAX_WAITING", 4)  # 4096 would take thousands of runs
    monkeypatch.setattr(span_outbox, "SEND_SECONDS", 60.0)  # nothing is lost for another reason
    monkeypatch.setattr(span_outbox, "CLOSE_SECONDS", 0.05)
    monkeypatch.setattr(span_outbox, "GATHER_SECONDS", 0.0)
    receiver.held.clear()
    environ = {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
    async with opened(tmp_path, environ) as podium:
        traces = await export(podium)
        ended = await host(podium, "leaf", runs=10)
        assert {run.status for run in ended} == {RunStatus.SUCCEEDED}
        await retry_until(lambda: traces.dropped)
        await traces.close()
    [fault] = traces.problems
    assert f"{traces.dropped} spans" in fault
    assert receiver.url in fault


@pytest.mark.parametrize("trouble", ["refuses", "is not there"])
async def test_a_receiver_that_fails_costs_the_spans_and_is_named(
    tmp_path: Path, receiver: Receiver, trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_outbox, "SEND_SECONDS", 1.5)  # time for one other try
    url = receiver.url if trouble == "refuses" else "http://127.0.0.1:1"
    receiver.status = 400
    keyed = url.replace("//", f"//user:{SECRET}@") + f"/{PATH_KEY}"
    async with opened(
        tmp_path, {"PODIUM_TRACES": "on", "OTEL_EXPORTER_OTLP_ENDPOINT": keyed}
    ) as podium:
        traces = await export(podium)
        [run] = await host(podium, "leaf")
        await traces.close()
    assert run.status is RunStatus.SUCCEEDED
    [fault] = traces.problems
    assert fault.startswith(f"3 spans could not be sent to {url}")
    assert SECRET not in fault
    assert PATH_KEY not in fault


async def test_without_the_switch_nothing_is_made_and_nothing_imported(tmp_path: Path) -> None:
    without = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}
    async with opened(tmp_path, without) as podium:
        store, redact = await podium.store(), podium.redactor.text
        assert await TraceExport.open(store, "wrk_x", podium.environ, redact) is None
    assert traces_endpoint({**without, "PODIUM_TRACES": "off"}) is None


async def test_without_the_packages_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As on a machine where the extra was never installed.
    monkeypatch.delitem(sys.modules, "podium.telemetry.span_outbox")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    monkeypatch.delitem(
        sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", raising=False
    )
    async with opened(tmp_path, ON) as podium:
        with pytest.raises(ToolMissing, match=r"pip install 'podium\[otel\]'"):
            await export(podium)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"PODIUM_TRACES": "yes"}, "PODIUM_TRACES is 'yes'; set it to on or off"),
        ({"PODIUM_TRACES": "on"}, "set OTEL_EXPORTER_OTLP_ENDPOINT"),
        ({**ON, "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "http:// or https:// URL"),
        ({**ON, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://[::1"}, "http:// or https:// URL"),
        ({**ON, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf, not 'grpc'"),
    ],
)
def test_request_that_cannot_be_met_is_refused_in_words(environ: dict[str, str], says: str) -> None:
    with pytest.raises(UserMustAct) as refused:
        traces_endpoint(environ)
    assert says in str(refused.value)


def test_the_endpoint_is_the_collectors_path_for_traces_or_the_one_that_is_named() -> None:
    assert traces_endpoint(ON) == "http://127.0.0.1:4318/v1/traces"
    named = {**ON, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t.example/own?key=1"}
    assert traces_endpoint(named) == "https://t.example/own?key=1"
    assert endpoint_for_people("https://me:key@t.example:99/own?key=1") == "https://t.example:99"
