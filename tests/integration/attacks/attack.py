"""An attack: what a hostile agent runs, word for word."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

GROUPS = {
    "git": "git refs, config, hooks, objects",
    "files": "files outside",
    "escapes": "escapes by links, /proc, processes, mounts, namespaces, descriptors",
    "network": "network",
    "shell": "shell evasions",
    "state": "Podium's own state",
}

_PRELUDE = Path(__file__).with_name("prelude.py.txt").read_text()


@dataclass(frozen=True)
class Attack:
    """A shell text for each turn. `@NAME@` in it stands for a place in the arena."""

    id: str
    group: str
    title: str
    turns: tuple[str, ...]
    dead: Mapping[str, str] = field(default_factory=dict)
    """Why it does nothing here even without protection, for `root` or `ordinary`."""
    spares: str = ""
    """Why it is not run without confinement: it would harm the machine that runs the suite."""

    @property
    def delivers(self) -> bool:
        """Return whether its verdict depends on the import gate's decision about its commits, or on a later turn."""
        return len(self.turns) > 1 or "commit" in self.turns[0]

    def texts(self, places: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(_filled(turn, places) for turn in self.turns)


def _filled(text: str, places: Mapping[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(f"@{name}@", value)
    return text


class Group:
    """Collects the attacks of one group."""

    def __init__(self, name: str) -> None:
        assert name in GROUPS
        self.name = name
        self.attacks: list[Attack] = []

    def bash(
        self,
        id: str,
        title: str,
        *turns: str,
        dead: Mapping[str, str] | None = None,
        spares: str = "",
    ) -> None:
        attack = Attack(id, self.name, title, turns, dead or {}, spares)
        self.attacks.append(attack)

    def python(
        self,
        id: str,
        title: str,
        *turns: str,
        dead: Mapping[str, str] | None = None,
        spares: str = "",
    ) -> None:
        """The same for a text in Python, which sees the places as variables."""
        wrapped = tuple(
            f"python3 - <<'ATTACK'\n{_PRELUDE}\n{turn.strip()}\nATTACK" for turn in turns
        )
        self.bash(id, title, *wrapped, dead=dead, spares=spares)


def encoded(text: str) -> str:
    """As base64, for texts that hide what they are."""
    return base64.b64encode(text.encode()).decode()
