"""A root with everything an order might be after, and the worker's own way of acting on it."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from podium.app.approvals import approve
from podium.app.confining_launcher import ConfiningLauncher
from podium.config.settings import SandboxSettings
from podium.core.decisions import CallOutcome, Refusal
from podium.core.errors import PodiumError
from podium.core.model import Json
from podium.jobs.sense.options import SenseOptions
from podium.jobs.sense.orders.order_tools import order_tools, sense_tools
from podium.jobs.sense.orders.policy import OrderConfinement, worker_layer
from podium.jobs.sense.orders.work_order import Operation
from podium.policy import (
    PolicyLayer,
    RuleGate,
    compile_policy,
    default_policy,
    exec_rules,
    split_command,
)
from podium.sandbox import LauncherSettings, ProcessLauncher, visible_paths
from podium.testing import FixedClock, MemoryStore, SteadyIds
from podium.tools import (
    DoorSettings,
    GatedDoor,
    LocalToolbox,
    Registry,
    ToolboxSettings,
    builtin_tools,
)

RUN = "run_1"
SECRET = "sk-proj-0123456789abcdef0123456789"
OPTIONS = SenseOptions(forbidden_zones=("CLC", "CLS", "g/docs/closed"))
SANDBOX = SandboxSettings(kind="kernel", network="none")
FILES = {
    "CLC/rules.md": "forbidden",
    "CLC/bin/run.sh": "#!/bin/sh\n",
    "CLS/state.json": "{}",
    "g/docs/readme.md": "a document\n",
    "g/docs/closed/inner.md": "forbidden inside a safe zone",
    "g/tools/tool.zsh": "echo hi\n",
    "g/core/engine.py": "print('outside of the safe zones')\n",
    "g/reports/old/report.md": "old",
    "g/knowledge/README.md": "known",
    "g/telemetry/health_check_latest.json": "{}",
    "logs/a.log": "one\n",
    "state/clc_sessions/SESSION-DEMO-001.yaml": "status: running\n",
    "bridge/inbox/CLC/WO-WAITING.yaml": "id: WO-WAITING\ntitle: waits\n",
    "bridge/claimed/CLC/WO-TAKEN.yaml": "id: WO-TAKEN\ntitle: taken\n",
    "bridge/outbox/LIAM/WO-DONE.ack.json": "{}",
    "bridge/done/CLC/WO-OLD.yaml": "id: WO-OLD\ntitle: done\n",
    "bridge/parked/CLC/WO-POISON.yaml": "id: WO-POISON\ntitle: parked\n",
    "podium.yaml": "flows: {sense: {mode: autonomous}}\n",
    "README.md": "the project",
    ".env": "KEY=1\n",
    ".git/config": "[core]\n",
    ".git/HEAD": "ref: refs/heads/main\n",
    ".podium/podium.db": "the record",
}
OURS = (".podium/kept", ".podium/trash")
"""What performing orders may add to Podium's own folder."""
_REPEATED = re.compile(r"\{(\d+)\*(.)\}")


class Ground:
    """One root, with a folder beside it that is nobody's business."""

    def __init__(self, folder: Path) -> None:
        self.root = (folder / "root").resolve()
        self.outside = (folder / "outside").resolve()
        self.empty = folder / "empty"
        for path, content in FILES.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        (self.root / ".git/hooks").mkdir()
        self.outside.mkdir()
        (self.outside / "victim.txt").write_text("not of the project")

    def filled(self, value: Json) -> Json:
        """Placeholders of the list, filled in."""
        if isinstance(value, dict):
            return {self.filled(key): self.filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if not isinstance(value, str):
            return value
        value = value.replace("{root}", str(self.root)).replace("{outside}", str(self.outside))
        value = value.replace("{secret}", SECRET)
        return _REPEATED.sub(lambda match: match[2] * int(match[1]), value)

    def prepare(self, given: list[dict[str, str]]) -> None:
        for item in self.filled(given):
            kind = next(kind for kind in ("link", "hard", "pipe", "repository") if kind in item)
            place = self.root / item[kind]
            place.parent.mkdir(parents=True, exist_ok=True)
            if kind == "link":
                place.symlink_to(item["to"])
            elif kind == "hard":
                place.hardlink_to(self.root / item["to"])
            elif kind == "pipe":
                os.mkfifo(place)
            else:
                shutil.rmtree(place / ".git")
                subprocess.run(["git", "init", "-q", str(place)], check=True)
                person = "[user]\n\tname = Ann\n\temail = ann@example.com\n"
                with (place / ".git/config").open("a") as config:
                    config.write(person)

    def guarded(self) -> dict[str, tuple[object, ...]]:
        """Everything but the safe zones: what it is, which one it is, and what it holds."""
        return {path: _picture(path) for path in self._places() if not self._is_safe(path)}

    def shared(self) -> set[str]:
        """Files of safe zones that are also files elsewhere."""
        mine, elsewhere = [], set()
        for path in self._places():
            if self._is_safe(path):
                mine.append(path)
            else:
                elsewhere.add(_identity(path))
        return {path for path in mine if _identity(path) in elsewhere}

    def _places(self) -> Iterator[str]:
        for top in (self.root, self.outside):
            yield str(top)
            for folder, folders, files in os.walk(top):
                yield from (f"{folder}/{name}" for name in (*folders, *files))

    def _is_safe(self, path: str) -> bool:
        if not path.startswith(f"{self.root}/"):
            return False
        inner = path[len(str(self.root)) + 1 :] + "/"
        return inner.startswith(_SAFE) and not inner.startswith(_CLOSED)


_LAYOUT = OPTIONS.layout
_BRIDGE = (_LAYOUT.inbox, _LAYOUT.claimed, _LAYOUT.done, _LAYOUT.parked, _LAYOUT.acks)
_CLOSED = tuple(f"{place.rstrip('/')}/" for place in (*OPTIONS.forbidden_zones, *_BRIDGE))
_SAFE = tuple(f"{place.rstrip('/')}/" for place in (*OPTIONS.safe_zones, *OURS))


def _identity(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _picture(path: str) -> tuple[object, ...]:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        content: object = os.readlink(path)
    elif stat.S_ISREG(found.st_mode):
        content = Path(path).read_bytes(), found.st_mtime_ns
    else:
        # Podium's own folder grows by what it keeps.
        content = found.st_mtime_ns if not path.endswith("/.podium") else None
    return found.st_mode, found.st_ino, content


class Hands:
    """The worker's tools, its gate and its fence, as they are wired, on a store in memory."""

    def __init__(self, ground: Ground, role: str = "worker") -> None:
        self.ground, self.role = ground, role
        self.clock, self.ids = FixedClock(), SteadyIds()
        self.store = MemoryStore(self.clock)
        root = str(ground.root)
        gate = _gate()
        fence = OrderConfinement(OPTIONS, SANDBOX, exec_rules, ground.empty)
        registry = _registry()
        door = GatedDoor(
            self.store,
            gate,
            registry.spec,
            clock=self.clock,
            ids=self.ids,
            settings=DoorSettings(root=root, mode="autonomous"),
            redact=_redact,
            held=fence.held,
        )
        self.toolbox = LocalToolbox(
            registry,
            door,
            _launcher(ground),
            confinements=fence,
            clock=self.clock,
            settings=ToolboxSettings(root=root, undo_folder=f"{root}/.podium/kept"),
            split_command=split_command,
            looks_secret=lambda text: "API_KEY" if SECRET in text else None,
            resolve_secret=lambda name: SECRET,
            redact=_redact,
            passed_over=gate.passed_over,
        )

    async def do(self, number: int, op: Json) -> str:
        """Perform the operation while people approve whatever they are asked; return "done", "asked", or the refusal.

        "asked" is what was done after a yes.
        """
        try:
            tool, arguments = Operation.model_validate(op).call
            call = self.toolbox.normalise(
                tool, arguments, run_id=RUN, step_key=f"op#{number}", index=0, role=self.role
            )
            answer = await self.toolbox.perform(call)
            asked = isinstance(answer, Refusal) and answer.approval_id is not None
            if isinstance(answer, Refusal) and answer.approval_id is not None:
                await approve(self.store, self.clock, self.ids, answer.approval_id, by="ann")
                answer = await self.toolbox.perform(call)
        except (ValidationError, PodiumError) as error:
            return f"refused: {error}"
        return _end_of(answer, asked=asked)


def _end_of(answer: CallOutcome | Refusal, *, asked: bool) -> str:
    if isinstance(answer, Refusal):
        return f"refused: {answer.decision.rule}: {answer.decision.reason}"
    if not answer.ok:
        result: Any = answer.result if isinstance(answer.result, dict) else {}
        return f"refused: {answer.error} {result.get('stderr', '')}"
    return "asked" if asked else "done"


def _redact(text: str) -> str:
    return text.replace(SECRET, "[redacted:API_KEY]")


@cache
def _registry() -> Registry:
    """Those of the loop are there too: that the worker may not use them is for the gate to say."""
    ours = sense_tools(_LAYOUT.inbox, _LAYOUT.candidates)
    return Registry([*builtin_tools(), *order_tools(), *ours])


@cache
def _gate() -> RuleGate:
    return compile_policy(
        [PolicyLayer(origin="built-in", policy=default_policy()), worker_layer(OPTIONS)]
    )


@cache
def _own_launcher() -> ProcessLauncher:
    """One for all: each finds out anew how the kernel of this machine confines."""
    return ProcessLauncher(LauncherSettings(), parent_env={"PATH": os.environ["PATH"]})


def _launcher(ground: Ground) -> ConfiningLauncher:
    environ = {"PATH": os.environ["PATH"], "HOME": str(ground.outside)}
    return ConfiningLauncher(
        _own_launcher(),
        SANDBOX,
        environ,
        needed_folders=lambda programs, untrusted, search_path: visible_paths(
            programs,
            search_path,
            home=environ["HOME"],
            project=str(ground.root),
            closed=(),
            untrusted=untrusted,
        ),
    )
