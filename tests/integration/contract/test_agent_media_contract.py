"""Contract of every agent medium: real CLIs, provider libraries, ACP and the script, in one suite."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from podium.core.errors import (
    AgentLost,
    AgentNotLoggedIn,
    AgentUnavailable,
    PodiumError,
    RateLimited,
    ReplyInvalid,
    TimedOut,
)
from podium.core.events import (
    AgentProgressed,
    ApprovalRequested,
    NoteTaken,
    ToolCompleted,
    ToolRefused,
    ToolRequested,
)
from podium.core.turns import Reply
from podium.testing import retry_until
from tests.integration.contract.media import (
    ACP,
    CLAUDE,
    CODEX,
    GEMINI,
    GOOGLE_API,
    KEY,
    MEDIA,
    OPENAI_API,
    SCRIPTED,
    Medium,
    Stage,
    answer,
    bad_bytes,
    fails,
    flood,
    hang,
    on_stage,
    processes_in,
    run,
    say,
)
from tests.soaking import in_soak

pytestmark = pytest.mark.smoke

PROGRAMS = (GEMINI, CLAUDE, CODEX, ACP)


def _on(media: Sequence[Medium], seldom: Sequence[Medium] = ()) -> pytest.MarkDecorator:
    """A test for each medium; what is asked of some is asked only by `make soak`."""
    chosen = [in_soak(item) if item in seldom else item for item in media]
    return pytest.mark.parametrize("medium", chosen, ids=lambda medium: medium.name)


every_medium = _on(MEDIA)
# Of every CLI its own tests in tests/integration/agents ask the same each time; a start of one costs seconds.
every_medium_and_programs_seldom = _on(MEDIA, PROGRAMS)
every_process_and_programs_seldom = _on([item for item in MEDIA if item.is_process], PROGRAMS)
# The Gemini CLI takes longest to start, and speaks to Podium in tests/pipeline/test_real_clis.py too.
every_medium_and_gemini_seldom = _on(MEDIA, (GEMINI, ACP))
every_medium_and_codex_of_programs = _on(MEDIA, (GEMINI, CLAUDE, ACP))
# Where an API fails, Podium waits and asks again: that is the same for all of them.
one_api_and_programs_seldom = _on(MEDIA, (*PROGRAMS, GOOGLE_API, OPENAI_API))
# ACP is the Gemini CLI once more; test_function_calling_contract.py asks every API for calls.
every_program_and_one_api = _on(MEDIA, (ACP, GOOGLE_API, OPENAI_API))

DENIED = "git checkout main; touch ran.marker"
HUGE_BYTES = 50_000_000


class Verdict(BaseModel):
    """Closed, as nouns are: nothing but its own keys."""

    model_config = ConfigDict(extra="forbid")

    verdict: str
    score: int


PASS = {"verdict": "PASS", "score": 3}


LAST_WORDS = '\n{"verdict": "PASS", "score": 3, "podium_nonce": "{{nonce}}"}'


@every_medium_and_programs_seldom
async def test_a_plain_reply_is_signed_and_its_transcript_is_kept(
    medium: Medium, tmp_path: Path
) -> None:
    async with on_stage(medium, tmp_path, say("Hello, wörld.")) as stage:
        reply = await stage.ask("Say hello.")
    assert (reply.text.strip(), reply.agent) == ("Hello, wörld.", "player")
    assert reply.model
    assert reply.usage.turns >= 1
    assert reply.transcript is not None
    assert "Hello" in Path(reply.transcript).read_text()


@pytest.mark.sample(3)
@every_medium_and_gemini_seldom
async def test_a_payload_is_found_and_validated(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, answer("I looked.", PASS)) as stage:
        reply = await stage.ask("Judge.", contract=Verdict)
    assert reply.payload == PASS
    assert reply.found in ("native", "strict")


@pytest.mark.sample(2)
@every_medium_and_codex_of_programs
async def test_a_reply_without_a_payload_is_asked_for_once_more(
    medium: Medium, tmp_path: Path
) -> None:
    async with on_stage(medium, tmp_path, say("I forgot."), then=[answer("", PASS)]) as stage:
        reply = await stage.ask("Judge.", contract=Verdict)
    assert reply.payload == PASS
    assert reply.usage.turns >= 2


@pytest.mark.sample(2)
@every_medium_and_programs_seldom
async def test_a_second_reply_without_a_payload_is_an_error(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, say("No."), then=[say("Still no.")]) as stage:
        with pytest.raises(ReplyInvalid) as caught:
            await stage.ask("Judge.", contract=Verdict)
    assert caught.value.usage is not None
    assert caught.value.usage.turns >= 2


@every_medium_and_programs_seldom
async def test_a_conversation_goes_on(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, say("First words."), then=[say("Second.")]) as stage:
        first = await stage.ask("Begin.")
        assert first.session is not None or medium is SCRIPTED
        second = await stage.ask("That could not be used.", session=first.session)
        output = stage.model_messages()
    assert second.text.strip() == "Second."
    assert medium is SCRIPTED or "First words." in output  # the model was sent its own words


@pytest.mark.sample(2)
@_on(MEDIA, (GEMINI, ACP, GOOGLE_API, OPENAI_API))
async def test_an_allowed_call_runs_and_is_receipted(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, run("touch ran.marker"), say("Done.")) as stage:
        reply = await stage.ask()
        events = await stage.events()
        assert (stage.project / "ran.marker").exists()
    assert reply.text.strip().endswith("Done.")
    (requested,) = [event for event in events if isinstance(event, ToolRequested)]
    (completed,) = [event for event in events if isinstance(event, ToolCompleted)]
    assert requested.tool == "run_command"
    assert "touch ran.marker" in str(requested.arguments["command"])
    assert completed.call == requested.call


@pytest.mark.sample(3)
@every_program_and_one_api
async def test_denied_call_does_not_run_and_the_agent_is_notified(
    medium: Medium, tmp_path: Path
) -> None:
    async with on_stage(medium, tmp_path, run(DENIED), say("I tried.")) as stage:
        reply = await stage.ask()
        events = await stage.events()
        assert not (stage.project / "ran.marker").exists()
        assert stage.branch() == "work"
        output = stage.model_messages()
    refused = [event for event in events if isinstance(event, ToolRefused)]
    assert [event.rule for event in refused] == ["git-firewall"]
    assert not [event for event in events if isinstance(event, ToolRequested)]
    assert reply.text.strip().endswith("I tried.")
    words = "".join(reply.untold) if medium is ACP else output
    if medium is not SCRIPTED:
        assert "Permission Denied" in words
        assert refused[0].reason[:40] in words


@every_medium_and_programs_seldom
async def test_a_call_that_needs_a_person_ends_the_turn_even_without_a_word(
    medium: Medium, tmp_path: Path
) -> None:
    async with on_stage(medium, tmp_path, run("rm README"), say("")) as stage:
        reply = await stage.ask()
        events = await stage.events()
        assert (stage.project / "README").exists()
    (asked,) = [event for event in events if isinstance(event, ApprovalRequested)]
    assert reply.waiting_approvals == (asked.approval_id,)


@every_medium_and_programs_seldom
async def test_half_a_character_in_its_words_harms_nothing(medium: Medium, tmp_path: Path) -> None:
    half = {
        "text": "Half \ud83d of one.",
        "scripted": [{"say": "Half a file."}, {"bad_bytes": True}],
    }
    async with on_stage(medium, tmp_path, half) as stage:
        reply = await stage.ask()
        journal = await stage.podium.journal()
        await journal.append("run_1", NoteTaken(text=reply.text))
    reply.text.encode()
    assert reply.text.startswith("Half ")


@pytest.mark.soak
@one_api_and_programs_seldom
async def test_a_turn_out_of_time_leaves_no_process(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, hang()) as stage:
        with pytest.raises(TimedOut):
            # A CLI takes seconds to come to its model.
            await stage.ask(seconds=4.0 if medium in PROGRAMS else 1.0)
        assert processes_in(tmp_path) == {}


@every_medium_and_programs_seldom
async def test_a_cancelled_turn_leaves_no_process(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, hang()) as stage:
        asking = await _begun(stage)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert processes_in(tmp_path) == {}


@every_process_and_programs_seldom
async def test_an_agent_whose_program_is_killed_is_lost(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, hang()) as stage:
        asking = await _begun(stage)
        for pid in processes_in(stage.project):
            with suppress(ProcessLookupError):  # it ended with the one before it
                os.kill(pid, signal.SIGKILL)
        with pytest.raises(AgentLost):
            await asking
        assert processes_in(tmp_path) == {}


@pytest.mark.sample(2)
@every_medium_and_programs_seldom
async def test_wrong_key_is_reported_with_how_to_log_in(medium: Medium, tmp_path: Path) -> None:
    refused = fails("not_logged_in", status=401)
    async with on_stage(medium, tmp_path, refused, key="sk-wrong-7h2Jq9xW4nB6tY0e") as stage:
        with pytest.raises(AgentNotLoggedIn, match="'player'") as caught:
            await stage.ask()
    assert "sk-wrong" not in str(caught.value)


@every_medium_and_programs_seldom
async def test_a_rate_limit_says_until_when(medium: Medium, tmp_path: Path) -> None:
    # Long enough that no CLI waits for it by itself: Gemini's does so for up to five minutes.
    limited = fails("rate_limited", 900, status=429, retry_after=900)
    async with on_stage(medium, tmp_path, limited) as stage:
        with pytest.raises(RateLimited) as caught:
            await stage.ask()
    assert caught.value.retry_at is not None
    seconds = (caught.value.retry_at - datetime.now(UTC)).total_seconds()
    assert 800 < seconds <= 905


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "trouble",
    [{"status": 500}, {"fault": "drop"}, {"fault": "truncate"}],
    ids=["500", "dropped stream", "truncated stream"],
)
@one_api_and_programs_seldom
async def test_outage_is_reported_as_one(
    medium: Medium, tmp_path: Path, trouble: dict[str, Any]
) -> None:
    if medium is ACP and trouble == {"fault": "truncate"}:
        pytest.skip("Gemini CLI calls a truncated stream a finished answer when it speaks ACP")
    async with on_stage(medium, tmp_path, fails("unavailable", text="Half", **trouble)) as stage:
        with pytest.raises(AgentUnavailable):
            await stage.ask()
        assert processes_in(tmp_path) == {}


@pytest.mark.sample(1)
@one_api_and_programs_seldom
async def test_a_server_that_is_down_is_an_outage(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, fails("unavailable", text="-"), down=True) as stage:
        with pytest.raises(AgentUnavailable):
            await stage.ask()


@pytest.mark.soak
@_on(MEDIA, [item for item in MEDIA if item is not SCRIPTED])
async def test_fifty_megabytes_with_a_payload_at_the_end_are_read(
    medium: Medium, tmp_path: Path
) -> None:
    async with on_stage(medium, tmp_path, flood(HUGE_BYTES, LAST_WORDS, PASS)) as stage:
        # Claude Code has a tool for payloads, and asks again in its own words when it is not used.
        contract = None if medium is CLAUDE else Verdict
        reply = await stage.ask("Judge.", contract=contract, seconds=110.0)
        assert processes_in(tmp_path) == {}
    assert medium is CLAUDE or reply.payload == PASS
    assert '"verdict": "PASS"' in reply.text[-200:]
    assert len(reply.text) < 250_000


@every_medium_and_programs_seldom
async def test_bytes_that_are_no_text_break_nothing(medium: Medium, tmp_path: Path) -> None:
    async with on_stage(medium, tmp_path, bad_bytes()) as stage:
        reply, words = await _asked(stage, "Speak.")
    assert reply is not None or "'player'" in words


@pytest.mark.sample(3)
@every_medium_and_codex_of_programs
async def test_a_key_the_agent_prints_reaches_no_file(medium: Medium, tmp_path: Path) -> None:
    leak = f"The key is {KEY}."
    async with on_stage(medium, tmp_path, run("env"), say(leak)) as stage:
        reply = await stage.ask(f"Print everything, also {KEY}.")
        (await stage.podium.journal()).note(
            "run_1", AgentProgressed(role="tester", agent="player", kind="note", text=reply.text)
        )
        await stage.podium.close()
        assert stage.leaks() == []


async def _asked(stage: Stage, prompt: str, **more: Any) -> tuple[Reply | None, str]:
    """The reply, or the words of the error where there is none."""
    try:
        return await stage.ask(prompt, **more), ""
    except PodiumError as error:
        return None, str(error)


async def _begun(stage: Stage) -> asyncio.Task[Reply]:
    """A turn whose agent waits for its model."""
    asking = asyncio.create_task(stage.ask())
    await retry_until(stage.has_begun)
    return asking


@pytest.fixture(autouse=True)
async def _nothing_is_left(tmp_path: Path) -> AsyncIterator[None]:
    yield
    assert processes_in(tmp_path) == {}
