"""`podium pack`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podium.cli.app import command_app
from podium.cli.context import CliContext
from podium.cli.screen import Screen
from podium.config.trust import TrustBook
from podium.core.errors import BadInput, PackInvalid, PackProblem
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, Skill, floor_tier, most_specific
from podium.jobs.operator.commands.pack_corpus import (
    Name,
    Paraphraser,
    bench,
    pack_folder,
    paraphrase,
    paraphrase_examples,
    summary,
)
from podium.render.text import counted, escaped_line, safe_line
from podium.tools.packs import (
    CORPUS_FILE,
    REGISTRY_FILE,
    PackFolder,
    list_packs,
    load_pack,
    performer,
    shipped_packs,
    write_new_pack,
)

if TYPE_CHECKING:
    from podium.jobs.operator.bench.pack_examples import Misread

app = command_app(group=True)


@app.callback()
def pack() -> None:
    """Check, score, list, show, trust or create tool packs: what the operator can do, and how risky it is."""


@app.command()
def check(
    context: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A pack's folder, or its name.")],
    registry_only: Annotated[
        bool, typer.Option("--registry-only", help="Do not read the examples.")
    ] = False,
) -> None:
    """Check a pack: its registry, schemas, vocabulary and handlers, and that every example is read as it says.

    None of the pack's code is run. Every problem is a line with file, line and JSON pointer; of a misread example
    follows what it says and what was read. Exits with 0 when there is none, with 2 when the pack does
    not load, and with 1 when examples are misread.

    \b
    Example:
      podium pack check packs/roofing
      podium pack check packs/bikes --json
    """
    cli = CliContext(context.obj, lenient=True)
    path = pack_folder(cli, folder)
    try:
        loaded = load_pack(path)
    except PackInvalid as invalid:
        _print_problems(cli.screen, path, invalid)
        raise typer.Exit(2) from None
    subjects: list[PackTool | Skill] = [*loaded.registry.tools, *loaded.registry.skills]
    examples = sum(len(subject.examples) for subject in subjects)
    examples += sum(len(rule.refuses) + len(rule.allows) for rule in loaded.registry.rules)
    misreads = [] if registry_only else _misreads(loaded, path)
    faults = [_problem_record(misread.problem) for misread in misreads]
    record = {
        "folder": str(path),
        "sound": not misreads,
        "faults": faults,
        "misreads": [misread.record() for misread in misreads],
        "examples": 0 if registry_only else examples,
        **summary(loaded),
    }
    tools, skills = len(loaded.registry.tools), len(loaded.registry.skills)
    text = f"{path}: sound; {counted(tools, 'tool')}, {counted(skills, 'skill')}"

    def render() -> None:
        for line in [line for misread in misreads for line in misread.lines] or [text]:
            cli.screen.line(escaped_line(line))
        if not misreads and examples and not registry_only:
            cli.screen.stderr_line(f"each of {counted(examples, 'example')} is read as it says")
        if misreads:
            cli.screen.stderr_line(
                f"podium: {len(misreads)} of {counted(examples, 'example')} of {path} are misread; "
                "mend the arguments or add synonyms, then check again"
            )

    cli.screen.answer(record, render)
    if misreads:
        raise typer.Exit(1)


app.command()(bench)
app.command()(paraphrase)


def _misreads(pack: Pack, folder: Path) -> list[Misread]:
    # Late: the classifier takes longer to load than everything else here.
    from podium.jobs.operator.bench.pack_examples import misreads_of

    return misreads_of(pack, folder)


@app.command("list")
def list_(context: typer.Context) -> None:
    """List the packs of this project and those shipped with Podium.

    \b
    Example:
      podium pack list
      podium pack list --json
    """
    cli = CliContext(context.obj, lenient=True)
    project = cli.configuration.folders.project
    rows = [_row(cli, pack) for pack in list_packs(project=project, shipped=shipped_packs())]

    def render() -> None:
        if not rows:
            cli.screen.line("no packs; create one with `podium pack new packs/NAME`")
            return
        headers = ("NAME", "VERSION", "TOOLS", "FROM", "STANDS", "FOLDER")
        keys = ("name", "version", "tools", "origin", "stands", "folder")
        cli.screen.table(headers, [[str(row[key]) for key in keys] for row in rows])

    cli.screen.answer({"packs": rows}, render)


@app.command()
def show(context: typer.Context, name: Name) -> None:
    """Show a pack's tools: tier and reason, domain, undo, approvers, an example.

    \b
    Example:
      podium pack show podium
      podium pack show roofing --json
    """
    cli = CliContext(context.obj, lenient=True)
    loaded = load_pack(pack_folder(cli, name))
    tools = [_tool_record(loaded, tool) for tool in loaded.registry.tools]
    record = {
        **summary(loaded),
        "folder": loaded.folder,
        "tools": tools,
        "skills": _skills(loaded),
    }
    cli.screen.answer(record, lambda: _print_pack(cli.screen, loaded, tools))


@app.command()
def trust(
    context: typer.Context,
    name: Name,
    forget: Annotated[bool, typer.Option("--forget", help="Stop trusting it.")] = False,
) -> None:
    """Trust a pack's code with its files as they are now. Any edit revokes the trust.

    Packs shipped with Podium need no trust.

    \b
    Example:
      podium pack trust packs/bikes
      podium pack trust packs/bikes --forget
    """
    cli = CliContext(context.obj, lenient=True)
    loaded = load_pack(pack_folder(cli, name))
    book = _book(cli)
    file = Path(loaded.folder) / REGISTRY_FILE
    if forget:
        book.forget(file)
    else:
        book.trust(file, loaded.digest)
    trusted = book.trusts(file, loaded.digest)
    performed = _performers(loaded)
    record = {**summary(loaded), "folder": loaded.folder, "trusted": trusted, "runs": performed}

    def render() -> None:
        for line in performed:
            cli.screen.line(f"runs {escaped_line(line)}")
        state = "trusted as it is now" if trusted else "not trusted"
        cli.screen.line(f"{loaded.folder}: {state}")

    cli.screen.answer(record, render)


@app.command()
def new(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A new folder.")],
    agent: Paraphraser = "",
) -> None:
    """Create a pack: a registry with three working tools, their handlers and a corpus, to start from.

    \b
    Example:
      podium pack new packs/bikes && podium pack check packs/bikes
      podium pack new packs/bikes --json
    """
    cli = CliContext(context.obj, lenient=not agent)
    files = write_new_pack(folder)
    paraphrase_examples(cli, load_pack(folder), folder, agent)
    files = [*files, CORPUS_FILE]

    def render() -> None:
        for file in files:
            cli.screen.line(f"created {folder / file}")
        cli.screen.line(f"next: `podium pack check {folder}`, then `podium pack trust {folder}`")

    cli.screen.answer({"folder": str(folder), "files": files}, render)


def _book(cli: CliContext) -> TrustBook:
    return TrustBook(cli.configuration.folders.user_state)


def _performers(pack: Pack) -> list[str]:
    """Return what the pack's tools run or call: modules, addresses, commands; each once."""
    written = [tool.handler for tool in pack.registry.tools]
    return list(dict.fromkeys(performer(handler) for handler in written))


def _print_problems(screen: Screen, folder: Path, invalid: PackInvalid) -> None:
    problems = [_problem_record(problem) for problem in invalid.problems]
    record = {"folder": str(folder), "sound": False, "faults": problems}

    def render() -> None:
        for problem in invalid.problems:
            screen.line(escaped_line(str(problem)))
        screen.stderr_line(
            f"podium: {folder} has {counted(len(problems), 'problem')}; it does not load"
        )

    screen.answer(record, render)


def _problem_record(problem: PackProblem) -> dict[str, Json]:
    return {
        "file": problem.file,
        "line": problem.line,
        "pointer": problem.pointer,
        "problem": problem.problem,
    }


def _row(cli: CliContext, folder: PackFolder) -> dict[str, Json]:
    row: dict[str, Json] = {
        "name": folder.name,
        "origin": folder.origin,
        "folder": str(folder.folder),
    }
    try:
        pack = load_pack(folder.folder)
    except BadInput:
        return row | {"version": "", "tools": 0, "stands": "broken", "description": ""}
    file = Path(pack.folder) / REGISTRY_FILE
    trusted = folder.origin == "shipped" or _book(cli).trusts(file, pack.digest)
    return row | {
        "version": pack.registry.version,
        "tools": len(pack.registry.tools),
        "stands": "ready" if trusted else "not trusted",
        "description": pack.registry.description,
    }


def _tool_record(pack: Pack, tool: PackTool) -> dict[str, Json]:
    floor, reason = floor_tier(pack.registry, tool.name)
    row = most_specific(pack.registry, tool.name)
    return {
        "name": tool.name,
        "tier": str(max(tool.tier, floor)),
        "floor": str(floor),
        "because": reason,
        "domain": tool.domain or (row.name if row else ""),
        "description": tool.description,
        "required": list(tool.required),
        "arguments": list(tool.properties),
        "undo": tool.undo,
        "approvals": list(tool.approvals),
        "experimental": tool.experimental,
        "example": tool.examples[0].say if tool.examples else "",
    }


def _skills(pack: Pack) -> list[Json]:
    return [
        {"name": skill.name, "steps": [step.tool for step in skill.steps]}
        for skill in pack.registry.skills
    ]


def _print_pack(screen: Screen, pack: Pack, tools: list[dict[str, Json]]) -> None:
    registry = pack.registry
    screen.facts(
        [
            ("pack", f"{pack.name} {safe_line(registry.version)}"),
            ("about", safe_line(registry.description)),
            ("folder", pack.folder),
            ("settings", ", ".join(setting.name for setting in registry.settings)),
        ]
    )
    screen.line()
    headers = ("TOOL", "TIER", "DOMAIN", "UNDO", "APPROVALS", "EXAMPLE")
    screen.table(headers, [_cells(tool) for tool in tools])
    for skill in registry.skills:
        screen.line(f"skill {skill.name}: {' → '.join(step.tool for step in skill.steps)}")


def _cells(tool: dict[str, Json]) -> list[str]:
    approvals = ", then ".join(tool["approvals"])
    name = f"{tool['name']} (experimental)" if tool["experimental"] else tool["name"]
    example = safe_line(tool["example"], longest=60)
    return [name, tool["tier"], tool["domain"], tool["undo"] or "", approvals, example]
