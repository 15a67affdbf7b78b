"""Several Podiums may send to the same program: each message arrives once, and nobody takes another's for his own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from podium.agents.tui import Injector
from podium.agents.tui.control import NotListening, NumberTaken
from podium.agents.tui.delivery import (
    OutboundMessage,
    OutboundMessages,
    ScreenProbe,
    Sender,
    owner_of,
)
from podium.agents.tui.ledger import Ledger
from podium.agents.tui.panes import loading, pasting
from podium.core.model import Json
from tests.integration.agents.tui.tmux_harness import Harness, a_server


async def no_mark() -> Json:
    return None


async def a_sender(harness: Harness, pane: str) -> Sender:
    injector, characters = harness.injector(pane), OutboundMessages(harness.root / "letters")
    fates = ScreenProbe(harness.control, pane, injector, lambda _: "ready", None)
    return Sender(injector, characters, await harness.server.identity(), 1, fates)


async def test_the_same_key_is_sent_once_and_another_gets_the_next_number(harness: Harness) -> None:
    sender = await a_sender(harness, await harness.open("composer"))
    first = await sender.send("one", "first", no_mark)
    assert await sender.send("one", "first", no_mark) == first
    assert (await sender.send("two", "second", no_mark)).number == 2
    assert harness.taken() == ["first", "second"]


async def test_two_podiums_that_send_at_the_same_time_both_arrive_once(
    harness: Harness, root: Path
) -> None:
    pane = await harness.open("composer")
    other = Harness(a_server(root), root)
    senders = [await a_sender(harness, pane), await a_sender(other, pane)]
    await asyncio.gather(
        *(
            sender.send(f"{who} {number}", f"{who} says {number}\nto it", no_mark)
            for number in range(5)
            for who, sender in enumerate(senders)
        )
    )
    assert sorted(harness.taken()) == sorted(
        f"{who} says {n}\nto it" for who in (0, 1) for n in range(5)
    )
    assert await harness.control.ask("list-buffers") == []
    other.activity.close()
    await other.server.close()


async def test_who_comes_second_with_a_number_sees_that_it_was_not_his_words(
    harness: Harness,
) -> None:
    pane = await harness.open("composer")
    winner, loser = harness.injector(pane), harness.injector(pane)
    await winner.deliver(1, "the winner's", "winner")
    with pytest.raises(NumberTaken):
        await loser.deliver(1, "the loser's", "loser")
    assert (await winner.deliver(1, "the winner's", "winner")).before
    assert harness.taken() == ["the winner's"]


async def test_late_sender_detects_the_collision_and_leaves_no_words_behind(
    harness: Harness,
) -> None:
    """Both have found the number free; the other's paste comes first."""
    pane = await harness.open("composer")
    injector = harness.injector(pane)
    quicker = Ledger(harness.control, pane)

    class Late(Ledger):
        async def paste_once(self, number: int, commands: str, owner: str = "") -> None:
            await harness.control.run(loading("quick", "quicker"))
            await quicker.paste_once(number, pasting("quick", pane), "quicker")
            await super().paste_once(number, commands, owner)

    injector.ledger = Late(harness.control, pane)
    with pytest.raises(NumberTaken):
        await injector.deliver(1, "late", "late")
    assert await harness.control.ask("list-buffers") == []
    assert (await harness.shows(pane, "> quicker")).text.count("late") == 0


async def test_what_a_dead_podium_left_in_the_input_is_sent_by_whoever_comes_next(
    harness: Harness,
) -> None:
    pane = await harness.open("composer")
    sender = await a_sender(harness, pane)
    injector: Injector = harness.injector(pane)
    characters, owner = OutboundMessages(harness.root / "letters"), owner_of("dead")
    identity = await harness.server.identity()
    server = (identity.pid, identity.started)
    characters.keep(OutboundMessage(owner=owner, text="of the dead", number=1, server=server))
    await harness.shows(pane, ">")
    await harness.control.run(loading("dead", "of the dead"))
    await injector.ledger.paste_once(1, pasting("dead", pane), owner)
    assert (await sender.send("mine", "of the living", no_mark)).number == 2
    assert harness.taken() == ["of the dead", "of the living"]


@pytest.mark.soak
async def test_unknown_words_in_the_input_are_reported(harness: Harness) -> None:
    pane = await harness.open("composer")
    sender = await a_sender(harness, pane)
    await harness.shows(pane, ">")
    await harness.control.run(loading("lost", "whose are these"))
    await Ledger(harness.control, pane).paste_once(1, pasting("lost", pane), "nobody")
    with pytest.raises(NotListening, match="its text is unknown"):
        await sender.send("mine", "of the living", no_mark)
    await harness.panes.press(pane, *["BSpace"] * len("whose are these"))
    await harness.hides(pane, "w")
    await sender.send("mine", "of the living", no_mark)
    assert harness.taken() == ["of the living"]


async def test_message_whose_number_was_taken_by_another_is_given_the_next(
    harness: Harness,
) -> None:
    """Its Podium was killed after it had written the letter, and before it pasted."""
    pane = await harness.open("composer")
    sender = await a_sender(harness, pane)
    identity = await harness.server.identity()
    character = OutboundMessage(
        owner=owner_of("mine"), text="mine", number=1, server=(identity.pid, identity.started)
    )
    OutboundMessages(harness.root / "letters").keep(character)
    await harness.injector(pane).deliver(1, "another's", "another")
    assert (await sender.send("mine", "mine", no_mark)).number == 2
    assert harness.taken() == ["another's", "mine"]


async def test_keys_are_not_pressed_while_a_message_is_on_its_way(harness: Harness) -> None:
    pane = await harness.open("composer")
    ledger = Ledger(harness.control, pane)
    await harness.shows(pane, ">")
    assert await ledger.press_between(f"send-keys -t {pane} x")
    await harness.shows(pane, "> x")
    await harness.control.run(loading("some", "words"))
    await ledger.paste_once(1, pasting("some", pane))
    assert not await ledger.press_between(f"send-keys -t {pane} y")
    assert "y" not in (await harness.shows(pane, "> xwords")).text


def test_only_the_newest_messages_are_kept(tmp_path: Path) -> None:
    characters = OutboundMessages(tmp_path)
    for number in range(310):
        characters.keep(
            OutboundMessage(owner=owner_of(str(number)), text="x", number=number, server=(1, 1))
        )
    characters.remove_old()
    assert characters.read(owner_of("0")) is None
    assert characters.read(owner_of("309")) is not None
    assert len(list(tmp_path.iterdir())) == 300


def test_damaged_outbound_message_is_ignored(tmp_path: Path) -> None:
    (tmp_path / f"{owner_of('mine')}.json").write_text('{"owner": 1')
    assert OutboundMessages(tmp_path).read(owner_of("mine")) is None
