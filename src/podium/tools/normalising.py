"""Turns what an agent asked for into a `Call`: arguments complete, paths real, command split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import cast

from jsonschema.exceptions import ValidationError

from podium.domain.errors import HARMLESS_REMEDY, BadArguments
from podium.domain.gating import FileSeen, PathArgument, PathUse, ToolSpec, canonical_json
from podium.domain.model import Json
from podium.domain.schemas import with_defaults
from podium.tools.command_files import files_of, overwritten
from podium.tools.paths import PathUnusable, path_uses
from podium.tools.registry import Registry, Touched
from podium.tools.shapes import shape_of
from podium.tools.wording import LONGEST_COMMAND, length_of

Commands = tuple[tuple[str, ...], ...]
CommandSplitter = Callable[[str], tuple[Commands, str]]
"""Splits a shell line into simple commands, or says why that cannot be decided."""
LooksSecret = Callable[[str], str | None]
"""Name of the secret that a text holds, or None."""

_FOLDER_ARGUMENT = "cwd"
"""Where a tool's command is started, if it has such an argument."""
_MOST_PROBLEMS = 20
_LONGEST_PROBLEM = 300


@dataclass(frozen=True)
class Normal:
    """The parts of a call that come out of its arguments."""

    arguments: dict[str, Json]
    paths: tuple[PathUse, ...]
    commands: Commands
    undecidable: str
    files: tuple[FileSeen, ...]


class Normaliser:
    """Checks and completes arguments. Every problem is named at once, in words for the agent."""

    def __init__(
        self,
        registry: Registry,
        *,
        split_command: CommandSplitter,
        looks_secret: LooksSecret,
        argument_bytes: int,
    ) -> None:
        self._registry = registry
        self._split_command = split_command
        self._looks_secret = looks_secret
        self._argument_bytes = argument_bytes

    def normal(self, tool: str, arguments: dict[str, Json], root: Path) -> Normal:
        """Paths are taken from `root`, a real path. Raises `UnknownTool` or `BadArguments`."""
        spec = self._registry.tool(tool).spec
        self._refuse(spec, self._shape_problems(arguments))
        # Secrets first: the words of a schema problem quote the value.
        self._refuse(spec, self._secret_problems(arguments))
        complete = with_defaults(spec.input_schema, arguments)
        self._refuse_misfits(spec, complete)
        touched = self._touched(spec, complete)
        commands, undecidable = self._commands(spec, complete, touched)
        paths = self._paths(spec, complete, root, touched)
        files = (*_files(commands, paths, root), *self._overwritten(spec, complete, paths, root))
        return Normal(complete, paths, commands, undecidable, files)

    def _refuse(self, spec: ToolSpec, problems: Iterator[str]) -> None:
        found = [problem[:_LONGEST_PROBLEM] for problem in islice(problems, _MOST_PROBLEMS)]
        if found:
            raise BadArguments(spec.name, found)

    def _refuse_misfits(self, spec: ToolSpec, arguments: dict[str, Json]) -> None:
        problems = self._schema_problems(spec, arguments)
        found = [problem[:_LONGEST_PROBLEM] for problem in islice(problems, _MOST_PROBLEMS)]
        if found:
            fits = self._registry.validator(spec.name).is_valid
            raise BadArguments(spec.name, found, shape_of(spec, fits))

    def _shape_problems(self, arguments: Json) -> Iterator[str]:
        if not isinstance(arguments, dict):
            yield f"arguments must be an object of names and values, not {type(arguments).__name__}"
            return
        try:
            size = len(canonical_json(arguments).encode())
        except (TypeError, ValueError, RecursionError) as error:
            yield f"arguments are not plain JSON: {error}"
            return
        if size > self._argument_bytes:
            yield f"arguments take {size} bytes; at most {self._argument_bytes} are taken"

    def _secret_problems(self, arguments: dict[str, Json]) -> Iterator[str]:
        for place, text in _texts(arguments, ""):
            if (name := self._looks_secret(text)) is not None:
                yield (
                    f"{place or 'a name'} holds a secret in plain text; "
                    f"write `secret://{name}` in its place; {HARMLESS_REMEDY}"
                )

    def _schema_problems(self, spec: ToolSpec, arguments: dict[str, Json]) -> Iterator[str]:
        errors = self._registry.validator(spec.name).iter_errors(arguments)
        for error in sorted(errors, key=lambda error: [str(part) for part in error.absolute_path]):
            yield _in_words(error)

    def _touched(self, spec: ToolSpec, arguments: dict[str, Json]) -> Touched:
        """What the arguments stand for. What cannot be told cannot be judged, and is refused."""
        touches = self._registry.tool(spec.name).touches
        if touches is None:
            return Touched()
        try:
            return touches(arguments)
        except ValueError as error:
            raise BadArguments(spec.name, [str(error)]) from error

    def _overwritten(
        self, spec: ToolSpec, arguments: dict[str, Json], paths: tuple[PathUse, ...], root: Path
    ) -> tuple[FileSeen, ...]:
        replaces = self._registry.tool(spec.name).replaces
        if replaces is None:
            return ()
        argument, content = replaces(arguments)
        real = [Path(use.real) for use in paths if use.argument == argument]
        try:
            return overwritten(real[0], content.encode(), root) if real else ()
        except ValueError as error:
            raise BadArguments(spec.name, [str(error)]) from None

    def _paths(
        self, spec: ToolSpec, arguments: dict[str, Json], root: Path, touched: Touched
    ) -> tuple[PathUse, ...]:
        uses: list[PathUse] = []
        problems: list[str] = []
        named = [(argument, arguments.get(argument.name)) for argument in spec.paths]
        for path in touched.paths:
            named.append((PathArgument(name=path.argument, access=path.access), path.given))
        for argument, value in named:
            try:
                uses.extend(path_uses(argument, value, root))
            except PathUnusable as error:
                problems.append(f"{argument.name!r}: {error}")
        self._refuse(spec, iter(problems))
        return tuple(uses)

    def _commands(
        self, spec: ToolSpec, arguments: dict[str, Json], touched: Touched
    ) -> tuple[Commands, str]:
        given = arguments.get(spec.command_argument) if spec.command_argument else None
        split = [self._split(spec, each) for each in touched.commands]
        if given is not None:
            split.append(self._split(spec, given))
        commands = tuple(words for found, _ in split for words in found)
        return commands, "; ".join(undecidable for _, undecidable in split if undecidable)

    def _split(self, spec: ToolSpec, given: Json) -> tuple[Commands, str]:
        """The simple commands of a shell line, or of a list, which is one."""
        given = list(given) if isinstance(given, tuple) else given
        words = given if isinstance(given, list) else [given]
        if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
            raise BadArguments(
                spec.name,
                [f"{spec.command_argument!r} must be a line of text or a list of words, no NULs"],
            )
        if isinstance(given, list):
            return (tuple(given),), ""
        commands, undecidable = self._split_command(given)
        if not commands and not undecidable:
            raise BadArguments(spec.name, [f"{spec.command_argument!r} is empty; name a command"])
        return commands, undecidable


def _files(commands: Commands, paths: tuple[PathUse, ...], root: Path) -> tuple[FileSeen, ...]:
    if length_of(commands) > LONGEST_COMMAND:
        return ()  # nobody is asked about such a command, so no yes has to be bound to its files
    folders = [Path(use.real) for use in paths if use.argument == _FOLDER_ARGUMENT]
    return files_of(commands, folders[0] if folders else root, root)


def _in_words(error: ValidationError) -> str:
    place = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = cast("dict[str, Json]", error.schema).get("properties", {})
        extra = ", ".join(repr(name) for name in error.instance if name not in known)
        return f"there is no argument {extra}{f' in {place!r}' if place else ''}"
    message = _plainly(error)
    return f"{place!r}: {message}" if place else message


_KINDS = {"string": "text", "array": "a list", "object": "an object", "null": "nothing"}


def _plainly(error: ValidationError) -> str:
    """What is wrong in short words; jsonschema's own are about schemas."""
    if error.validator in ("anyOf", "oneOf"):
        choices = cast("list[Json]", error.validator_value)
        kinds = [str(one.get("type", "")) for one in choices if isinstance(one, dict)]
        named = " or ".join(_KINDS.get(kind, kind) for kind in kinds if kind)
        return f"must be {named or 'something else'}{'' if error.instance else ', and not empty'}"
    if error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
        return f"{error.instance!r} cannot be a name here"
    return error.message


def _texts(value: Json, place: str) -> Iterator[tuple[str, str]]:
    """Every text in a value with the place it stands at; names of an object's fields too."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield place, key
            yield from _texts(item, f"{place}.{key}" if place else repr(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{place}[{number}]")
