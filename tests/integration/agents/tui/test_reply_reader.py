"""Assignment of transcript entries to turns: a program's own turn, late text of an earlier one, and those of others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from podium.agents.deps import AgentOptions
from podium.agents.tui import GenericTui, Program
from podium.agents.tui.adapter import TranscriptEntry, TuiTimings
from podium.agents.tui.delivery import OutboundMessage
from podium.agents.tui.reply_reader import ScreenReplyReader, StreamGate, TranscriptReplyReader
from podium.agents.tui.screen import history_size
from podium.agents.tui.screen_watch import Sight
from podium.core.errors import AgentLost
from podium.core.model import Json
from podium.core.turns import AwaitedMessage, MessageBlock, block_of
from podium.testing import FixedClock, MemoryTranscripts
from podium.testing.processes import FakeTurnDoor
from tests.integration.agents.tui.tmux_harness import Harness
from tests.unit.agents.tui.pair_harness import a_turn

AWAITED = AwaitedMessage(sender="PLANNER", types=("plan",), task="T1", nonce="ab12cd34")
BLOCK = block_of(MessageBlock(to="EXECUTER", type="plan", id="T1-ab12cd34", body="look"))
OURS = TranscriptEntry("prompt", "Mend the roof.")
END = TranscriptEntry("end")


class ScriptedTranscript:
    """A conversation that is written down as the test says."""

    session = "one"

    def __init__(self, *entries: TranscriptEntry) -> None:
        self.entries = list(entries)

    def folders(self) -> Sequence[Path]:
        return ()

    def end_position(self) -> Json:
        return len(self.entries)

    def since(self, mark: Json) -> tuple[list[TranscriptEntry], Json]:
        return self.entries[mark:], len(self.entries)


class Resting:
    """A screen on which nothing happens."""

    async def look(self) -> None: ...

    def rests(self, seconds: float) -> bool:
        return True


def an_ear(
    scripted: ScriptedTranscript, door: FakeTurnDoor | None = None, text: str = OURS.text
) -> TranscriptReplyReader:
    character = OutboundMessage(owner="0123456789", text=text, number=1, server=(1, 1), mark=0)
    with MemoryTranscripts().open(a_turn(), "planner") as transcript:
        return TranscriptReplyReader(
            "'planner' (claude)",
            scripted,
            character,
            AWAITED,
            cast("Sight", Resting()),
            TuiTimings(),
            door or FakeTurnDoor(),
            transcript,
            lambda _: None,
            FixedClock(),
        )


async def received(*entries: TranscriptEntry) -> str | None:
    answer = await an_ear(ScriptedTranscript(*entries)).hear()
    return None if answer is None else answer.text


async def test_all_words_until_the_end_of_the_turn_are_the_answer() -> None:
    entries = (
        OURS,
        TranscriptEntry("words", "I look."),
        TranscriptEntry("words", BLOCK),
        END,
        TranscriptEntry("words", "more"),
    )
    assert await received(*entries) == f"I look.\n{BLOCK}"


async def test_a_turn_that_is_not_over_has_no_answer_yet() -> None:
    assert await received(OURS, TranscriptEntry("words", BLOCK)) is None


async def test_words_before_the_prompt_are_of_an_earlier_turn() -> None:
    assert (
        await received(
            TranscriptEntry("words", "old"), END, OURS, TranscriptEntry("words", "new"), END
        )
        == "new"
    )


async def test_an_earlier_turn_that_is_written_down_late_is_passed_over() -> None:
    late = (
        TranscriptEntry("prompt", "Paint it."),
        TranscriptEntry("end", "Request interrupted", ok=False),
    )
    assert await received(*late, OURS, TranscriptEntry("words", "new"), END) == "new"
    assert (
        await received(
            TranscriptEntry("prompt", "Paint it."), TranscriptEntry("words", "done"), END
        )
        is None
    )


async def test_a_prompt_that_is_not_known_again_counts_when_its_turn_brings_the_message() -> None:
    assert (
        await received(
            TranscriptEntry("prompt", "[image] Mend…"), TranscriptEntry("words", BLOCK), END
        )
        == BLOCK
    )


async def test_a_reminder_in_the_middle_does_not_lose_the_words_before_it() -> None:
    nudge = TranscriptEntry("prompt", "If finished, emit the tagged block now.")
    assert (
        await received(
            OURS, TranscriptEntry("words", "one"), nudge, TranscriptEntry("words", "two"), END
        )
        == "one\ntwo"
    )


async def test_message_handed_over_as_a_file_is_known_by_its_name() -> None:
    output = ScriptedTranscript(
        TranscriptEntry("prompt", "Your message is in the file /m/0-1-0123456789.txt - read it"),
        END,
    )
    output.entries[1:1] = [TranscriptEntry("words", "read")]
    answer = await an_ear(output, text="long\n" * 9999).hear()
    assert answer is not None
    assert answer.text == "read"


async def test_a_turn_without_a_word_is_none_only_when_its_program_rests() -> None:
    with pytest.raises(AgentLost, match="without a reply"):
        await received(OURS, END)
    assert await received(OURS, END, TranscriptEntry("words", "late"), END) == "late"


async def test_agent_asked_to_wait_for_a_person_may_end_without_a_word() -> None:
    door = FakeTurnDoor(waiting_approvals=("apr_1",))
    answer = await an_ear(ScriptedTranscript(OURS, END), door).hear()
    assert answer is not None
    assert answer.text == ""


async def test_outcome_of_its_tools_is_reported_at_the_door() -> None:
    door = FakeTurnDoor()
    uses = (
        TranscriptEntry("used", "", "use_1"),
        TranscriptEntry("used", "no such file", "use_2", ok=False),
    )
    await an_ear(
        ScriptedTranscript(OURS, *uses, TranscriptEntry("words", "Done."), END), door
    ).hear()
    assert door.settled == {"use_1": True, "use_2": False}


def test_a_closing_tag_is_noticed_once_in_whatever_pieces_it_comes(tmp_path: Path) -> None:
    file = tmp_path / "0.now"
    file.touch()
    gate = StreamGate(file)
    assert not gate.has_opened()
    pieces = ["noise [[/POL", "I:MSG]] more", " noise", "[[/POLI:MSG]]"]
    opened = []
    for piece in pieces:
        with file.open("a") as opening:
            opening.write(piece)
        opened.append(gate.has_opened())
    assert opened == [False, True, False, True]
    file.rename(tmp_path / "0.before")
    assert not gate.has_opened()
    file.write_text("begun anew")
    assert [gate.has_opened(), gate.has_opened()] == [True, False]
    gate.close()


async def test_block_scrolled_further_away_than_the_mark_indicates_is_found(
    harness: Harness,
) -> None:
    """As after a terminal was made wider: its history has fewer lines then."""
    (harness.root / "said").write_text(f"{BLOCK}\n" + "more\n" * 100 + "that is all")
    pane = await harness.panes.open(
        Program(name="planner", argv=("sh", "-c", "cat said; exec cat"), cwd=harness.root)
    )
    await harness.shows(pane, "that is all")
    generic = GenericTui(AgentOptions(name="x", command=("cat",)))
    sight = Sight(harness.control, harness.activity, pane, generic, TuiTimings())
    mark = await history_size(harness.control, pane)
    with MemoryTranscripts().open(a_turn(), "planner") as transcript:
        reader = ScreenReplyReader(
            harness.control, pane, sight, mark, AWAITED, TuiTimings(), transcript, lambda _: None
        )
    assert await reader.has_block(AWAITED)
