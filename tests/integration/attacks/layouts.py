"""The ways in which an agent can be held, from not at all to Podium's own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from podium.core.decisions import Effect
from podium.core.errors import PodiumError
from podium.core.processes import Confinement, ExecRules, Mount, ProcessLimits, ProcessSpec
from podium.policy import RuleGate, exec_rules
from podium.sandbox import ProcessLauncher
from podium.sandbox.confining.canary import LANDLOCK, Mechanism
from podium.sandbox.confining.proxy import serve_network
from tests.integration.attacks.arena import FORBIDDEN, SEARCH_PATH, Arena
from tests.integration.sandbox.terminals import on_terminal
from tests.unit.gate.gate_harness import command_call, context_for, gate_of

SECONDS = 60.0
_MAX_OUTPUT_BYTES = 1_000_000
Facts = Mapping[str, str]
"""The places of the arena, by name."""


@dataclass
class Turn:
    """Result of an agent's turn."""

    output: str = ""
    refused: str = ""
    """Who said no, and why; empty when nobody did."""


def joined(turns: Sequence[Turn]) -> Turn:
    output, refused = (
        "".join(parts) for parts in zip(*((t.output, t.refused) for t in turns), strict=True)
    )
    return Turn(output, refused)


class Layout(ABC):
    """Runs an agent's turn, then whatever the supervisor does after it."""

    name: str
    confines = True

    def __init__(self, inherited: tuple[int, ...]) -> None:
        """Descriptors of the supervisor, which a careless one hands on to the agent."""
        self.inherited = inherited

    @abstractmethod
    async def turn(
        self, arena: Arena, texts: Sequence[str], env: Mapping[str, str], facts: Facts
    ) -> Turn:
        """Run the texts one after the other. Whatever an agent brings about, nothing is raised but what is wrong with the suite."""


class Nothing(Layout):
    """No protection at all: the agent is a process of the user like any other."""

    name, confines = "none", False

    async def turn(
        self, arena: Arena, texts: Sequence[str], env: Mapping[str, str], facts: Facts
    ) -> Turn:
        return joined([await self.process(arena, text, env) for text in texts])

    async def process(self, arena: Arena, text: str, env: Mapping[str, str]) -> Turn:
        # Not a pipe: what the agent leaves running would hold it open.
        with tempfile.TemporaryFile() as output:
            process = await asyncio.create_subprocess_exec(
                "/bin/bash", "-c", text,
                cwd=arena.task.path,
                env={**arena.users_env(), **env},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.inherited,
            )  # fmt: skip
            try:
                async with asyncio.timeout(SECONDS):
                    await process.wait()
            except TimeoutError:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
            output.seek(0)
            return Turn(output.read(_MAX_OUTPUT_BYTES).decode(errors="replace"))


_ZONES = f"zones: {{closed: {{kind: forbidden, paths: [{', '.join(FORBIDDEN)}]}}}}"


def _refusal(gate: RuleGate, arena: Arena, text: str, *, confined: bool) -> str:
    """Return the gate's refusal to an agent that is confined or not; empty when it allows."""
    context = context_for(
        root=arena.task.path,
        mode="autonomous",
        confined=confined,
        network="model-only" if confined else "open",
    )
    decision = gate.decide(command_call(text), context)
    return "" if decision.effect is Effect.ALLOW else f"{decision.rule}: {decision.reason}"


class Firewall(Nothing):
    """The gate reads the words; what it lets pass runs unconfined."""

    name = "firewall"
    sandbox_is_believed = False

    def __init__(self, inherited: tuple[int, ...]) -> None:
        super().__init__(inherited)
        self._gate = gate_of(default=True, user=_ZONES)

    async def process(self, arena: Arena, text: str, env: Mapping[str, str]) -> Turn:
        refused = _refusal(self._gate, arena, text, confined=self.sandbox_is_believed)
        return Turn(refused=refused) if refused else await super().process(arena, text, env)


class TrustingFirewall(Firewall):
    """As it reads for confined agents, leaving to the sandbox what it cannot decide; without one."""

    name = "trusting"
    sandbox_is_believed = True


def _rules_for(arena: Arena) -> ExecRules:
    task = arena.task
    own = (task.path, task.repository, task.git_dir, f"{task.private}/git")
    return exec_rules().model_copy(update={"repositories": own})


class Default(Layout):
    """Podium's own: a workspace, mounts and exec guard, import gate, hygiene."""

    name = "default"
    mechanism: Mechanism | None = None
    guarded = True

    def __init__(self, inherited: tuple[int, ...]) -> None:
        super().__init__(inherited)
        self.launcher = ProcessLauncher(
            serve=serve_network({}), parent_env={"PATH": SEARCH_PATH}, mechanism=self.mechanism
        )

    async def turn(
        self, arena: Arena, texts: Sequence[str], env: Mapping[str, str], facts: Facts
    ) -> Turn:
        workspace = await arena.workspaces(self.launcher).open(arena.task.id)
        turn = Turn()
        try:
            seen = await workspace.begin_turn()
            try:
                confinement = self.held(arena, await workspace.confinement(), facts)
                turn = await self.agents(arena, texts, env, confinement)
            finally:
                await workspace.end_turn(seen)
            await workspace.deliver()
        except PodiumError as refused:
            return Turn(turn.output, f"{type(refused).__name__}: {refused}")
        return turn

    async def agents(
        self, arena: Arena, texts: Sequence[str], env: Mapping[str, str], confinement: Confinement
    ) -> Turn:
        return joined([await self._tried(arena, text, env, confinement) for text in texts])

    async def _tried(
        self, arena: Arena, text: str, env: Mapping[str, str], confinement: Confinement
    ) -> Turn:
        try:
            return await self.agent(arena, text, env, confinement)
        except PodiumError as refused:
            return Turn(refused=f"{type(refused).__name__}: {refused}")

    def held(self, arena: Arena, confinement: Confinement, facts: Facts) -> Confinement:
        """With what an agent gets beside its workspace: the model's port, a listed host, rules for programs."""
        return confinement.model_copy(
            update={
                "home": f"{arena.task.private}/home",
                "network": "model-only",
                "hosts": (f"127.0.0.1:{facts['ALLOWED']}",),
                "forwarded_ports": (int(facts["MODEL"]),),
                "execs": _rules_for(arena) if self.guarded else None,
            }
        )

    async def agent(
        self, arena: Arena, text: str, env: Mapping[str, str], confinement: Confinement
    ) -> Turn:
        ended = await self.launcher.run(self.spawn(arena, text, env, confinement))
        output = (ended.stdout + ended.stderr).decode(errors="replace")
        return Turn(output, "; ".join(ended.refused_execs))

    def spawn(
        self, arena: Arena, text: str, env: Mapping[str, str], confinement: Confinement
    ) -> ProcessSpec:
        return ProcessSpec(
            argv=("bash", "-c", text),
            cwd=arena.task.path,
            env={"PATH": SEARCH_PATH, "HOME": f"{arena.task.private}/home", **env},
            limits=ProcessLimits(seconds=SECONDS),
            confinement=confinement,
        )


class OnTerminal(Default):
    """The same on a terminal, where nothing of it hangs on the Podium that asked for it."""

    name = "terminal"

    async def agent(
        self, arena: Arena, text: str, env: Mapping[str, str], confinement: Confinement
    ) -> Turn:
        # On a terminal git would wait for somebody to turn the page.
        spawn = self.spawn(arena, text, {**env, "GIT_PAGER": "cat"}, confinement)
        command = await self.launcher.on_terminal(spawn)
        with on_terminal(command) as terminal:
            await terminal.exit_code()
            return Turn(terminal.text.replace("\r", ""))


class LandlockOnTerminal(OnTerminal):
    """And where nothing can be mounted."""

    name = "terminal-landlock"
    mechanism = Mechanism(name=LANDLOCK)


class Mounts(Default):
    """Without the rules for programs, which teach and record: what is left must hold by itself."""

    name, guarded = "mounts", False


class Landlock(Default):
    """For machines on which nothing can be mounted."""

    name = "landlock"
    mechanism = Mechanism(name=LANDLOCK)


class Ungated(Default):
    """The same mounts, but commits are fetched as they are, and nobody tidies up."""

    name = "ungated"

    async def turn(
        self, arena: Arena, texts: Sequence[str], env: Mapping[str, str], facts: Facts
    ) -> Turn:
        workspace = await arena.workspaces(self.launcher).open(arena.task.id)
        try:
            confinement = self.held(arena, await workspace.confinement(), facts)
        except PodiumError as refused:  # for what an earlier turn of this attack did
            return Turn(refused=f"{type(refused).__name__}: {refused}")
        turn = await self.agents(arena, texts, env, confinement)
        try:
            self._fetch(arena)
        except subprocess.TimeoutExpired:
            turn.output += "\nGOT the supervisor's git to hang"
        return turn

    def _fetch(self, arena: Arena) -> None:
        refspec = f"+{arena.task.branch}:{arena.task.branch}"
        objects = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{arena.task.git_dir}/objects"}
        source = f"{arena.task.private}/git"
        arena.git(
            "fetch",
            "-q",
            "--update-head-ok",
            "--no-write-fetch-head",
            source,
            refspec,
            check=False,
            env=objects,
        )


class Policed(Ungated):
    """The gate's words and the mounts, as by default: only the import gate and hygiene are off."""

    name = "policed"

    def __init__(self, inherited: tuple[int, ...]) -> None:
        super().__init__(inherited)
        self._gate = gate_of(default=True, user=_ZONES)

    async def agent(
        self, arena: Arena, text: str, env: Mapping[str, str], confinement: Confinement
    ) -> Turn:
        refused = _refusal(self._gate, arena, text, confined=True)
        return (
            Turn(refused=refused) if refused else await super().agent(arena, text, env, confinement)
        )


class Unpinned(Default):
    """The worktree is open but for its `.git`: import gate and hygiene must keep protected paths by themselves."""

    name, guarded = "unpinned", False

    def held(self, arena: Arena, confinement: Confinement, facts: Facts) -> Confinement:
        inside = f"{arena.task.path}/"
        mounts = tuple(
            mount
            for mount in confinement.mounts
            if not mount.target.startswith(inside) or mount.target == f"{inside}.git"
        )
        unpinned = confinement.model_copy(update={"mounts": mounts, "pinned": ()})
        return super().held(arena, unpinned, facts)


class SharedGit(Default):
    """The usual sandbox: the worktree and the git directory it belongs to are writable."""

    name, guarded = "shared", False

    async def turn(
        self, arena: Arena, texts: Sequence[str], env: Mapping[str, str], facts: Facts
    ) -> Turn:
        writable = (arena.task.path, arena.task.git_dir, f"{arena.task.private}/home")
        mounts = tuple(Mount(source=path, target=path, writable=True) for path in writable)
        confinement = self.held(arena, Confinement(kind="kernel", mounts=mounts), facts)
        return await self.agents(arena, texts, env, confinement)


LAYOUTS: tuple[type[Layout], ...] = (
    Nothing, TrustingFirewall, Firewall, SharedGit, Ungated, Policed, Unpinned, LandlockOnTerminal, OnTerminal,
    Landlock, Mounts, Default,
)  # fmt: skip
"""From the weakest on."""
