"""Command group `podium playbook`: `check`, `schema` and `sample`."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import Door
from podium.cli.screen import Screen
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem
from podium.core.model import Json
from podium.jobs.playbook.commands.run import parse_inputs, restore, run
from podium.render.text import counted, escaped_line

if TYPE_CHECKING:
    from podium.jobs.playbook.loader import LoadedPlaybook
    from podium.jobs.playbook.models import PlaybookPrompt, PluginProfile


def sample(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Which one. Left out: list them.")
    ] = "",
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="A new folder. Else one of its name.")
    ] = None,
) -> None:
    """Lay out a playbook that comes with Podium, with a plugin to try it on and a scripted agent.

    \b
    Example:
      podium playbook sample
      podium playbook sample fix-failing-test
      cd fix-failing-test && podium playbook run playbook.md
    """
    from podium.jobs.playbook.samples import lay_out, sample_names

    screen = Screen(json=context.obj.json)
    if not name:
        names = sample_names()
        screen.answer({"samples": names}, lambda: screen.line("\n".join(names)))
        return
    made = lay_out(name, folder or Path(name))
    screen.answer(
        made.model_dump(mode="json"),
        lambda: screen.line(
            f"{made.name} is in {made.folder}; next:\n  cd {shlex.quote(made.folder)} && {made.command}"
        ),
    )


app = command_app(group=True)
app.command()(run)
app.command()(sample)
app.command()(restore)

BROKEN = 2


@app.callback()
def playbook() -> None:
    """Run or check a playbook: a page that an agent without tools of its own follows."""


@app.command()
def check(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="PLAYBOOK.md", help="The playbook.")],
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The plugin's profile. Else the nearest one upwards from here."
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME=VALUE", help="An input's value; once for each."),
    ] = None,
) -> None:
    """Check a playbook and its profile, and print the prompt with its parts and their sizes.

    Nothing is asked, run or written. Every fault stands on a line of its own with file, line, column
    and field. Exits with 0 when there is none, else with 2. Tokens are an estimate.

    \b
    Example:
      podium playbook check bump.md --profile plugin-profile.yaml --input version=2.0
    """
    screen = Screen(json=context.obj.json)
    here = context.obj.project or Path.cwd()
    # Settings that cannot be used are no fault of the playbook's.
    door = Door(context.obj, lenient=True)
    checked = _checked(door, here, file, profile, inputs or [])
    screen.answer(checked.record(), lambda: _print(screen, checked))
    if checked.problems:
        raise typer.Exit(BROKEN)


@app.command()
def schema(
    context: typer.Context,
    front: Annotated[
        bool, typer.Option("--playbook", help="That of a playbook's front matter instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of plugin-profile.yaml, for editors and other programs.

    \b
    Example:
      podium playbook schema > plugin-profile.schema.json
    """
    import json

    from podium.jobs.playbook import playbook_schema, profile_schema

    screen = Screen(json=context.obj.json)
    document = playbook_schema() if front else profile_schema()
    screen.answer(document, lambda: screen.line(json.dumps(document, indent=2)))


@dataclass
class _PlaybookCheck:
    """Result of a check."""

    playbook: str
    profile: str = ""
    problems: list[tuple[str, ConfigProblem]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    prompt: PlaybookPrompt | None = None

    def fails(self, error: BadInput, file: str) -> None:
        if isinstance(error, ConfigInvalid):
            self.problems += [
                (getattr(problem, "file", error.file), problem) for problem in error.problems
            ]
        else:
            self.problems += [(file, ConfigProblem(line)) for line in str(error).splitlines()]

    def record(self) -> dict[str, Json]:
        prompt = self.prompt
        return {
            "playbook": self.playbook,
            "profile": self.profile,
            "sound": not self.problems,
            "faults": [_problem_record(*problem) for problem in self.problems],
            "notes": self.notes,
            "missing_inputs": list(prompt.missing) if prompt else [],
            "sections": _section_records(prompt) if prompt else [],
            "characters": len(prompt.text) if prompt else 0,
            "estimated_tokens": prompt.estimated_tokens if prompt else 0,
            "prompt": prompt.text if prompt else None,
        }


def _checked(
    door: Door, here: Path, file: Path, profile: Path | None, inputs: list[str]
) -> _PlaybookCheck:
    from podium.jobs.playbook.loader import read_playbook

    checked = _PlaybookCheck(str(file))
    plugin = _profile(checked, here, profile)
    loaded: LoadedPlaybook | None = None
    try:
        root = here if file.absolute().is_relative_to(here.absolute()) else None
        loaded = read_playbook(file, root)
    except BadInput as broken:
        checked.fails(broken, str(file))
    values = _parsed_inputs(checked, inputs)
    if loaded and plugin:
        checked.problems += [
            (str(file), disagreement) for disagreement in loaded.disagreements(plugin)
        ]
    if loaded and plugin and not checked.problems:
        _build(door, checked, plugin, loaded, values)
    return checked


def _profile(checked: _PlaybookCheck, here: Path, named: Path | None) -> PluginProfile | None:
    from podium.jobs.playbook.loader import find_profile, load_profile
    from podium.jobs.playbook.models import PROFILE_FILE

    try:
        file = named or find_profile(here)
        inside = file.is_absolute() and file.is_relative_to(Path.cwd())
        file = file.relative_to(Path.cwd()) if inside else file
        checked.profile = str(file)
        return load_profile(file)
    except BadInput as broken:
        checked.fails(broken, checked.profile or PROFILE_FILE)
        return None


def _parsed_inputs(checked: _PlaybookCheck, written: list[str]) -> dict[str, str]:
    try:
        return parse_inputs(written)
    except BadInput as broken:
        checked.fails(broken, "--input")
        return {}


def _build(
    door: Door,
    checked: _PlaybookCheck,
    profile: PluginProfile,
    loaded: LoadedPlaybook,
    values: dict[str, str],
) -> None:
    from podium.jobs.playbook import build_prompt
    from podium.jobs.playbook.loader import notes_on, secret_inputs, surroundings

    try:
        if values:
            secret_inputs(values, Podium(door.configuration, os.environ).redactor)
        prompt = build_prompt(profile, loaded.playbook, values, surroundings(), sample=True)
    except BadInput as broken:
        checked.fails(broken, "--input")
        return
    checked.prompt = prompt
    checked.notes = notes_on(profile, loaded.playbook, prompt)


def _problem_record(file: str, problem: ConfigProblem) -> dict[str, Json]:
    return {
        "file": file,
        "line": problem.line,
        "column": problem.column,
        "field": problem.key,
        "problem": problem.problem,
    }


def _section_records(prompt: PlaybookPrompt) -> list[dict[str, Json]]:
    return [
        {
            "name": section.name,
            "characters": len(section.text),
            "estimated_tokens": section.estimated_tokens,
        }
        for section in prompt.sections
    ]


def _print(screen: Screen, checked: _PlaybookCheck) -> None:
    if checked.prompt is None:
        for file, problem in checked.problems:
            screen.line(escaped_line(problem.sentence(file)))
        screen.stderr_line(
            f"podium: {counted(len(checked.problems), 'fault')}; nothing can be run with it"
        )
        return
    prompt = checked.prompt
    screen.line(f"{checked.playbook}: sound, with {checked.profile}")
    rows = [list(map(str, record.values())) for record in _section_records(prompt)]
    total = ["all", str(len(prompt.text)), str(prompt.estimated_tokens)]
    screen.table(("SECTION", "CHARACTERS", "TOKENS, ABOUT"), [*rows, total])
    for note in checked.notes:
        screen.line(f"note: {escaped_line(note)}")
    screen.line("\nThe prompt:\n")
    screen.line(prompt.text)
