"""Set-up of a project by `podium init`: survey of the folder, the proposed podium.yaml, written all at once or not at all."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from pydantic import Field

from podium.app.checks import (
    ADVICE,
    Check,
    Detection,
    cannot_test,
    missing_programs,
    named_checks,
    remedy_for,
)
from podium.config.folders import (
    IGNORE_FILE,
    PROJECT_FILE,
    STATE_FOLDER,
    refuse_foreign_state,
    write_new,
)
from podium.core.errors import BadInput, NotPossibleNow, PodiumError
from podium.core.model import FrozenModel, Json
from podium.render.text import escaped_line

if TYPE_CHECKING:
    from podium.app.agent_status import Standing
    from podium.app.app import Podium
    from podium.core.workspaces import CheckoutStatus

_HEAD = """\
# Settings of Podium for this project. `podium config show --origin` prints what is in force and why; a key that
# Podium does not know is an error. Policy, budgets and sandbox only tighten here: nothing in this file can loosen
# your own settings. To use an example, remove the `#` at the start of its lines.

# How far Podium goes on its own: sensing and dry-run change nothing, supervised asks people, autonomous asks less.
mode: supervised
"""
_AGENTS = """\
# The agents, by a name of your choice. `podium init` found these programs installed;
# `podium agents list` shows all that Podium knows.
agents:
"""
_NO_AGENTS = """\
# The agents, by a name of your choice: claude, codex, gemini or opencode as they are installed and logged in
# (`podium agents list`), acp, api, any command; a `scripted` one plays what its file says, without a model.
#agents:
#  claude: {kind: claude}
#  player: {kind: scripted, script: script.yaml}
"""
_ROLES = """\
# Which agent plays which role of `podium run`. In a list, the next one takes over when one is down, out of quota
# or not logged in.
roles:
"""
_NO_ROLES = """\
# Which agent plays which role of `podium run`; `default` plays every role that is not listed, and in a list the
# next one takes over when one is down, out of quota or not logged in.
#roles:
#  default: {agent: claude}
#  auditor: {agent: [claude, player]}
"""
_CHECKS = """\
# Commands that must succeed before work is accepted. Podium runs them itself, in the sandbox, on the commit that
# an agent delivered.
checks:
"""
_NO_CHECKS = """\
# Commands that must succeed before work is accepted. Podium runs them itself, in the sandbox, on the commit that
# an agent delivered. Without `checks`, each run looks for the project's test command.
#checks:
#  - make test
"""
_REST = """\
# Who may answer when a rule asks for a group.
#approvers:
#  owner: [ann]

# Limits that end a run before they are passed.
#budgets:
#  run: {usd: 5.0, seconds: 3600}

# Text that is never stored or printed, beside known token shapes and secret variables.
#redact: ['internal-[0-9]{6}']
"""
_PRODUCTS = {"claude": "Claude Code", "codex": "codex", "gemini": "Gemini CLI", "opencode": "opencode"}  # fmt: skip
_MAX_COMMENT_CHARACTERS = 100


class Proposal(FrozenModel):
    """Settings that a project lacks, as `podium init` would write them."""

    agents: tuple[str, ...] = ()
    """Kinds to name under `agents:`, each under its own name."""
    login_remedies: dict[str, str] = Field(default_factory=dict)
    """Kind → how to log in, of every installed CLI when nobody is logged in to any of them."""
    candidates: tuple[str, ...] = ()
    """Agents to cast in roles, the best first: those above, or those that the settings name already."""
    roles: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Role → agents, in the order of asking."""
    checks: tuple[Check, ...] | None = None
    """None: none is named, and every run looks for one. Empty: the project has none."""
    other_checks: tuple[Check, ...] = ()
    """Found for other languages of the project; written as examples."""
    notes: tuple[str, ...] = ()
    """Notes for the user."""
    repository_problem: str = ""
    """Reason why `podium run` would not start here. Empty: it would."""
    checks_problem: str = ""
    """Reason why a run would stop before its first agent. Empty: it would not."""

    def written_by(self, agent: str) -> Proposal:
        """The same with this agent as the one that writes the code."""
        candidates = (agent, *(name for name in self.candidates if name != agent))
        return self.model_copy(update={"candidates": candidates, "roles": cast_roles(candidates)})

    def checked_by(self, command: str) -> Proposal:
        """The same with this command as the only check; empty: with none."""
        named = tuple(check for check in self.checks or () if check.command == command)
        typed = (Check(name=command, command=command),) if command else ()
        return self.model_copy(update={"checks": named or typed})


NOTHING_PROPOSED = Proposal()


def cast_roles(candidates: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The first plays every role, the others take over; the code is reviewed by another than wrote it."""
    if not candidates:
        return {}
    first, *others = candidates
    reviewer = {"auditor": (*others, first)} if others else {}
    return {"default": tuple(candidates), **reviewer}


def project_text(proposal: Proposal) -> str:
    """The whole podium.yaml of a new project."""
    agents, roles, checks = _agents(proposal), _roles(proposal), _checks(proposal)
    parts = (_HEAD, agents or _NO_AGENTS, roles or _NO_ROLES, checks or _NO_CHECKS, _REST)
    return "\n".join(parts)


def additions_text(proposal: Proposal) -> str:
    """The parts that an existing podium.yaml could take over; empty when it lacks nothing."""
    parts = (_agents(proposal), _roles(proposal), _checks(proposal))
    return "\n".join(part for part in parts if part)


def _agents(proposal: Proposal) -> str:
    if not proposal.agents:
        return ""
    lines = (
        f"  {kind}: {{kind: {kind}}}  # {_PRODUCTS[kind]}"
        f"{', not logged in yet' if kind in proposal.login_remedies else ''}\n"
        for kind in proposal.agents
    )
    return _AGENTS + "".join(lines)


def _roles(proposal: Proposal) -> str:
    if not proposal.roles:
        return ""
    reasons = {
        "default": "every role that is not listed",
        "auditor": "reviews the code: a different agent from the one that wrote it",
    }
    lines = (
        f"  {role}: {_inline({'agent': names[0] if len(names) == 1 else list(names)})}  # {reasons[role]}\n"
        for role, names in proposal.roles.items()
    )
    return _ROLES + "".join(lines)


def _checks(proposal: Proposal) -> str:
    if proposal.checks is None:
        return ""
    if not proposal.checks:
        return _CHECKS.replace("checks:\n", "checks: []\n")
    lines = [f"  - {_check(check)}\n" for check in proposal.checks]
    lines += [f"#  - {_check(check)}\n" for check in proposal.other_checks]
    return _CHECKS + "".join(lines)


def _check(check: Check) -> str:
    source = escaped_line(check.source, _MAX_COMMENT_CHARACTERS)
    return _inline(check.command) + (f"  # found in {source}" if source else "")


def _inline(value: Json) -> str:
    """The value as YAML on one line, whatever characters are in it."""
    text = yaml.safe_dump(value, default_flow_style=True, width=1_000_000).removesuffix("...\n")
    if "\n" in text.rstrip("\n"):
        text = yaml.safe_dump(value, default_style='"', width=1_000_000)
    return text.strip()


EXAMPLE = """\

# What `podium rehearse` plays: this needs no model and no key.
agents:
  player: {kind: scripted, script: script.yaml}

roles:
  looker: {agent: player, description: looks around}
  writer: {agent: player, description: leaves a note}

flows:
  rehearsal:
    scenes:
      - {name: look, role: looker, prompt: Look around.}
      - {name: write, role: writer, prompt: Leave a note.}
"""

EXAMPLE_SCRIPT = """\
# What the scripted agent does, turn by turn. Every `call` passes the gate.
turns:
  - role: looker
    acts:
      - call: list_files
      - call: run_command
        with: {command: git push origin main}
      - say: I have looked around. Pushing was refused, as it should be.

  - role: writer
    acts:
      - call: write_file
        with: {path: hello.txt, content: "Hello from a rehearsal.\\n"}
      - call: finish
        with: {summary: Left a note in hello.txt.}
      - say: Done.
"""

PACK_EXAMPLE = """\

# What `podium ask` can do: the tools of this pack.
flows:
  operator:
    pack: {pack}
"""

SCRIPT_FILE = "script.yaml"


def init_project(
    folder: Path,
    proposal: Proposal = NOTHING_PROPOSED,
    *,
    example: bool = False,
    pack: str = "",
) -> list[str]:
    """Write `podium.yaml` and make `.podium/`, which git ignores. Gives the names of what was made.

    With `example` also scenes and a script, so that `podium rehearse` works at once. `pack` is the one that `podium ask`
    uses; empty: its default. Raises `NotPossibleNow` when the project is there already; nothing is changed then.
    """
    if not folder.is_dir():
        raise BadInput(f"folder {str(folder)!r} does not exist; create it first")
    check_writable(folder)
    project_file, script = folder / PROJECT_FILE, folder / SCRIPT_FILE
    for file in (project_file, script) if example else (project_file,):
        if os.path.lexists(file):
            raise NotPossibleNow(f"{str(file)!r} already exists; nothing was changed")
    state = folder / STATE_FOLDER
    made_state = _make_state(state)
    try:
        if made_state:
            write_new(state / IGNORE_FILE, "*\n")
        if example:
            write_new(script, EXAMPLE_SCRIPT)
        text = project_text(proposal) + (EXAMPLE if example else "")
        write_new(project_file, text + (PACK_EXAMPLE.format(pack=pack) if pack else ""))
    except BaseException:
        if made_state:
            (state / IGNORE_FILE).unlink(missing_ok=True)
            state.rmdir()
        if example:
            script.unlink(missing_ok=True)
        raise
    names = [PROJECT_FILE, SCRIPT_FILE] if example else [PROJECT_FILE]
    return names + ([f"{STATE_FOLDER}/"] if made_state else [])


def check_writable(folder: Path) -> None:
    """Raise `BadInput` for a folder that nothing can be written to."""
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"{str(folder)!r} is not writable; nothing was changed")


def _make_state(state: Path) -> bool:
    refuse_foreign_state(state)
    try:
        state.mkdir(mode=0o700)
    except FileExistsError:
        state.chmod(0o700)
        return False
    except OSError as error:
        raise BadInput(f"{str(state)!r} cannot be created: {error.strerror}") from None
    return True


_PREFERRED = ("claude", "codex", "gemini", "opencode")
"""Order in which a new project prefers agents."""
_MAX_LISTED = 5


async def survey(podium: Podium) -> Proposal:
    """Propose the settings that the project lacks. Runs no code of the project, and changes nothing.

    Raises `BadInput` in a git directory, where no project can be.
    """
    from podium.app.agent_status import agent_statuses, environment_key, login_remedy

    agents, (look, problem) = await asyncio.gather(
        agent_statuses(podium), look_at_repository(podium)
    )
    own = [agent.name for agent in agents if agent.configured]
    ready = [agent.kind for agent in agents if agent.ready]
    out = [agent.kind for agent in agents if agent.installed == "yes"] if not (own or ready) else []
    # A key of the environment is named in the user's own file, whose agents an entry here would replace.
    # One that is not logged in and has none would be given all roles.
    has_key = any(environment_key(podium, kind) for kind in out)
    kinds = ready or ([] if has_key else out)
    kinds = [] if own else sorted(kinds, key=_PREFERRED.index)
    candidates = tuple(kinds or _ready_first(own, agents))
    needs_roles = "default" not in podium.settings.roles and (kinds or len(own) > 1)
    detection, notes, checks_problem = Detection(), _about_repository(podium, look), ""
    if podium.settings.checks is None:
        try:
            detection = await podium.project_checks.detect(look)
        except PodiumError as error:
            notes.append(f"could not look for checks: {error}")
        notes += _about_checks(detection)
        checks_problem = _checks_problem(podium, detection)
    return Proposal(
        agents=tuple(kinds),
        login_remedies={kind: login_remedy(podium, kind) for kind in out},
        candidates=candidates,
        roles=cast_roles(candidates) if needs_roles else {},
        checks=detection.checks[:1] or None,
        other_checks=detection.checks[1:],
        notes=tuple(notes),
        repository_problem=problem,
        checks_problem=checks_problem,
    )


def _about_checks(detection: Detection) -> list[str]:
    notes = [f"checks may be missing: {text}" for text in detection.not_read]
    if detection.checks:
        return [*notes, *(f"not proposed: {text}" for text in detection.not_installed)]
    if not detection.not_installed:
        return [
            *notes,
            f"no tests were found, so runs will wait for a person before publishing a branch; see {ADVICE}",
        ]
    return notes


def _checks_problem(podium: Podium, detection: Detection) -> str:
    if detection.checks or not detection.not_installed:
        return ""
    return cannot_test(detection.not_installed, remedy_for(detection, podium.folders.project))


def _ready_first(own: Sequence[str], agents: Sequence[Standing]) -> list[str]:
    ready = {agent.name for agent in agents if agent.ready}
    return sorted(own, key=lambda name: name not in ready)


async def look_at_checks(podium: Podium) -> tuple[str, str]:
    """Describe the project's checks, and the remedy if they cannot run; empty: none needed."""
    if podium.settings.checks is None:
        detection = await podium.project_checks.detect((await look_at_repository(podium))[0])
        for check in detection.checks[:1]:
            return f"`{check.command}`, found in {check.source}", ""
        remedy = remedy_for(detection, podium.folders.project)
        missing = detection.not_installed
    else:
        named = named_checks(podium.configuration) or ()
        missing, remedy = await missing_programs(named, podium.project_checks.probe), ""
        if named and not missing:
            listed = ", ".join(f"`{check.command}`" for check in named)
            return f"{listed}; `podium init --try-checks` runs them once", ""
    if missing:
        return cannot_test(missing, remedy), remedy or ADVICE
    wanted = podium.settings.checks is None
    return "the project has none, so nothing is tested", ADVICE if wanted else ""


async def look_at_repository(podium: Podium) -> tuple[CheckoutStatus | None, str]:
    """The status of the checkout, or None and the reason why `podium run` would not start.

    Raises `BadInput` in a git directory.
    """
    from podium.git.repository import look_at

    git, folder = podium.repository_git, str(podium.folders.project)
    try:
        return await look_at(git, folder), ""
    except PodiumError as error:
        problem = str(error)
    inside = await git.run("-C", folder, "rev-parse", "--is-inside-git-dir", accept=(0, 128))
    if inside.stdout.strip() == b"true":
        raise BadInput(f"{folder!r} is a git directory without files; run this in a checkout")
    return None, problem


def _about_repository(podium: Podium, look: CheckoutStatus | None) -> list[str]:
    if look is None:
        return []
    notes = []
    if Path(look.checkout).resolve() != podium.folders.project:
        notes.append(
            f"this folder is inside {look.checkout!r}; checks run at the top of that checkout"
        )
    changed = [path for path in look.changed if path != PROJECT_FILE]
    if changed:
        listed = ", ".join(changed[:_MAX_LISTED]) + (" …" if len(changed) > _MAX_LISTED else "")
        notes.append(f"not committed: {listed}; commit or stash your changes before `podium run`")
    if not look.branch:
        notes.append(
            "HEAD is detached; check out a branch before `podium run`, or pass one with --base"
        )
    return notes
