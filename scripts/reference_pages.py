"""Reference pages of the documentation site, generated from the code while the site is built.

A hook of MkDocs: the pages exist in the built site only, so they are never out of date.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

from podium.cli.app import all_commands, build
from podium.config.configuration import VARIABLES
from podium.config.schema import attribute_docs, settings_schema
from podium.core.events import event_classes

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

Schema = dict[str, Any]

_GLOBAL_OPTIONS = ("json", "project", "debug")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and the JSON Schema of podium.yaml to the site."""
    from mkdocs.structure.files import File

    schema = settings_schema()
    pages = {
        "reference/settings.md": settings_page(schema),
        "reference/commands.md": commands_page(),
        "reference/events.md": events_page(),
        "podium.schema.json": json.dumps(schema, indent=2) + "\n",
    }
    for path, text in pages.items():
        # Found before pages that only mention a key or a command.
        head = "---\nsearch: {boost: 2}\n---\n" if path.endswith(".md") else ""
        files.append(File.generated(config, path, content=head + text))
    return files


# --- settings -----------------------------------------------------------------------------------


def settings_page(schema: Schema) -> str:
    """Every key of podium.yaml, a table for each section."""
    lines = [
        "# Settings",
        "",
        "Every key of `podium.yaml` and of your own `~/.config/podium/config.yaml`, generated from the code. Unknown keys are errors. "
        "`podium config show --origin` prints the values in force and where each comes from.",
        "",
        "*Unset* means that a file without the key changes nothing.",
        "",
        "## Which value wins",
        "",
        "A flag wins over a `PODIUM_*` variable, that over the project's `podium.yaml`, that over your own `config.yaml`, that over the default. "
        "An agent, role, queue or the options of a job are taken as a whole from the strongest file that has them.",
        "",
        "What protects you follows another rule: between your file and the project's, **the stricter one applies**. This holds for `mode`, `policy`, `budgets`, "
        "`sandbox`, `environment`, `secrets`, `not_secret`, `approvers` and `redact`. A project that you cloned can tighten them and never loosen them.",
        "",
        "## Environment variables",
        "",
        "| variable | meaning |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items()),
        "",
        "For completion and checks in an editor, see [Edit podium.yaml with completion](../how-to/editor.md).",
        "",
    ]
    for title, section in _sections(schema):
        lines += [f"## `{title}`" if title else "## Top level", ""]
        if title and (about := section.get("description")):
            lines += [_one_line(about), ""]
        lines += ["| key | type | default | meaning |", "|---|---|---|---|"]
        for name, field in section.get("properties", {}).items():
            cells = (
                f"`{name}`",
                _type(field, schema),
                _default(name, field, section),
                _meaning(field, schema),
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _sections(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Objects with keys, in the order of the file, each with the path that leads to it."""
    pending: list[tuple[str, Schema]] = [("", schema)]
    listed: set[str] = set()
    while pending:
        title, section = pending.pop(0)
        yield title, section
        paths: dict[str, list[str]] = {}
        for name, field in section.get("properties", {}).items():
            for suffix, reference in _references(field):
                if reference not in listed and _object(schema["$defs"][reference]):
                    paths.setdefault(reference, []).append(f"{title}.{name}{suffix}".lstrip("."))
        listed |= set(paths)
        inner = [(", ".join(p), _object(schema["$defs"][r]) or {}) for r, p in paths.items()]
        pending = inner + pending


def _references(field: Schema, suffix: str = "") -> Iterator[tuple[str, str]]:
    """Definitions that a field leads to, with what stands between: `.NAME` for a mapping, `[]` for a list."""
    if "$ref" in field:
        yield suffix, field["$ref"].rsplit("/", 1)[-1]
    for option in field.get("anyOf", ()):
        yield from _references(option, suffix)
    if isinstance(items := field.get("items"), dict):
        yield from _references(items, suffix + "[]")
    if values := _values(field):
        yield from _references(values, suffix + ".NAME")


def _values(field: Schema) -> Schema | None:
    """Schema of a mapping's values, if it has one."""
    by_pattern = list(field.get("patternProperties", {}).values())
    values = by_pattern[0] if by_pattern else field.get("additionalProperties")
    return values if isinstance(values, dict) else None


def _object(definition: Schema) -> Schema | None:
    """The form of a definition that has keys."""
    return next((d for d in definition.get("anyOf", [definition]) if "properties" in d), None)


def _type(field: Schema, schema: Schema) -> str:
    if "$ref" in field:
        definition = schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]
        return "section" if _object(definition) else _type(definition, schema)
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if "anyOf" in field:
        kinds = [_type(option, schema) for option in field["anyOf"] if option != {"type": "null"}]
        return " or ".join(dict.fromkeys(kinds))
    match field.get("type"):
        case "array":
            return f"list of {_type(field.get('items', {}), schema)}"
        case "object":
            values = _values(field)
            return f"mapping of names to {_type(values, schema)}" if values else "mapping"
        case str(kind):
            return {"string": "text", "boolean": "true or false"}.get(kind, kind)
    return "any value"


def _default(name: str, field: Schema, section: Schema) -> str:
    if name in section.get("required", ()):
        return "required"
    value = field.get("default", "")
    if value is None:
        return "unset"
    if value in ([], {}, ""):
        return "" if "$ref" in field else "empty"
    text = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    return f"`{text}`" if len(text) <= 80 else "see below"


def _meaning(field: Schema, schema: Schema) -> str:
    text = field.get("description", "")
    if not text and "$ref" in field:
        text = (_object(schema["$defs"][field["$ref"].rsplit("/", 1)[-1]]) or {}).get(
            "description", ""
        )
    return _one_line(text)


# --- commands -----------------------------------------------------------------------------------


def commands_page() -> str:
    """Every command with its arguments and options, as `--help` prints them."""
    group = build()
    lines = [
        "# Commands",
        "",
        "Every command, generated from the code; `podium COMMAND --help` prints the same.",
        "",
        "These options work on every command, before or after its name:",
        "",
        *_options(group, globals_too=True),
        "",
        "Exit codes: 0 the goal was met, 1 failed, 2 usage, 3 waiting for a person, 4 refused, 5 budget spent, 6 timed out, "
        "7 held by another process, 130 interrupted.",
        "",
    ]
    for name in all_commands():
        lines += _command(("podium", name), group.commands[name], 2)
    return "\n".join(lines)


def _command(path: tuple[str, ...], command: Any, level: int) -> Iterator[str]:
    import click

    context = click.Context(command, info_name=path[-1])
    yield f"{'#' * level} {' '.join(path)}"
    yield ""
    usage = " ".join([*path, *command.collect_usage_pieces(context)])
    yield from ("```text", usage, "```", "")
    yield from _help(command.help or "")
    yield from (*_options(command), "")
    for name, inner in getattr(command, "commands", {}).items():
        yield from _command((*path, name), inner, min(level + 1, 4))


def _help(text: str) -> Iterator[str]:
    """Paragraphs of a docstring; blocks that begin with backspace keep their lines."""
    for block in text.strip().split("\n\n"):
        if block.startswith("\b"):
            head, *rest = block.lstrip("\b\n").splitlines()
            yield from (head, "", "```text", *(line.removeprefix("  ") for line in rest), "```", "")
        else:
            yield from (_plain(block), "")


def _options(command: Any, *, globals_too: bool = False) -> list[str]:
    """A table of arguments and options, or nothing where there are none."""
    rows = []
    for param in command.params:
        if (param.name in _GLOBAL_OPTIONS) is not globals_too or getattr(param, "hidden", False):
            continue
        if param.param_type_name == "argument":
            name = f"`{(param.metavar or param.name).upper()}`"
        else:
            value = "" if param.is_flag else f" {param.metavar or 'VALUE'}"
            names = (*param.opts, *param.secondary_opts)
            name = ", ".join(f"`{option}{value}`" for option in names)
        rows.append(f"| {name} | {_one_line(param.help or '')}{_option_default(param)} |")
    return ["| option | meaning |", "|---|---|", *rows] if rows else []


def _option_default(param: Any) -> str:
    value = param.default
    shown = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    return f" Default: `{value}`." if shown else ""


# --- events -------------------------------------------------------------------------------------


def events_page() -> str:
    """Every event of a run, with its fields."""
    lines = [
        "# Events",
        "",
        "Everything that happens in a run is an event in the journal. `podium logs RUN --json` and `podium trace RUN --json` print them, "
        "one JSON object each, with `run`, `seq`, `at`, `type`, `version` and the fields below. A type never changes its meaning; new fields have defaults. "
        "This page is generated from the code.",
        "",
    ]
    for event in event_classes().values():
        fields = {n: f for n, f in event.model_fields.items() if n not in ("type", "version")}
        documented = attribute_docs(event)
        lines += [f"## `{event.model_fields['type'].default}`", ""]
        if event.__doc__ and "__doc__" in vars(event):
            lines += [_plain(event.__doc__.split("\n\n")[0]), ""]
        if fields:
            lines += ["| field | type | meaning |", "|---|---|---|"]
            lines += [
                f"| `{n}` | `{_annotation(f.annotation)}` | {_one_line(documented.get(n, ''))} |"
                for n, f in fields.items()
            ]
            lines.append("")
    return "\n".join(lines)


def _annotation(annotation: Any) -> str:
    text = (
        annotation.__name__
        if isinstance(annotation, type) and not hasattr(annotation, "__args__")
        else str(annotation)
    )
    text = re.sub(r"typing\.Annotated\[([^,\]]+),.*?\]\)?\]?", r"\1", text)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).replace("|", "or")


def _one_line(text: str) -> str:
    return _plain(" ".join(text.split())).replace("|", "\\|")


def _plain(text: str) -> str:
    """Text for Markdown in which `<` and `>` are themselves, code spans untouched."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else escape(part, quote=False) for part in parts)
