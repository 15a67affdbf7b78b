"""Command group `podium playbook`: `run`, `restore`, `check`, `schema` and `sample`."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.app.app import Podium
from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.run_host import host
from podium.cli.screen import Screen
from podium.core.errors import BadInput, ConfigInvalid, ConfigProblem, NotPossibleNow
from podium.core.model import Json
from podium.core.work import Run
from podium.render.text import counted, escaped_line

if TYPE_CHECKING:
    from podium.app.app import Podium
    from podium.app.work_request import QueueSlot
    from podium.core.folder_snapshots import FolderRestore
    from podium.jobs.playbook.loader import LoadedPlaybook
    from podium.jobs.playbook.models import PlaybookPrompt, PluginProfile


def run(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="PLAYBOOK.md", help="The playbook.")],
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Profile of the plugin. Default: the nearest one upwards from the root.",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="Agent of podium.yaml that follows the playbook.")
    ] = "",
    root: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder of the plugin. Default: this project."),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=VALUE", help="Value of an input; repeat it for each input."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Work in a temporary copy and show what would change."),
    ] = False,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Keep the process running while the run waits for a person."),
    ] = False,
    detach: Annotated[
        bool, typer.Option("--detach", help="Hand the run to a worker in the background.")
    ] = False,
) -> None:
    """Run a playbook with an agent that has no tools of its own, and check the result.

    The agent can only request tools; Podium judges, performs and records every call. The playbook's own
    commands, which Podium runs at the end, decide about success. Ctrl-C leaves the run at its checkpoint.
    `podium playbook restore` restores the folder.

    Exits with 0 when all criteria are met, 1 when not, 3 when the run waits for a person, 5 when a limit
    was reached and 6 when time ran out. With --json, prints one object per line: `launch`, every event,
    `result`.

    \b
    Example:
      podium playbook run bump.md --profile plugin-profile.yaml --input version=2.0
      podium playbook run bump.md --agent gemini --dry-run
    """
    cli = CliContext(context.obj)
    if wait and detach:
        raise BadInput("--wait cannot be combined with --detach")

    async def begin(podium: Podium, slot: QueueSlot | None = None) -> Run:
        # Before the store is opened: what is refused leaves nothing behind.
        from podium.jobs.playbook.composition import job_of_files

        job = job_of_files(
            podium,
            file,
            profile=profile,
            root=root,
            agent=agent,
            inputs=parse_inputs(inputs or []),
            dry_run=dry_run,
        )
        engine = await podium.hosting_engine()
        settings = cli.configuration.run_settings()
        job_input = job.model_dump(mode="json")
        where = slot.model_dump() if slot else {}
        return await engine.start(
            "playbook", job_input, task=job.playbook.head.name, settings=settings, **where
        )

    if detach:
        from podium.app.work_request import QueueSlot
        from podium.cli.detached_run import hand_over

        hand_over(cli, begin, QueueSlot())
    else:
        host(cli, begin, wait=wait)


def parse_inputs(written: list[str]) -> dict[str, str]:
    """Parse NAME=VALUE, each once. Raises `BadInput` with every invalid one."""
    values: dict[str, str] = {}
    problems: list[str] = []
    for argument in written:
        name, equals, value = argument.partition("=")
        if not equals or not name.strip():
            problems.append(f"pass --input NAME=VALUE, not {argument[:60]!r}")
        elif name.strip() in values:
            problems.append(f"input {name.strip()!r} is given twice")
        else:
            values[name.strip()] = value
    if problems:
        raise BadInput("\n".join(problems))
    return values


MAX_PATHS = 50


def restore(
    context: typer.Context,
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of the run, or a short form.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    over: Annotated[
        bool, typer.Option("--over", help="Also overwrite files that were changed after the run.")
    ] = False,
    undo: Annotated[
        bool, typer.Option("--undo", help="Undo the last restore of this run instead.")
    ] = False,
) -> None:
    """Restore the folder of a playbook run to what it was before the run, byte for byte.

    Prints the files to be changed first. The current files are kept, so that --undo brings them back.
    `.git` is not touched.

    \b
    Example:
      podium playbook restore 9d1f5a6b
      podium playbook restore 9d1f5a6b --undo --yes
    """
    cli = CliContext(context.obj)
    cli.must_have_state("run", run)
    preview = _looked_at(cli, run, undo)
    if not preview.paths:
        done = preview
    else:
        _show(cli, preview, over)
        if not yes:
            _ask(cli, f"restore {counted(len(preview.paths), 'path')} in {preview.root!r}?")
        done = _put_back(cli, run, preview, undo, over)
    cli.screen.answer(_record(done), lambda: _print_restore(cli.screen, done, run))


def _looked_at(cli: CliContext, run: str, undo: bool) -> FolderRestore:
    async def look(podium: Podium) -> FolderRestore:
        from podium.jobs.playbook.working_folder import preview_restore

        return await preview_restore(podium, run, undo=undo)

    return cli.run(look)


def _put_back(
    cli: CliContext, run: str, preview: FolderRestore, undo: bool, over: bool
) -> FolderRestore:
    async def work(podium: Podium) -> FolderRestore:
        from podium.jobs.playbook.working_folder import restore_playbook

        return await restore_playbook(podium, run, preview, undo=undo, over=over)

    return cli.run(work)


def _show(cli: CliContext, preview: FolderRestore, over: bool) -> None:
    """Print the preview to stderr: programs get it with the answer."""
    later = set(preview.conflicts)
    lines = [(path, "restore") for path in preview.written]
    lines += [(path, "remove") for path in preview.removed]
    for path, what in sorted(lines)[:MAX_PATHS]:
        note = "  (changed after the run)" if path in later else ""
        cli.screen.stderr_line(f"{what:>8}  {escaped_line(path)}{note}")
    if len(lines) > MAX_PATHS:
        cli.screen.stderr_line(f"          and {len(lines) - MAX_PATHS} more")
    for entry in preview.left_out:
        cli.screen.stderr_line(f"    keep  {escaped_line(entry)}")
    if later and not over:
        raise NotPossibleNow(
            f"{counted(len(later), 'path')} changed after the run, so nothing was restored; save what you need, then "
            "pass --over"
        )


def _ask(cli: CliContext, question: str) -> None:
    if cli.screen.json or not typer.get_text_stream("stdin").isatty():
        raise NotPossibleNow(f"{question} not a terminal; pass --yes to confirm")
    typer.confirm(question, abort=True, err=True)


def _record(done: FolderRestore) -> dict[str, object]:
    return done.model_dump(mode="json", exclude={"seen"})


def _print_restore(screen: Screen, done: FolderRestore, run: str) -> None:
    if not done.paths:
        screen.line(f"nothing to restore: {escaped_line(done.root)} is unchanged")
        return
    screen.line(f"restored {counted(len(done.paths), 'path')} in {escaped_line(done.root)}")
    screen.line(f"undo this with `podium playbook restore {escaped_line(run)} --undo`")


def sample(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Name of the sample. Default: list them.")
    ] = "",
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="New folder. Default: the name of the sample."),
    ] = None,
) -> None:
    """Create a sample playbook with a plugin to try it on and a scripted agent.

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
            f"created {made.name} in {made.folder}; next:\n  cd {shlex.quote(made.folder)} && {made.command}"
        ),
    )


app = command_app(group=True)
app.command()(run)
app.command()(sample)
app.command()(restore)

BROKEN = 2


@app.callback()
def playbook() -> None:
    """Run or check a playbook: instructions for an agent without tools of its own."""


@app.command()
def check(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="PLAYBOOK.md", help="The playbook.")],
    profile: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Profile of the plugin. Default: the nearest one upwards from here.",
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input", metavar="NAME=VALUE", help="Value of an input; repeat it for each input."
        ),
    ] = None,
) -> None:
    """Check a playbook and its profile, and print the prompt with its parts and their sizes.

    No agent is asked, and nothing is run or written. Problems are printed one per line, with file, line,
    column and field. Exits with 0 when there are none, else with 2. Tokens are an estimate.

    \b
    Example:
      podium playbook check bump.md --profile plugin-profile.yaml --input version=2.0
      podium playbook check bump.md --json
    """
    screen = Screen(json=context.obj.json)
    here = context.obj.project or Path.cwd()
    # Settings that cannot be used are no fault of the playbook's.
    cli = CliContext(context.obj, lenient=True)
    checked = _checked(cli, here, file, profile, inputs or [])
    screen.answer(checked.record(), lambda: _print(screen, checked))
    if checked.problems:
        raise typer.Exit(BROKEN)


@app.command()
def schema(
    context: typer.Context,
    front: Annotated[
        bool,
        typer.Option("--playbook", help="Print the schema of a playbook's front matter instead."),
    ] = False,
) -> None:
    """Print the JSON Schema of plugin-profile.yaml, for editors and other programs.

    \b
    Example:
      podium playbook schema > plugin-profile.schema.json
      podium playbook schema --playbook > playbook.schema.json
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
    cli: CliContext, here: Path, file: Path, profile: Path | None, inputs: list[str]
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
        _build(cli, checked, plugin, loaded, values)
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
    cli: CliContext,
    checked: _PlaybookCheck,
    profile: PluginProfile,
    loaded: LoadedPlaybook,
    values: dict[str, str],
) -> None:
    from podium.jobs.playbook import build_prompt
    from podium.jobs.playbook.loader import notes_on, secret_inputs, surroundings

    try:
        if values:
            secret_inputs(values, Podium(cli.configuration, os.environ).redactor)
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
            f"podium: {counted(len(checked.problems), 'problem')}; the playbook cannot be run"
        )
        return
    prompt = checked.prompt
    screen.line(f"{checked.playbook}: sound, with {checked.profile}")
    rows = [list(map(str, record.values())) for record in _section_records(prompt)]
    total = ["total", str(len(prompt.text)), str(prompt.estimated_tokens)]
    screen.table(("SECTION", "CHARACTERS", "TOKENS (ESTIMATE)"), [*rows, total])
    for note in checked.notes:
        screen.line(f"note: {escaped_line(note)}")
    screen.line("\nThe prompt:\n")
    screen.line(prompt.text)
