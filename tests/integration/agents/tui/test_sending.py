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
from tests.integration.agents.tui.rig import House, a_server


async def no_mark() -> Json:
    return None


async def a_sender(house: House, pane: str) -> Sender:
    injector, letters = house.injector(pane), OutboundMessages(house.root / "letters")
    fates = ScreenProbe(house.control, pane, injector, lambda _: "ready", None)
    return Sender(injector, letters, await house.server.identity(), 1, fates)


async def test_the_same_key_is_sent_once_and_another_gets_the_next_number(house: House) -> None:
    sender = await a_sender(house, await house.open("composer"))
    first = await sender.send("one", "first", no_mark)
    assert await sender.send("one", "first", no_mark) == first
    assert (await sender.send("two", "second", no_mark)).number == 2
    assert house.taken() == ["first", "second"]


async def test_two_podiums_that_send_at_the_same_time_both_arrive_once(
    house: House, root: Path
) -> None:
    pane = await house.open("composer")
    other = House(a_server(root), root)
    senders = [await a_sender(house, pane), await a_sender(other, pane)]
    await asyncio.gather(
        *(
            sender.send(f"{who} {number}", f"{who} says {number}\nto it", no_mark)
            for number in range(5)
            for who, sender in enumerate(senders)
        )
    )
    assert sorted(house.taken()) == sorted(
        f"{who} says {n}\nto it" for who in (0, 1) for n in range(5)
    )
    assert await house.control.ask("list-buffers") == []
    other.activity.close()
    await other.server.close()


async def test_who_comes_second_with_a_number_sees_that_it_was_not_his_words(house: House) -> None:
    pane = await house.open("composer")
    winner, loser = house.injector(pane), house.injector(pane)
    await winner.deliver(1, "the winner's", "winner")
    with pytest.raises(NumberTaken):
        await loser.deliver(1, "the loser's", "loser")
    assert (await winner.deliver(1, "the winner's", "winner")).before
    assert house.taken() == ["the winner's"]


async def test_who_is_late_by_a_moment_sees_it_too_and_leaves_no_words_behind(house: House) -> None:
    """Both have found the number free; the other's paste comes first."""
    pane = await house.open("composer")
    injector = house.injector(pane)
    quicker = Ledger(house.control, pane)

    class Late(Ledger):
        async def paste_once(self, number: int, commands: str, owner: str = "") -> None:
            await house.control.run(loading("quick", "quicker"))
            await quicker.paste_once(number, pasting("quick", pane), "quicker")
            await super().paste_once(number, commands, owner)

    injector.ledger = Late(house.control, pane)
    with pytest.raises(NumberTaken):
        await injector.deliver(1, "late", "late")
    assert await house.control.ask("list-buffers") == []
    assert (await house.shows(pane, "> quicker")).text.count("late") == 0


async def test_what_a_dead_podium_left_in_the_input_is_sent_by_whoever_comes_next(
    house: House,
) -> None:
    pane = await house.open("composer")
    sender = await a_sender(house, pane)
    injector: Injector = house.injector(pane)
    letters, owner = OutboundMessages(house.root / "letters"), owner_of("dead")
    identity = await house.server.identity()
    server = (identity.pid, identity.started)
    letters.keep(OutboundMessage(owner=owner, text="of the dead", number=1, server=server))
    await house.shows(pane, ">")
    await house.control.run(loading("dead", "of the dead"))
    await injector.ledger.paste_once(1, pasting("dead", pane), owner)
    assert (await sender.send("mine", "of the living", no_mark)).number == 2
    assert house.taken() == ["of the dead", "of the living"]


@pytest.mark.soak
async def test_words_in_the_input_that_nobody_knows_are_told(house: House) -> None:
    pane = await house.open("composer")
    sender = await a_sender(house, pane)
    await house.shows(pane, ">")
    await house.control.run(loading("lost", "whose are these"))
    await Ledger(house.control, pane).paste_once(1, pasting("lost", pane), "nobody")
    with pytest.raises(NotListening, match="its text is unknown"):
        await sender.send("mine", "of the living", no_mark)
    await house.panes.press(pane, *["BSpace"] * len("whose are these"))
    await house.hides(pane, "w")
    await sender.send("mine", "of the living", no_mark)
    assert house.taken() == ["of the living"]


async def test_a_letter_whose_number_went_to_another_is_given_the_next(house: House) -> None:
    """Its Podium was killed after it had written the letter, and before it pasted."""
    pane = await house.open("composer")
    sender = await a_sender(house, pane)
    identity = await house.server.identity()
    letter = OutboundMessage(
        owner=owner_of("mine"), text="mine", number=1, server=(identity.pid, identity.started)
    )
    OutboundMessages(house.root / "letters").keep(letter)
    await house.injector(pane).deliver(1, "another's", "another")
    assert (await sender.send("mine", "mine", no_mark)).number == 2
    assert house.taken() == ["another's", "mine"]


async def test_keys_are_not_pressed_while_a_message_is_on_its_way(house: House) -> None:
    pane = await house.open("composer")
    ledger = Ledger(house.control, pane)
    await house.shows(pane, ">")
    assert await ledger.press_between(f"send-keys -t {pane} x")
    await house.shows(pane, "> x")
    await house.control.run(loading("some", "words"))
    await ledger.paste_once(1, pasting("some", pane))
    assert not await ledger.press_between(f"send-keys -t {pane} y")
    assert "y" not in (await house.shows(pane, "> xwords")).text


def test_only_the_newest_letters_are_kept(tmp_path: Path) -> None:
    letters = OutboundMessages(tmp_path)
    for number in range(310):
        letters.keep(
            OutboundMessage(owner=owner_of(str(number)), text="x", number=number, server=(1, 1))
        )
    letters.remove_old()
    assert letters.read(owner_of("0")) is None
    assert letters.read(owner_of("309")) is not None
    assert len(list(tmp_path.iterdir())) == 300


def test_a_damaged_letter_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / f"{owner_of('mine')}.json").write_text('{"owner": 1')
    assert OutboundMessages(tmp_path).read(owner_of("mine")) is None
