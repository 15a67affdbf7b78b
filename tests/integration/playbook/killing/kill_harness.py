"""A playbook followed by a model that makes calls of every kind, in processes that may be killed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

import yaml

from podium.testing.modelserver import LoggedRequest, ModelServer, Script
from tests.integration.cli.command_runner import AS_OS_USER, CommandRunner
from tests.integration.playbook.playbook_harness import Stage, of_type, trace_of

KEY = "sk-very-secret-0123456789"
NAME, REFERENCE = "GEMINI_API_KEY", "secret://MODEL_KEY"
DYING = Path(__file__).with_name("process_death.py")
MAX_RESUMES = 4
WAITS = 3
PATCH = """\
*** Begin Patch
*** Update File: version.txt
@@
-1.0
+2.0
*** Update File: readme.txt
@@
-for 1.0
+for 2.0
*** End Patch
"""


def wants(*calls: tuple[str, dict[str, Any]], text: str = "") -> dict[str, Any]:
    return {"text": text, "tools": [{"name": name, "arguments": given} for name, given in calls]}


STEPS: list[dict[str, Any]] = [
    wants(("read_file", {"path": "version.txt"}), ("list_files", {}), text="I look first."),
    wants(("write_file", {"path": "vendor/lib.txt", "content": "mine\n"})),
    wants(("no_such_tool", {"x": 1}), ("read_file", {"path": "missing.txt"})),
    wants(("run_command", {"command": "sh -c 'echo once >> effects.txt'"}), text="Now I act."),
    wants(("apply_patch", {"patch": PATCH}), ("read_file", {"path": "version.txt"})),
    wants(("finish", {"summary": "It is 2.0 now."})),
]
"""Good calls, two in one answer, a forbidden one, an unknown tool, a failing one, one that must not be
done twice, two files at once, and the end."""


@dataclass(frozen=True)
class RoleAgent:
    """Agent that follows the playbook: its settings, and its model's names for Podium's tools."""

    kind: str
    model: str
    command: tuple[str, ...] = ()
    prefix: str = ""

    def settings(self, url: str) -> dict[str, Any]:
        given = {"kind": self.kind, "model": self.model, "base_url": url, "env": {NAME: REFERENCE}}
        return {**given, "command": list(self.command)} if self.command else given

    def script(self) -> Script:
        steps = [
            {
                **step,
                "tools": [{**tool, "name": self.prefix + tool["name"]} for tool in step["tools"]],
            }
            for step in STEPS
        ]
        rules = [{"offers_tools": True, "steps": steps}]
        return Script.model_validate({"rules": rules, "default": {"steps": ["Yes."]}})


API = RoleAgent("api", "google:gemini-2.5-flash")


@dataclass(frozen=True)
class Kill:
    """Point at which a process dies. Number 0: none."""

    series: str = "after"
    number: int = 0


PEACE, PAIRS = Kill(), Kill("pairs")


class ForkServer:
    """A warm process that brings forth one for each command."""

    def __init__(self, sender: IO[str], answers: IO[str]) -> None:
        self._sender = sender
        self._answers = answers

    def perform(self, **order: Any) -> int:
        self._sender.write(json.dumps(order) + "\n")
        self._sender.flush()
        return int(self._answers.readline())


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    with subprocess.Popen(
        [sys.executable, str(DYING)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        yield ForkServer(process.stdin, process.stdout)
        process.stdin.close()


@dataclass(frozen=True)
class Life:
    """A process, from its start to its end or its death."""

    code: int
    out: str
    err: str
    durable: list[str] = field(default_factory=list)
    """Types of the events that it made durable."""
    asked: list[int] = field(default_factory=list)
    """How many answers each question held that it put to the model."""

    @property
    def died(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class Performance:
    """Result of a run that was killed and resumed."""

    root: Path
    lives: list[Life] = field(default_factory=list)
    run_id: str = ""
    doubts: list[str] = field(default_factory=list)
    """Keys of the calls that a person had to decide on."""

    @property
    def trace(self) -> list[dict[str, Any]]:
        return trace_of(self.root, self.run_id)

    def files(self) -> dict[str, bytes]:
        paths = (path for path in self.root.rglob("*") if path.is_file())
        found = {str(path.relative_to(self.root)): path.read_bytes() for path in paths}
        return {name: content for name, content in found.items() if not name.startswith(".podium")}


class KillHarness:
    """A stage whose agent speaks with a model of Google's on the loopback server."""

    def __init__(self, fork_server: ForkServer, folder: Path, role_agent: RoleAgent = API) -> None:
        self._role_agent = role_agent
        self.cli = CommandRunner(folder)
        Stage(self.cli)
        self._fork_server = fork_server
        self._folder = folder
        self._root = self.cli.project
        (self._root / "readme.txt").write_text("A plugin\nfor 1.0\n")
        self._played = Performance(self._root)
        self.checks_ran = False
        """What is said of a check that is in doubt."""

    def play(self, *kills: Kill) -> Performance:
        """Run the playbook and resume it until it has ended, each time with the next of the kills."""
        return asyncio.run(self._play(kills))

    async def _play(self, kills: Sequence[Kill]) -> Performance:
        async with ModelServer(self._role_agent.script(), key=KEY) as server:
            self._configure(server.url)
            for kill in (*kills, *[PEACE] * MAX_RESUMES):
                life = await self._live(server, kill, *self._next_command())
                if life.code == WAITS:
                    await self._resolve_doubts(server)
                elif await self._is_over(server, life):
                    break
        return self._played

    def _next_command(self) -> tuple[str, ...]:
        run_id = self._played.run_id
        return ("resume", run_id) if run_id else ("playbook", "run", "bump.md")

    async def _is_over(self, server: ModelServer, life: Life) -> bool:
        """Return whether the run has ended, perhaps just before its process died. There may be none as yet."""
        if not self._played.run_id:
            runs = json.loads((await self._live(server, PEACE, "runs", "--json")).out)["runs"]
            self._played.run_id = str(runs[0]["id"]) if runs else ""
        if life.died and "run_succeeded" in life.durable:
            # Nobody is left to write the trace; whoever reads it by Podium sees it whole.
            await self._live(server, PEACE, "trace", self._played.run_id)
            return True
        return not life.died

    async def _resolve_doubts(self, server: ModelServer) -> None:
        """As a person does who looks: the command leaves a line behind, and a check leaves nothing."""
        lines = self._played.trace
        resolved = len(of_type(lines, "tool_resolved"))
        for doubt in of_type(lines, "tool_in_doubt")[resolved:]:
            self._played.doubts.append(doubt["call"])
            is_check = ":prove:" in doubt["call"]
            happened = self.checks_ran if is_check else (self._root / "effects.txt").exists()
            answer = "--happened" if happened else "--not-happened"
            await self._live(server, PEACE, "resolve", doubt["call"], answer)

    async def _live(self, server: ModelServer, kill: Kill, *arguments: str) -> Life:
        before = server.request_count
        life = await asyncio.to_thread(self.command, *arguments, kill=kill)
        asked = [_answers_in(request) for request in server.requests[before:]]
        self._played.lives.append(replace(life, asked=asked))
        return life

    def command(self, *arguments: str, kill: Kill = PEACE) -> Life:
        """A command of Podium in a process of its own."""
        out, err, log = (self._folder / name for name in ("out", "err", "log"))
        log.write_text("")
        code = self._fork_server.perform(
            cwd=str(self._root),
            env={**self.cli.environ, **AS_OS_USER, "MODEL_KEY": KEY},
            out=str(out),
            err=str(err),
            log=str(log),
            pairs=str(self._folder / "pairs"),
            series=kill.series,
            number=kill.number,
            arguments=arguments,
        )
        return Life(code, out.read_text(), err.read_text(), log.read_text().split())

    def _configure(self, url: str) -> None:
        self.cli.says("{}\n")
        self.cli.home.mkdir(exist_ok=True)
        settings = {"agents": {"model": self._role_agent.settings(url)}, "secrets": ["MODEL_KEY"]}
        (self.cli.home / "config.yaml").write_text(yaml.safe_dump(settings))


def _answers_in(request: LoggedRequest) -> int:
    return sum(content["role"] == "model" for content in request.body["contents"])
