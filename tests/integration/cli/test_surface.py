"""Public surface that other programs rely on: commands, JSON, events, settings and exit codes match the committed files.

`PODIUM_WRITE_GOLDEN=1 pytest tests/integration/cli/test_surface.py` writes the files anew. The HTTP API is held in
`docs/openapi.json`, plans, work orders, profiles and the operator's answers in `docs/*.schema.json`.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from podium.app.kernel_flows import guarded_files_tool
from podium.core import errors
from podium.core.events import event_union
from podium.jobs.pipeline.composition import answer_comment_tool, hand_over_tool
from podium.jobs.sense.orders.order_tools import order_tools, sense_tools
from podium.ports import Forge
from podium.tools.builtin import builtin_tools
from tests.integration.cli.command_runner import CommandRunner
from tests.integration.deploy.frozen_project import FrozenProject

SURFACE = Path(__file__).parent / "surface"
FROZEN_VERSION = "0.2.0"
COMMANDS = re.compile(r"^  ([a-z-]+)(?:  |$)", re.MULTILINE)

LISTS = (
    "runs", "approvals", "approvals --all", "receipts list", "receipts verify", "candidates --all", "queues", "workers",
    "habits list", "pack list", "pack show roofing", "config show", "policy check -- ls", "duet status", "duet log",
    "sense trust", "db check", "trust --show", "whoami", "playbook check bump.md", "plan rules", "prompts", "help",
    "uninstall --dry-run", "top --once",
)  # fmt: skip
OF_THIS_MACHINE = ("doctor", "agents list", "sense status")
"""Commands whose exit code and types depend on what is installed; their keys do not."""
OF_A_RUN = ("show", "logs", "trace", "prompts", "receipts list")
"""Commands that answer about one run, each asked for a run of every flow."""
OPAQUE = ("input", "result", "output", "arguments", "outcome", "fields", "undo")
"""Keys of values that flows and tools shape. Input and result of a flow are told once, by `show`."""


def help_pages(cli: CommandRunner) -> Iterator[str]:
    """`--help` of every command, found by what the pages themselves list."""
    paths: list[tuple[str, ...]] = [()]
    while paths:
        path = paths.pop(0)
        page = cli.run(*path, "--help", env={"COLUMNS": "100"})
        assert page.code == 0, page.err
        yield f"$ podium {' '.join((*path, '--help'))}"
        yield from page.out.splitlines()
        _, *lists = re.split(r"\n(?:Commands|Jobs):\n", page.out, maxsplit=1)
        names = COMMANDS.findall("".join(lists))
        paths = [(*path, name) for name in names] + paths


def json_shapes(cli: CommandRunner) -> Iterator[str]:
    """Every path in the answers of the listing commands, with the types of its values."""
    FrozenProject(cli.project.parent).extract(FROZEN_VERSION)
    runs = cli.run("runs", "--json", env={}).json["runs"]
    one_of_every_flow = sorted({run["flow"]: run["id"] for run in runs}.values())
    commands = {line: [line.split()] for line in (*LISTS, *OF_THIS_MACHINE)}
    for name in OF_A_RUN:
        commands[f"{name} RUN"] = [[*name.split(), run] for run in one_of_every_flow]
    for name, calls in commands.items():
        types: dict[str, set[str]] = defaultdict(set)
        for arguments in calls:
            result = cli.run("--json", *arguments, env={"PATH": "/usr/bin:/bin"})
            assert name in OF_THIS_MACHINE or result.code == 0, result.err
            collect_types(result.json, "", types)
        yield f"$ podium --json {name}"
        for path in sorted(types):
            empty = any(other.startswith((f"{path}[", f"{path}.")) for other in types)
            if name in OF_THIS_MACHINE:
                yield path.removesuffix("[]")
            elif kinds := sorted(types[path] - ({"list", "dict"} if empty else set())):
                yield f"{path}: {' | '.join(kinds)}"


def collect_types(value: Any, path: str, types: dict[str, set[str]]) -> None:
    key = path.rpartition(".")[2]
    match value:
        case {"type": _, "seq": _, "at": _}:
            types[path].add("event")
        case dict() if value and (key not in OPAQUE or path in ("run.input", "run.result")):
            for name, inner in value.items():
                collect_types(inner, f"{path}.{name}".lstrip("."), types)
        case list() if value:
            for inner in value:
                collect_types(inner, f"{path}[]", types)
        case _:
            types[path].add("null" if value is None else type(value).__name__)


def event_schemas(_: CommandRunner) -> Iterator[str]:
    """Every type of event with its version, fields and defaults."""
    schema = event_union().json_schema()
    for name, reference in sorted(schema["discriminator"]["mapping"].items()):
        body = schema["$defs"][reference.rpartition("/")[2]]
        del body["properties"]["type"]
        yield f"{name} v{body['properties'].pop('version')['default']}"
        yield from (f"  {line}" for line in flatten(body, schema["$defs"]))


def settings_schema(cli: CommandRunner) -> Iterator[str]:
    """Every key of podium.yaml with its type and default."""
    schema = cli.run("config", "schema", env={}).json
    yield from flatten(schema, schema["$defs"])


def flatten(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Iterator[str]:
    """A line for each path in a JSON Schema; names of definitions, titles and descriptions are left out."""
    kinds: dict[str, dict[str, None]] = defaultdict(dict)
    defaults: dict[str, str] = {}

    def visit(part: Mapping[str, Any], path: str, above: tuple[str, ...] = ()) -> None:
        if reference := part.get("$ref"):
            if reference in above:
                kinds[path]["recursive"] = None
                return
            part, above = definitions[reference.rpartition("/")[2]], (*above, reference)
        options = part.get("anyOf", part.get("oneOf", ()))
        if not options and path:
            kinds[path][kind_of(part)] = None
        for option in options:
            visit(option, path, above)
        for name, field in part.get("properties", {}).items():
            inner = f"{path}.{name}".lstrip(".")
            defaults[inner] = default_of(name, field, part)
            visit(field, inner, above)
        values = [*part.get("patternProperties", {}).values(), part.get("additionalProperties")]
        for suffix, inside in (*((".*", field) for field in values), ("[]", part.get("items"))):
            if isinstance(inside, dict):
                visit(inside, f"{path}{suffix}", above)

    visit(schema, "")
    for path, names in kinds.items():
        yield f"{path}: {' | '.join(names)}{defaults.get(path, '')}"


def default_of(name: str, field: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    if name in part.get("required", ()):
        return " (required)"
    return f" = {field['default']!r}" if "default" in field else ""


STRUCTURE = ("title", "description", "default", "type", "properties", "required", "items", "$defs")


def kind_of(part: Mapping[str, Any]) -> str:
    """Type and limits, such as `integer exclusiveMinimum=0`."""
    limits = [
        f"{key}={value!r}"
        for key, value in sorted(part.items())
        if key not in STRUCTURE and not isinstance(value, dict)
    ]
    return " ".join([str(part.get("type", "any")), *limits])


def exit_codes(_: CommandRunner) -> Iterator[str]:
    """Every error, whose name is in events as `failure.kind`, and what a command ends with that meets it."""
    for name, value in sorted(vars(errors).items()):
        if inspect.isclass(value) and issubclass(value, BaseException):
            yield f"{name}: {getattr(value, 'exit_code', '')}"


def tool_digests(_: CommandRunner) -> Iterator[str]:
    """Every tool with the digest that approvals of its calls are bound to: another description voids those that wait."""
    tools = (
        *builtin_tools(),
        *order_tools(),
        *sense_tools("inbox", "candidates"),
        guarded_files_tool(),
        hand_over_tool(cast(Forge, None)),
        answer_comment_tool(cast(Forge, None)),
    )
    for spec in sorted((tool.spec for tool in tools), key=lambda spec: spec.name):
        yield f"{spec.name}: {spec.digest()}"


PAGES: dict[str, Callable[[CommandRunner], Iterator[str]]] = {
    "help.txt": help_pages,
    "json.txt": json_shapes,
    "events.txt": event_schemas,
    "settings.txt": settings_schema,
    "exit_codes.txt": exit_codes,
    "tool_digests.txt": tool_digests,
}


@pytest.mark.parametrize("name", PAGES)
def test_surface_is_that_of_the_committed_file(cli: CommandRunner, name: str) -> None:
    lines = [line.rstrip() for line in PAGES[name](cli)]
    golden = SURFACE / name
    if os.environ.get("PODIUM_WRITE_GOLDEN"):
        golden.write_text("".join(f"{line}\n" for line in lines))
    assert lines == golden.read_text().splitlines()
