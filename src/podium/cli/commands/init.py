"""`podium init`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.project_setup import init_project
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import error_record
from podium.config.folders import PROJECT_FILE
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import Json
from podium.render.text import escaped_line

if TYPE_CHECKING:
    from podium.app.checks import Check, CheckTrial
    from podium.app.project_setup import Proposal

app = command_app()

NO_CHECK = "none"
ASK = 'podium ask "system status"'
RUN = 'podium run "what should be done"'


@app.command()
def init(
    context: typer.Context,
    example: Annotated[
        bool,
        typer.Option("--example", help="Also add scenes for `podium rehearse`, or the pack NAME."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Accept the proposals without asking.")
    ] = False,
    try_checks: Annotated[
        bool, typer.Option("--try-checks", help="Run the checks once, in the sandbox.")
    ] = False,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="With --example: pack for `podium ask`.")
    ] = "",
) -> None:
    """Make this folder a Podium project.

    Looks for agent CLIs that are installed and logged in and for the project's test command, and writes a podium.yaml that explains
    each line, and a private .podium/ that git ignores. On a terminal it asks at most three questions; Enter accepts the proposal. It
    runs nothing of the project unless you agree, and never overwrites: with an existing podium.yaml it prints what could be added,
    and with --try-checks it runs the checks of that file once.

    \b
    Example:
      podium init
      podium init --yes --try-checks
      podium init --example && podium rehearse
      podium init --example roofing
      podium init --project ~/shop
    """
    if name and not example:
        raise BadInput(f"{name!r} needs --example: `podium init --example {name}`")
    if name:
        _check_pack(name)
    folder = (context.obj.project or Path.cwd()).resolve()
    cli = CliContext(replace(context.obj, project=folder))
    if example and not name:
        made = init_project(folder, example=True)
        made_record = {"project": str(folder), "made": made, "agents": []}
        cli.screen.answer(made_record, lambda: _show_made(cli, folder, made, "podium rehearse"))
        return
    file = folder / PROJECT_FILE
    if file.is_symlink() and not file.exists():
        raise NotPossibleNow(f"{str(file)!r} is a link to a missing file; remove the link")
    # Late: the example needs none of this.
    from podium.app.project_setup import check_writable, survey

    if file.exists() and try_checks:
        _try_checks(cli)
        return
    proposal = cli.run(survey)
    if file.exists():
        _refuse(cli, proposal)
    check_writable(folder)
    if not cli.screen.json:
        _show_findings(cli, proposal)
    if not (yes or cli.screen.json) and _is_terminal():
        proposal, try_checks = _ask(proposal, try_checks)
    made = init_project(folder, proposal, pack=name)
    trial = None
    if try_checks and proposal.checks:
        check = proposal.checks[0]
        context.obj.parting_note = f"{PROJECT_FILE} was written; its check was not tried"
        cli.screen.stderr_line(f"trying `{escaped_line(check.command)}` in the sandbox …")
        trial = cli.run(lambda podium: podium.project_checks.try_check(check))
    next_command = ASK if name else _next_command(proposal, trial)

    def show() -> None:
        for role, names in proposal.roles.items():
            cli.screen.line(f"role {role}: {', then '.join(map(escaped_line, names))}")
        if trial:
            cli.screen.line(f"check `{escaped_line(trial.command)}`: {trial.summary}")
        _show_made(cli, folder, made, next_command)

    record: dict[str, Json] = {
        "project": str(folder),
        "made": list(made),
        "agents": list(proposal.candidates),
        "roles": {role: list(names) for role, names in proposal.roles.items()},
        "checks": [_check_record(check) for check in proposal.checks or ()],
        "other_checks": [_check_record(check) for check in proposal.other_checks],
        "trial": trial.model_dump() if trial else None,
        "notes": _notes(proposal),
        "next": next_command,
    }
    cli.screen.answer(record, show)


def _check_pack(name: str) -> None:
    from podium.app.packs import shipped_pack_names

    if name not in shipped_pack_names():
        examples = ", ".join(shipped_pack_names())
        raise BadInput(f"unknown example {name!r}; examples: {examples}")


def _try_checks(cli: CliContext) -> None:
    """Try the checks of this project, and fail unless all are green."""
    trials = cli.run(lambda podium: podium.project_checks.try_all())
    record = {
        "project": str(cli.configuration.folders.project),
        "made": [],
        "trials": [trial.model_dump() for trial in trials],
    }

    def show() -> None:
        for trial in trials:
            cli.screen.line(f"check `{escaped_line(trial.command)}`: {trial.summary}")
        if not trials:
            cli.screen.line("podium.yaml has `checks: []`; nothing to try")

    cli.screen.answer(record, show)
    if any(trial.state != "green" for trial in trials):
        raise typer.Exit(NotPossibleNow.exit_code)


def _refuse(cli: CliContext, proposal: Proposal) -> None:
    """Print what could be added to the existing podium.yaml, and fail."""
    from podium.app.project_setup import additions_text

    file = cli.configuration.folders.project_file
    additions = additions_text(proposal)
    error = NotPossibleNow(f"{str(file)!r} already exists; nothing was changed")
    if not cli.screen.json:
        _show_notes(cli, proposal)
        if additions:
            cli.screen.line(f"podium.yaml could also contain:\n\n{additions}")
        else:
            cli.screen.line("nothing to add to podium.yaml")
        raise error
    cli.screen.stderr_line(f"podium: {error}")
    record = {
        "project": str(file.parent),
        "made": [],
        "agents": list(proposal.candidates),
        "could_add": additions,
        "notes": _notes(proposal),
        "error": error_record(error, str(error), error.exit_code),
    }
    cli.screen.record(record)
    raise typer.Exit(error.exit_code)


def _is_terminal() -> bool:
    """True when stdin and stderr are terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _ask(proposal: Proposal, try_checks: bool) -> tuple[Proposal, bool]:
    """Ask the person to confirm or change the proposal; return it, and whether to try the check."""
    if len(proposal.candidates) > 1 and proposal.roles:
        writer = _prompt(
            f"Which agent writes the code? ({', '.join(map(escaped_line, proposal.candidates))})",
            proposal.candidates[0],
            proposal.candidates,
        )
        proposal = proposal.written_by(writer)
    default = proposal.checks[0].command if proposal.checks else NO_CHECK
    command = _prompt(
        f"Which command must succeed before work is accepted? (a command, or {NO_CHECK!r})",
        default,
    )
    if command != NO_CHECK:
        proposal = proposal.checked_by(command)
        return proposal, try_checks or typer.confirm(
            "Run it once now, in the sandbox?", default=True, err=True
        )
    # Nothing was found and nothing typed: each run looks again.
    return (proposal.checked_by("") if proposal.checks else proposal), False


def _prompt(question: str, default: str, choices: tuple[str, ...] = ()) -> str:
    while True:
        answer = typer.prompt(
            question, default=default, show_default=False, prompt_suffix=f" [{escaped_line(default)}]: ", err=True
        )  # fmt: skip
        if not choices or answer in choices:
            return str(answer).strip()


def _show_findings(cli: CliContext, proposal: Proposal) -> None:
    screen = cli.screen
    if proposal.login_remedies:
        screen.line(f"agents installed but not logged in: {', '.join(proposal.login_remedies)}")
    elif proposal.agents:
        screen.line(f"agents installed and logged in: {', '.join(proposal.agents)}")
    elif proposal.candidates:
        screen.line(
            f"agents in your own settings: {', '.join(map(escaped_line, proposal.candidates))}"
        )
    for check in proposal.checks or ():
        screen.line(f"check found in {escaped_line(check.source)}: {escaped_line(check.command)}")
    for check in proposal.other_checks:
        screen.line(f"also found in {escaped_line(check.source)}: {escaped_line(check.command)}")
    _show_notes(cli, proposal)


def _show_notes(cli: CliContext, proposal: Proposal) -> None:
    for note in _notes(proposal):
        cli.screen.line(f"note: {escaped_line(note)}")


def _notes(proposal: Proposal) -> list[str]:
    notes = list(proposal.notes)
    if proposal.checks_problem:
        notes.append(f"`podium run` will stop before the first agent: {proposal.checks_problem}")
    if not (proposal.candidates or proposal.login_remedies):
        notes.append(
            "no agent CLI is installed; `podium agents list` shows those that Podium knows"
        )
    notes += [f"{kind} is not logged in: {how}" for kind, how in proposal.login_remedies.items()]
    if proposal.repository_problem:
        notes.append(f"`podium run` will not start here yet: {proposal.repository_problem}")
    return notes


def _next_command(proposal: Proposal, trial: CheckTrial | None) -> str:
    if not (proposal.candidates or proposal.login_remedies):
        return "install one and log in, or add a model under `agents:` in podium.yaml; then run podium doctor"
    if proposal.login_remedies or proposal.repository_problem or proposal.checks_problem:
        return f"follow the notes, then {RUN}"
    if trial and trial.state == "red":
        return 'podium run "Fix the failing check"'
    return RUN


def _show_made(cli: CliContext, folder: Path, made: list[str], next_command: str) -> None:
    cli.screen.line(f"{folder}: created {', '.join(made)}")
    cli.screen.line(f"next: {next_command}")


def _check_record(check: Check) -> dict[str, Json]:
    return {"command": check.command, "source": check.source}
