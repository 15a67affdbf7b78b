"""One attack in one layout: a fresh arena, the attack, the supervisor's and a person's steps, the verdict."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from tests.integration.attacks.arena import SECRETS, Arena
from tests.integration.attacks.attack import Attack
from tests.integration.attacks.branch import wrong_with_branch
from tests.integration.attacks.kernel import end, survivors
from tests.integration.attacks.layouts import Layout, Turn
from tests.integration.attacks.person import look_around
from tests.integration.attacks.picture import Picture, Zones, left_behind
from tests.integration.attacks.witness import Witnesses

_OBJECTS = "made work/project/.git/objects"


@dataclass(frozen=True)
class Outcome:
    """Effects of an attack."""

    attack: str
    layout: str
    through: tuple[str, ...] = ()
    """Everything it should not have; empty when it was held."""
    refused: str = ""
    output: str = ""
    delivered: bool = False
    """Whether the task's own branch moved."""
    skipped: str = ""
    """Why it was not run."""
    seconds: float = 0.0


async def try_attack(arena: Arena, layout: Layout, attack: Attack) -> Outcome:
    if attack.spares and not layout.confines:
        return Outcome(attack.id, layout.name, skipped=attack.spares)
    started = time.monotonic()
    turn, found, moved = await _try(arena, layout, [attack])
    seconds = time.monotonic() - started
    return Outcome(
        attack.id, layout.name, tuple(found), turn.refused, turn.output, moved, seconds=seconds
    )


async def try_together(arena: Arena, layout: Layout, attacks: Sequence[Attack]) -> list[Outcome]:
    """Attacks whose commits do not matter, by one agent in one arena. If anything gets through, each is tried alone."""
    _, found, _ = await _try(arena, layout, attacks)
    if not found:
        return [Outcome(attack.id, layout.name) for attack in attacks]
    alone = [await try_attack(arena, layout, attack) for attack in attacks]
    if any(outcome.through for outcome in alone):
        return alone
    return [replace(outcome, through=("only together", *found)) for outcome in alone]


async def _try(
    arena: Arena, layout: Layout, attacks: Sequence[Attack]
) -> tuple[Turn, list[str], bool]:
    arena.renew()
    nonce = secrets.token_hex(8)
    witnesses = Witnesses(arena.places.root, nonce, arena.users_env())
    try:
        return await _fought(arena, layout, attacks, witnesses)
    finally:
        end(survivors(nonce))
        witnesses.close()


async def _fought(
    arena: Arena, layout: Layout, attacks: Sequence[Attack], witnesses: Witnesses
) -> tuple[Turn, list[str], bool]:
    places = {**places_of(arena), **witnesses.places()}
    worktree = Path(arena.task.path)
    zones, picture = Zones(worktree), Picture(arena.places, arena.task)
    whole = Turn()
    turns = zip_longest(*(attack.texts(places) for attack in attacks), fillvalue="")
    for texts in turns:
        turn = await layout.turn(arena, texts, {"ATTACK": witnesses.nonce}, places)
        whole.output += turn.output
        whole.refused += turn.refused
    lived_on = survivors(witnesses.nonce)
    hung = await asyncio.to_thread(look_around, arena)
    moved, wrong = (False, hung) if hung else wrong_with_branch(arena)
    changed = picture.changed_to(Picture(arena.places, arena.task))
    found = [what for what in changed if not (moved and what.startswith(_OBJECTS))]
    found += zones.changed_to(Zones(worktree)) + wrong
    found += left_behind(worktree)
    found += witnesses.noticed() + list(_messages(whole.output))
    found += ["left processes behind"] if lived_on else []
    return whole, found, moved


def places_of(arena: Arena) -> dict[str, str]:
    places = arena.places
    return {
        "ROOT": str(places.root),
        "REPO": str(places.repository),
        "REMOTE": str(places.remote),
        "WT": arena.task.path,
        "OTHER": arena.other.path,
        "HOME": str(places.home),
        "OUT": str(places.outside),
        "STATE": str(places.state),
        "PRIVATE": arena.task.private,
        "OTHER_PRIVATE": arena.other.private,
        "ADMIN": arena.task.admin,
        "OTHER_ADMIN": arena.other.admin,
        "BRANCH": arena.task.branch,
        "BASE": arena.task.base,
        "SCRATCH": f"{arena.task.private}/home",
        "MARKS": str(places.marks),
        "UID": str(os.getuid()),
    }


def _messages(output: str) -> Iterator[str]:
    """Yield the secrets that an attack read, and what it claims to have obtained."""
    for secret in SECRETS:
        if secret in output:
            yield f"read {secret}"
    yield from (f"got {line[4:]}" for line in output.splitlines() if line.startswith("GOT "))
