"""`podium pack`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podium.cli.app import command_app
from podium.cli.context import Door
from podium.cli.screen import Screen
from podium.config.trust import TrustBook
from podium.core.errors import BadInput, PackInvalid
from podium.core.model import Json
from podium.core.packs import Pack, PackTool, floor_tier, most_specific
from podium.render.text import counted, escaped_line, safe_line
from podium.tools.packs import (
    REGISTRY_FILE,
    PackFolder,
    find_pack,
    list_packs,
    load_pack,
    performer,
    shipped_packs,
    write_new_pack,
)

app = command_app(group=True)

Name = Annotated[str, typer.Argument(metavar="PACK", help="A pack's name, or its folder.")]


@app.callback()
def pack() -> None:
    """Check, list, show, trust or begin tool packs: what the operator can do, and how risky it is."""


@app.command()
def check(
    context: typer.Context,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="A pack's folder, or its name.")],
) -> None:
    """Check a pack whole: its registry, schemas, words and handlers. None of its code is run.

    Every fault stands on a line of its own with file, line and JSON pointer. Exits with 0 when there
    is none, else with 2.

    \b
    Example:
      podium pack check packs/roofing
    """
    door = Door(context.obj, lenient=True)
    place = _found(door, folder)
    try:
        found = load_pack(place)
    except PackInvalid as invalid:
        _tell_faults(door.screen, place, invalid)
        raise typer.Exit(2) from None
    record = {"folder": str(place), "sound": True, "faults": [], **_summary(found)}
    tools, skills = len(found.registry.tools), len(found.registry.skills)
    words = f"{place}: sound; {counted(tools, 'tool')}, {counted(skills, 'skill')}"
    door.screen.answer(record, lambda: door.screen.line(words))


@app.command("list")
def list_(context: typer.Context) -> None:
    """List the packs of this project and those that come with Podium.

    \b
    Example:
      podium pack list
    """
    door = Door(context.obj, lenient=True)
    project = door.configuration.folders.project
    rows = [_row(door, each) for each in list_packs(project=project, shipped=shipped_packs())]

    def words() -> None:
        if not rows:
            door.screen.line("no packs; `podium pack new packs/NAME` begins one")
            return
        headers = ("NAME", "VERSION", "TOOLS", "FROM", "STANDS", "FOLDER")
        keys = ("name", "version", "tools", "origin", "stands", "folder")
        door.screen.table(headers, [[str(row[key]) for key in keys] for row in rows])

    door.screen.answer({"packs": rows}, words)


@app.command()
def show(context: typer.Context, name: Name) -> None:
    """Show a pack's tools: tier and why, domain, what takes each back, who must approve, an example.

    \b
    Example:
      podium pack show podium
    """
    door = Door(context.obj, lenient=True)
    found = load_pack(_found(door, name))
    tools = [_tool_record(found, tool) for tool in found.registry.tools]
    record = {**_summary(found), "folder": found.folder, "tools": tools, "skills": _skills(found)}
    door.screen.answer(record, lambda: _tell_pack(door.screen, found, tools))


@app.command()
def trust(
    context: typer.Context,
    name: Name,
    forget: Annotated[bool, typer.Option("--forget", help="Trust it no more.")] = False,
) -> None:
    """Trust a pack's code with its files as they are now. Any edit ends the trust.

    Packs that come with Podium need none.

    \b
    Example:
      podium pack trust packs/bikes
    """
    door = Door(context.obj, lenient=True)
    found = load_pack(_found(door, name))
    book = _book(door)
    file = Path(found.folder) / REGISTRY_FILE
    if forget:
        book.forget(file)
    else:
        book.trust(file, found.digest)
    trusted = book.trusts(file, found.digest)
    performed = _performers(found)
    record = {**_summary(found), "folder": found.folder, "trusted": trusted, "runs": performed}

    def words() -> None:
        for each in performed:
            door.screen.line(f"runs {escaped_line(each)}")
        stands = "trusted as it is now" if trusted else "not trusted"
        door.screen.line(f"{found.folder}: {stands}")

    door.screen.answer(record, words)


@app.command()
def new(
    context: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is not there yet.")],
) -> None:
    """Begin a pack: a registry with three tools that work, and their handlers, to be changed from there.

    \b
    Example:
      podium pack new packs/bikes && podium pack check packs/bikes
    """
    door = Door(context.obj, lenient=True)
    files = write_new_pack(folder)
    load_pack(folder)

    def words() -> None:
        for file in files:
            door.screen.line(f"made {folder / file}")
        door.screen.line(f"next: `podium pack check {folder}`, then `podium pack trust {folder}`")

    door.screen.answer({"folder": str(folder), "files": files}, words)


def _found(door: Door, name: str) -> Path:
    """The folder, written as the person would: from here when it lies beneath here."""
    project = door.configuration.folders.project
    folder = find_pack(name, project=project, shipped=shipped_packs())
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder


def _book(door: Door) -> TrustBook:
    return TrustBook(door.configuration.folders.user_state)


def _performers(found: Pack) -> list[str]:
    """What the pack's tools would run or call: modules, addresses, commands; each once."""
    written = [tool.handler for tool in found.registry.tools]
    return list(dict.fromkeys(performer(each) for each in written))


def _tell_faults(screen: Screen, folder: Path, invalid: PackInvalid) -> None:
    faults = [
        {"file": each.file, "line": each.line, "pointer": each.pointer, "problem": each.problem}
        for each in invalid.problems
    ]
    record = {"folder": str(folder), "sound": False, "faults": faults}

    def words() -> None:
        for fault in invalid.problems:
            screen.line(escaped_line(str(fault)))
        screen.aside(f"podium: {folder} has {counted(len(faults), 'fault')}; it does not load")

    screen.answer(record, words)


def _summary(found: Pack) -> dict[str, Json]:
    return {
        "pack": found.name,
        "version": found.registry.version,
        "description": found.registry.description,
        "digest": found.digest,
    }


def _row(door: Door, each: PackFolder) -> dict[str, Json]:
    row: dict[str, Json] = {"name": each.name, "origin": each.origin, "folder": str(each.folder)}
    try:
        found = load_pack(each.folder)
    except BadInput:
        return row | {"version": "", "tools": 0, "stands": "broken", "description": ""}
    file = Path(found.folder) / REGISTRY_FILE
    trusted = each.origin == "shipped" or _book(door).trusts(file, found.digest)
    return row | {
        "version": found.registry.version,
        "tools": len(found.registry.tools),
        "stands": "ready" if trusted else "not trusted",
        "description": found.registry.description,
    }


def _tool_record(found: Pack, tool: PackTool) -> dict[str, Json]:
    floor, reason = floor_tier(found.registry, tool.name)
    row = most_specific(found.registry, tool.name)
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


def _skills(found: Pack) -> list[Json]:
    return [
        {"name": skill.name, "steps": [step.tool for step in skill.steps]}
        for skill in found.registry.skills
    ]


def _tell_pack(screen: Screen, found: Pack, tools: list[dict[str, Json]]) -> None:
    registry = found.registry
    screen.facts(
        [
            ("pack", f"{found.name} {safe_line(registry.version)}"),
            ("is", safe_line(registry.description)),
            ("folder", found.folder),
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
