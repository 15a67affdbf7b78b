"""`ScriptedAgent`: asks a process that plays the script, as it would ask any headless CLI."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from podium.agents.scripted.script import AgentScript
from podium.domain.asking import Reply, Turn
from podium.domain.errors import AgentLost, TimedOut
from podium.domain.gating import Usage
from podium.domain.launching import Ended, ProcessLimits, Spawn
from podium.domain.model import Json, Noun
from podium.ports import HookDoors, Launcher

PLAYER = Path(__file__).with_name("player.py")
OUTPUT_BYTES = 4_000_000


class _Played(Noun):
    """The player's last line."""

    reply: str
    log: tuple[dict[str, Json], ...]
    next_act: int | None


class _Place(Noun):
    """Where in the script a conversation stands."""

    turn: int
    act: int


class ScriptedAgent:
    """Plays a script turn by turn, each in a process of its own.

    A turn that was told to wait for an approval goes on at that call when its session is continued.
    """

    def __init__(
        self,
        name: str,
        script: AgentScript,
        launcher: Launcher,
        doors: HookDoors,
        *,
        env: Mapping[str, str] | None = None,
        model: str = "script",
    ) -> None:
        """`env` is set for its processes, `secret://NAME` allowed; `model` is what replies say it is."""
        self._name = name
        self._env = dict(env or {})
        self._model = model
        self._script = script
        self._launcher = launcher
        self._doors = doors

    @property
    def name(self) -> str:
        return self._name

    async def ask(self, turn: Turn) -> Reply:
        place = self._place(turn)
        async with self._doors.open(turn, agent=self._name) as door:
            ended = await self._launcher.run(self._spawn(turn, place, door.env))
            waiting = door.waiting_approvals
        played = _read(ended, self._name)
        session = None
        if played.next_act is not None:
            session = _Place(turn=place.turn, act=played.next_act).model_dump_json()
        return Reply(
            text=played.reply,
            payload=list(played.log),
            usage=Usage(turns=1, seconds=ended.seconds),
            agent=self._name,
            model=self._model,
            session=session,
            seconds=ended.seconds,
            waiting_approvals=waiting,
        )

    def _place(self, turn: Turn) -> _Place:
        if turn.session is not None:
            return _Place.model_validate_json(turn.session)
        return _Place(turn=self._script.turn_for(turn), act=0)

    def _spawn(self, turn: Turn, place: _Place, env: Mapping[str, str]) -> Spawn:
        scripted = self._script.turns[place.turn]
        part = {
            "acts": [
                act.model_dump(mode="json", by_alias=True, exclude_unset=True)
                for act in scripted.acts
            ],
            "first_act": place.act,
            "reply": scripted.reply,
        }
        return Spawn(
            argv=(sys.executable, "-IS", str(PLAYER)),
            cwd=turn.workspace,
            env={**self._env, **env},
            stdin=json.dumps(part).encode(),
            limits=ProcessLimits(seconds=turn.limits.seconds, output_bytes=OUTPUT_BYTES),
        )


def _read(ended: Ended, name: str) -> _Played:
    """The reply, if the process both ended well and said one: neither alone is enough."""
    if ended.timed_out:
        raise TimedOut(f"agent {name!r} gave no answer within {ended.seconds:.1f} s")
    if ended.exit_code != 0:
        how = f"signal {ended.signal}" if ended.exit_code is None else f"exit {ended.exit_code}"
        raise AgentLost(f"agent {name!r} ended without an answer ({how}){_last_words(ended)}")
    last = ended.stdout.rstrip().rpartition(b"\n")[2]
    try:
        return _Played.model_validate_json(last)
    except ValidationError:
        raise AgentLost(f"agent {name!r} gave no answer that can be read") from None


def _last_words(ended: Ended) -> str:
    words = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
    return f": {words}" if words else ""
