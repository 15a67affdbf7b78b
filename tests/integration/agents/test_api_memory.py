"""An API agent's turn that was at work before: what its model said is remembered, not asked for again."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

from podium.agents.api import ApiAgent
from podium.agents.deps import AgentOptions
from podium.core.decisions import HookAnswer
from podium.core.errors import BudgetSpent, NotPossibleNow
from podium.core.events import AnyEvent, EventBody, ModelAnswered
from podium.core.turns import Reply, TurnLimits
from podium.ports import Transaction
from podium.testing import MemoryStore, MemoryTranscripts
from podium.testing.modelserver import ModelServer
from tests.integration.agents.api_harness import (
    KEY,
    KEY_NAMES,
    MODELS,
    NOTE,
    ApiHarness,
    Verdict,
    allowed,
    note,
    script,
)
from tests.soaking import in_soak
from tests.unit.contract import function_calling_harness as calling

T = TypeVar("T")

PROVIDERS = ("google", "openai", "anthropic")
every_provider = pytest.mark.parametrize("provider", PROVIDERS)
one_provider_and_the_others_in_soak = pytest.mark.parametrize(
    "provider", ["google", in_soak("openai"), in_soak("anthropic")]
)

HEARTBEATS = [
    calling.model_turn(calling.note("one"), ("wipe", {}), ("format_disk", {})),
    calling.model_turn(("keep_note", {"text": 5}), ("look", {})),
    calling.say("Done."),
]


class Died(BaseException):
    """The process is gone: nobody catches this, and nothing is written any more."""


class DyingStore(MemoryStore):
    """Another process at the same store, killed when it wants to write once too often."""

    def __init__(self, beside: MemoryStore, writes: int | None) -> None:
        super().__init__(beside=beside)
        self._writes_left = writes

    async def write(self, work: Callable[[Transaction], T]) -> T:
        if self._writes_left == 0:
            raise Died
        if self._writes_left is not None:
            self._writes_left -= 1
        return await super().write(work)

    def note(self, run_id: str, body: EventBody) -> None:
        """Drop the note: progress notes are written by a timer and need not be the same in both runs."""


async def _ask(
    provider: str, folder: Path, server: ModelServer, store: MemoryStore, writes: int | None = None
) -> tuple[Reply, calling.CallingHarness]:
    """Ask the turn in a process that dies after so many writes."""
    harness = calling.CallingHarness(folder, DyingStore(store, writes))
    path = "/v1" if provider == "openai" else ""
    options = AgentOptions(
        name=calling.NAME,
        model=f"{provider}:{MODELS[provider]}",
        base_url=server.url + path,
        env={KEY_NAMES[provider]: "secret://MODEL_KEY"},
    )
    agent = ApiAgent(options, harness.deps(MemoryTranscripts()), {"MODEL_KEY": KEY}.__getitem__)
    return await agent.ask(harness.turn()), harness


def _story(events: Sequence[AnyEvent]) -> list[object]:
    """Return the events, without the ids that a model's server makes up."""
    last_prompt: list[object] = []
    for event in events:
        if isinstance(event, ModelAnswered):
            calls = [(call.tool, call.arguments) for call in event.answer.calls]
            last_prompt.append((event.answer.number, event.answer.text, calls, event.answer.usage))
        else:
            last_prompt.append(
                (event.type, getattr(event, "call", ""), getattr(event, "reason", ""))
            )
    return last_prompt


@pytest.mark.soak
@one_provider_and_the_others_in_soak
async def test_killed_before_any_write_the_same_conversation_goes_on_without_gap_or_duplicate(
    provider: str, tmp_path: Path
) -> None:
    steps = {"default": {"steps": calling.steps_of(HEARTBEATS)}}
    async with ModelServer(steps, key=KEY) as server:
        expected, harness = await _ask(provider, tmp_path, server, MemoryStore())
        story = _story(await harness.events())
        assert len(server.requests) == 3
        for writes in count():
            store, before = MemoryStore(), len(server.requests)
            try:
                await _ask(provider, tmp_path, server, store, writes)
            except Died:
                pass
            else:
                break
            reply, harness = await _ask(provider, tmp_path, server, store)
            assert _story(await harness.events()) == story, f"killed before write {writes}"
            assert reply.text == expected.text
            assert reply.usage.input_tokens == expected.usage.input_tokens
            assert reply.usage.output_tokens == expected.usage.output_tokens
            assert len(server.requests) - before <= 4, "only one answer may have been lost"
        assert writes >= len(story), "every event was written by itself"


async def test_an_answer_is_durable_before_its_calls_are_done(tmp_path: Path) -> None:
    async with ModelServer({"default": {"steps": calling.steps_of(HEARTBEATS)}}, key=KEY) as server:
        _, harness = await _ask("google", tmp_path, server, MemoryStore())
    types = [event.type for event in await harness.events()]
    assert types[:3] == ["model_answered", "tool_requested", "tool_completed"]


@pytest.mark.sample(1)
@every_provider
async def test_remembered_result_costs_no_request_and_is_not_reported_again(
    provider: str, tmp_path: Path
) -> None:
    async with ModelServer(script(x=[note("milk"), "Noted."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, [allowed("kept")] * 2, [NOTE])
        first = await harness.agent.ask(harness.turn("SCRIPT:x"))
        harness.doors.door.progress.clear()
        again = await harness.new_agent().ask(harness.turn("SCRIPT:x"))
        assert len(server.requests) == 2
    assert harness.tool_results == []
    assert (again.text, again.model) == (first.text, first.model)
    assert again.usage.model_copy(update={"seconds": 0}) == first.usage.model_copy(
        update={"seconds": 0}
    )
    lines = [next(iter(json.loads(line))) for line in harness.transcripts.transcripts[1].lines]
    assert lines == ["remembered", "result", "remembered"]


async def test_what_was_recorded_as_used_before_is_not_used_a_second_time(tmp_path: Path) -> None:
    async with ModelServer(script(x=[note("milk"), "Noted."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "google", [allowed("kept")] * 2, [NOTE])
        first = await harness.agent.ask(harness.turn("SCRIPT:x"))
        known = harness.doors.door.remembered
        known[0] = known[0].model_copy(update={"counted": True})
        again = await harness.new_agent().ask(harness.turn("SCRIPT:x"))
    assert known[0].usage.input_tokens > 0
    assert again.usage.input_tokens == first.usage.input_tokens - known[0].usage.input_tokens


@pytest.mark.parametrize(
    ("limits", "measure"), [({"turns": 1}, "turns"), ({"tokens": 5}, "tokens")]
)
async def test_limits_of_spending_hold_for_what_is_remembered(
    tmp_path: Path, limits: dict[str, int], measure: str
) -> None:
    async with ModelServer(script(x=[note("milk"), "Noted."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "google", [allowed("kept")] * 9, [NOTE])
        turn = harness.turn("SCRIPT:x", limits=TurnLimits.model_validate({"seconds": 60, **limits}))
        spent = []
        for _ in range(2):
            with pytest.raises(BudgetSpent) as caught:
                await harness.new_agent().ask(turn)
            assert caught.value.usage is not None
            spent.append((caught.value.measure, caught.value.used, caught.value.usage.input_tokens))
        assert len(server.requests) == 1
    assert spent[0] == spent[1]
    assert spent[0][0] == measure


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "changed",
    [{"prompt": "SCRIPT:x again"}, {"tools": ()}, {"options": {"temperature": 1}}, {"model": "m"}],
    ids=lambda changed: next(iter(changed)),
)
async def test_an_answer_to_another_request_is_of_no_use(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    async with ModelServer(script(x=["One.", "Two."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "google", [], [NOTE])
        await harness.agent.ask(harness.turn("SCRIPT:x"))
        remembered = dict(harness.doors.door.remembered)
        more = {name: value for name, value in changed.items() if name != "prompt"}
        harness = ApiHarness(tmp_path, server, "google", **{"tools": [NOTE], **more})
        harness.doors.door.remembered.update(remembered)
        reply = await harness.agent.ask(harness.turn(changed.get("prompt", "SCRIPT:x")))
        assert len(server.requests) == 2
    assert reply.text == "Two."


async def test_an_answer_that_is_too_large_is_recorded_in_part_and_asked_for_again(
    tmp_path: Path,
) -> None:
    step = {"flood_bytes": 1_100_000, "then": "end"}
    async with ModelServer(script(x=[step, "Short."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "anthropic")
        await harness.agent.ask(harness.turn("SCRIPT:x"))
        answer = harness.doors.door.remembered[0]
        assert answer.kept is None
        assert len(answer.text) <= 200_000
        assert answer.text.endswith("end")
        # As the real door has it: what was not kept is not remembered.
        harness.doors.door.remembered.clear()
        assert (await harness.agent.ask(harness.turn("SCRIPT:x"))).text == "Short."


@every_provider
async def test_a_secret_in_the_models_words_is_not_recorded_and_the_answer_is_remembered(
    provider: str, tmp_path: Path
) -> None:
    steps = [{"text": f"It is {KEY}.", **note("milk")}, f"Yes, {KEY}."]
    async with ModelServer(script(x=steps), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, [allowed(f"kept {KEY}")] * 2, [NOTE])
        prompt = f"SCRIPT:x What is {KEY}?"
        await harness.agent.ask(harness.turn(prompt))
        recorded = [answer.model_dump_json() for answer in harness.doors.door.remembered.values()]
        assert len(recorded) == 2
        assert not any(KEY in item for item in recorded)
        await harness.new_agent().ask(harness.turn(prompt))
        assert len(server.requests) == 2


@every_provider
async def test_a_call_with_a_secret_in_it_is_asked_for_again_instead_of_done_without_it(
    provider: str, tmp_path: Path
) -> None:
    async with ModelServer(script(x=[note(f"key {KEY}"), "Done."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, [allowed()], [NOTE])
        await harness.agent.ask(harness.turn("SCRIPT:x"))
    first = harness.doors.door.remembered[0]
    assert first.kept is None
    assert KEY not in first.model_dump_json()
    assert [call.tool for call in first.calls] == ["keep.note"]


@every_provider
async def test_that_the_schema_was_refused_is_remembered_too(provider: str, tmp_path: Path) -> None:
    refusal = {"status": 400, "message": "response_format is not supported by this model"}
    answer = '{"verdict": "pass", "score": 7}'
    async with ModelServer(script(x=[refusal, answer]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider)
        turn = harness.turn("SCRIPT:x", contract=Verdict)
        first = await harness.agent.ask(turn)
        again = await harness.new_agent().ask(turn)
        assert len(server.requests) == 2
    assert (again.text, again.found, again.warnings) == (first.text, "none", first.warnings)


async def test_an_answer_that_cannot_be_recorded_is_not_acted_upon(tmp_path: Path) -> None:
    async with ModelServer(script(x=[note("milk"), "Noted."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, "google", [allowed("kept")], [NOTE])

        async def full(answer: object) -> None:
            raise NotPossibleNow("the disk is full; make room")

        harness.doors.door.record_answer = full  # type: ignore[method-assign]  # no fake has a full disk
        with pytest.raises(NotPossibleNow, match="disk is full") as caught:
            await harness.agent.ask(harness.turn("SCRIPT:x"))
    assert harness.doors.door.asked == []
    assert caught.value.usage is not None
    assert caught.value.usage.input_tokens > 0


@every_provider
async def test_what_another_version_kept_is_asked_for_again(provider: str, tmp_path: Path) -> None:
    async with ModelServer(script(x=["One.", "Two."]), key=KEY) as server:
        harness = ApiHarness(tmp_path, server, provider, list[HookAnswer]())
        await harness.agent.ask(harness.turn("SCRIPT:x"))
        door = harness.doors.door
        door.remembered[0] = door.remembered[0].model_copy(update={"kept": {"kind": "other"}})
        assert (await harness.agent.ask(harness.turn("SCRIPT:x"))).text == "Two."
