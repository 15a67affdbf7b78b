"""Status of agents: installed, logged in, gated by what, responding."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from podium.agents import sweep_homes
from podium.agents.kinds import ABOUT, About
from podium.agents.program import newer_than, version_of
from podium.app.agent_builder import build_medium
from podium.app.app import Podium
from podium.app.dry_run import ClosedDoor, NoDoors, scratch_store
from podium.config.settings import AgentSettings
from podium.core.errors import BadInput, NotPossibleNow, PodiumError, ToolMissing
from podium.core.model import FrozenModel
from podium.core.turns import Reply, Turn, TurnLimits
from podium.sandbox import HookServer
from podium.store import StoreJournal

PROMPT = "Answer with the one word OK. Use no tool."
SECONDS = 120.0
CHECK = "check"
"""Run id of a turn that belongs to no run."""

Answer = Literal["yes", "no", "unknown"]


class Standing(FrozenModel):
    """Status of one agent, determined without asking it."""

    name: str
    kind: str
    configured: bool
    """False: its program is known here, and podium.yaml does not name it."""
    installed: Answer = "unknown"
    version: str = ""
    logged_in: Answer = "unknown"
    login: str = ""
    """By what, in words."""
    door: str = ""
    model: str = ""
    troubles: tuple[str, ...] = ()
    """Problems, each with a remedy."""
    warnings: tuple[str, ...] = ()

    @property
    def ready(self) -> bool:
        return self.installed != "no" and self.logged_in != "no" and not self.troubles


async def agent_statuses(podium: Podium) -> list[Standing]:
    """Every agent of podium.yaml, then the known programs that it does not name."""
    named = sorted(podium.settings.agents)
    used = {podium.settings.agents[name].kind for name in named}
    others = [kind for kind, about in ABOUT.items() if about.program and kind not in used]
    return list(await asyncio.gather(*(agent_status(podium, name) for name in (*named, *others))))


async def agent_status(podium: Podium, name: str) -> Standing:
    """One agent, by its name in podium.yaml or by its kind. Raises `BadInput` for neither."""
    settings = podium.settings.agents.get(name)
    kind = settings.kind if settings else name
    about = ABOUT.get(kind, About(door=""))
    if settings is None and not about.program:
        names = (*sorted(podium.settings.agents), *(k for k in ABOUT if ABOUT[k].program))
        raise BadInput(f"unknown agent {name!r}; known agents: {', '.join(names)}")
    status = Standing(
        name=name,
        kind=kind,
        configured=settings is not None,
        door=about.door,
        model=settings.model if settings else "",
        troubles=_problems(podium, name, settings),
        warnings=_warnings(podium, settings),
    )
    if status.troubles:
        return status  # what nobody trusts or understands is not started, also not for its version
    installed, version, missing = await _program(podium, name, about)
    logged_in, login, lacking = _login(podium, settings, about)
    return status.model_copy(
        update={
            "installed": installed,
            "version": version,
            "logged_in": logged_in,
            "login": login,
            "troubles": (*missing, *lacking),
        }
    )


def login_remedy(podium: Podium, kind: str) -> str:
    """Advice for logging in to a CLI that no settings name. Empty if it is logged in, or its login is not known."""
    about = ABOUT[kind]
    logged_in, _, _ = _login(podium, None, about)
    if logged_in != "no":
        return ""
    remedy = f"start `{about.program[0]}` and log in"
    key = environment_key(podium, kind)
    if not key:
        return remedy
    lines = f"secrets: [{key}] and agents: {{{kind}: {{kind: {kind}, env: {{{key}: 'secret://{key}'}}}}}}"
    return f"to use {key}, add {lines} to {podium.folders.user_file}; or {remedy}"


def environment_key(podium: Podium, kind: str) -> str:
    """The variable of Podium's environment that would log a CLI in; empty without one."""
    return next((key for key in ABOUT[kind].secret_keys if podium.environ.get(key)), "")


async def ask_once(podium: Podium, name: str) -> Reply:
    """Ask the agent for one word, in an empty folder, behind a door that lets nothing through."""
    if name not in podium.settings.agents:
        raise NotPossibleNow(
            f"podium.yaml has no agent {name!r}; add it under `agents:` and try again"
        )
    with tempfile.TemporaryDirectory(prefix="podium-check-") as folder:
        async with scratch_store(podium) as store:
            closed = ClosedDoor("this is only a check; use no tool")
            toolbox = podium.toolbox_behind(closed, Path(folder))
            doors = HookServer(closed, toolbox, StoreJournal(store))
            turn = Turn(
                run_id=CHECK,
                step_key=name,
                role="check",
                prompt=PROMPT,
                workspace=folder,
                limits=TurnLimits(seconds=SECONDS, turns=3),
                allowed_tools=(),
            )
            try:
                return await build_medium(podium, name, doors).ask(turn)
            finally:
                await asyncio.to_thread(sweep_homes, podium.folders.homes, CHECK.__eq__)


def _problems(podium: Podium, name: str, settings: AgentSettings | None) -> tuple[str, ...]:
    """Reasons why it cannot be built from podium.yaml: not trusted, unknown kind, wrong options."""
    if settings is None:
        return ()
    try:
        build_medium(podium, name, NoDoors())
    except PodiumError as error:
        return (str(error),)
    return ()


def _warnings(podium: Podium, settings: AgentSettings | None) -> tuple[str, ...]:
    """Keys that stand in a file in clear, by the name of the variable or the shape of the value."""
    env = settings.env if settings else {}
    return tuple(
        f"{name} is in the settings as plain text; set it in your environment and use secret://{name}"
        for name, value in env.items()
        if not value.startswith("secret://")
        and (name.endswith(("_KEY", "_TOKEN")) or podium.looks_secret(value) is not None)
    )


async def _program(podium: Podium, name: str, about: About) -> tuple[Answer, str, tuple[str, ...]]:
    """Look for the program: found or not, its version, and problems."""
    configured = name in podium.settings.agents
    command = (podium.configuration.command_of(name) if configured else ()) or about.program
    if not command:
        return "yes", "", ()
    if not about.program:
        # A program nobody knows may do anything when it is asked for its version.
        path = shutil.which(command[0], path=podium.environ.get("PATH"))
        return ("yes", "", ()) if path else ("no", "", (_missing(command[0], about),))
    try:
        version = await version_of(podium.launcher, command, tempfile.gettempdir())
    except ToolMissing:
        return "no", "", (_missing(command[0], about),)
    except PodiumError as error:
        return "unknown", "", (str(error),)
    if about.tried and newer_than(version, about.tried):
        return "yes", f"{version} (newer than {about.tried}, the last version tested)", ()
    return "yes", version, ()


def _missing(program: str, about: About) -> str:
    where = "does not exist" if "/" in program else "not found on PATH"
    install = f"install it with `{about.install}`, or " if about.install else ""
    return f"program {program!r} {where}; {install}set its path with `command:` in podium.yaml"


def _login(
    podium: Podium, settings: AgentSettings | None, about: About
) -> tuple[Answer, str, tuple[str, ...]]:
    env: Mapping[str, str] = settings.env if settings else {}
    if (key := about.key_in(env)) is not None:
        return _key(podium, key, env[key])
    file = about.login_file(Path(podium.environ.get("HOME") or Path.home()), podium.environ)
    if file is not None and file.is_file():
        return "yes", f"a copy of {file}", ()
    if not about.keys and file is None:
        return "unknown", "not known for this kind", ()
    add_key = f"set {about.keys[0]}: secret://NAME in its `env`" if about.keys else ""
    ways = " or ".join(filter(None, (add_key, "log in with its own program" if file else "")))
    return "no", "", (f"no key and no login; {ways}",)


def _key(podium: Podium, key: str, value: str) -> tuple[Answer, str, tuple[str, ...]]:
    if not value.startswith("secret://"):
        return "yes", f"{key} in the settings", ()
    try:
        podium.resolve_secret(value.removeprefix("secret://"))
    except PodiumError as error:
        return "no", f"{key} from {value}", (str(error),)
    return "yes", f"{key} from {value}", ()
