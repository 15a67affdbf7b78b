"""Normalisation of a request to a `Call`: complete arguments, real paths, split command, digests of files it rests on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import cast

from jsonschema.exceptions import ValidationError

from podium.core.decisions import FileVersion, PathArgument, PathUse, ToolSpec, canonical_json
from podium.core.errors import HARMLESS_REMEDY, BadArguments
from podium.core.json_schema import with_defaults
from podium.core.model import Json
from podium.platform.safe_open import open_plain, read_start
from podium.tools.output_text import MAX_COMMAND, length_of
from podium.tools.registry import Registry, TouchedByCall, shape_of

_MAX_PATH_BYTES = 4_096
_MAX_NAME_BYTES = 255


class PathUnusable(ValueError):
    """The text cannot be a path. The message says why."""


def path_uses(argument: PathArgument, value: Json, root: Path) -> Iterator[PathUse]:
    """One use for a text, one for each text of a list. None stands for a path that was not given."""
    if value is None:
        return
    for path in value if isinstance(value, list) else [value]:
        if not isinstance(path, str):
            raise PathUnusable(f"{path!r} is not a path; give it as text")
        yield PathUse(
            argument=argument.name,
            given=path,
            real=real_path(path, root),
            access=argument.access,
        )


def real_path(path: str, root: Path) -> str:
    """Absolute path with symlinks and `..` resolved, relative texts against `root`.

    What does not exist is its nearest real parent plus the rest.
    """
    _check_shape(path)
    current = real = os.path.realpath(root / path)
    # A loop of symlinks is left unresolved by realpath; what it would lead to cannot be judged.
    while (parent := os.path.dirname(current)) != current:  # noqa: PTH120
        if os.path.islink(current):  # noqa: PTH114 - a path object for each parent takes far longer
            name = os.path.basename(current)  # noqa: PTH119
            raise PathUnusable(f"{path!r} goes through a loop of symbolic links at {name!r}")
        current = parent
    return real


def _check_shape(path: str) -> None:
    if not path:
        raise PathUnusable("the path is empty; use `.` for the workspace itself")
    if "\0" in path:
        raise PathUnusable("the path contains a NUL character")
    if len(path.encode()) > _MAX_PATH_BYTES:
        raise PathUnusable(f"the path is longer than {_MAX_PATH_BYTES} bytes")
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in path.split("/")):
        raise PathUnusable(f"a name in the path is longer than {_MAX_NAME_BYTES} bytes")


_HASHED_BYTES = 1_000_000
MAX_REPLACED_BYTES = 20_000_000
"""Of a file that is overwritten: it is shown to a person, and kept for undo."""


def files_of(
    commands: Sequence[Sequence[str]], folder: Path, root: Path
) -> tuple[FileVersion, ...]:
    """Return plain files beneath `root` that arguments of the commands name, also as `--option=file`.

    They are resolved from `folder`, and from where a `cd` between the commands leads.
    """
    versions: dict[str, FileVersion] = {}
    for command in commands:
        for argument in command:
            for candidate in _candidates(argument):
                path = os.path.realpath(folder / candidate)
                if path not in versions and (version := _version_of(Path(path), root)) is not None:
                    versions[path] = version
        if len(command) == 2 and command[0] in ("cd", "pushd"):
            folder = folder / command[1]
    return tuple(versions.values())


def overwritten(path: Path, content: bytes, root: Path) -> tuple[FileVersion, ...]:
    """The file that a write of `content` would change; empty when nothing would be lost.

    Raises `ValueError` for one that is too large to be replaced: nobody needs to be asked about that.
    """
    version = _version_of(path, root)
    if version is None or _holds(path, content):
        return ()
    if _size_of(path) > MAX_REPLACED_BYTES:
        raise ValueError(
            f"{version.path!r} is larger than {MAX_REPLACED_BYTES} bytes and cannot be overwritten in one step; write "
            "another file, or delete this one first"
        )
    return (version,)


def changed_since(files: Sequence[FileVersion], root: Path) -> str:
    """The first of the files that is not what it was; empty when none is."""
    for file in files:
        if _version_of(root / file.path, root) != file:
            return file.path
    return ""


def _holds(path: Path, content: bytes) -> bool:
    try:
        return read_start(path, len(content) + 1) == content
    except OSError:
        return False


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # gone again
        return 0


def _candidates(argument: str) -> Iterator[str]:
    yield argument
    _, _, value = argument.partition("=")
    if value:
        yield value


def _version_of(path: Path, root: Path) -> FileVersion | None:
    if not path.is_relative_to(root):
        return None
    try:
        handle = open_plain(path)
    except (OSError, ValueError):
        return None
    with open(handle, "rb") as file:  # noqa: PTH123 - a handle, not a path
        status = os.fstat(handle)
        content = hashlib.sha256(file.read(_HASHED_BYTES))
    if status.st_size > _HASHED_BYTES:
        # Nobody can set the time of a change, so it stands for the rest of a large file.
        content.update(f"{status.st_size} {status.st_ctime_ns}".encode())
    name = os.fsencode(path.relative_to(root)).decode(errors="backslashreplace")
    return FileVersion(path=name, sha256=content.hexdigest())


Commands = tuple[tuple[str, ...], ...]
CommandSplitter = Callable[[str], tuple[Commands, str]]
"""Splits a shell line into simple commands, or says why that cannot be decided."""
LooksSecret = Callable[[str], str | None]
"""Name of the secret that a text holds, or None."""

_FOLDER_ARGUMENT = "cwd"
"""Argument with the folder that a tool's command is started in."""
_MAX_PROBLEMS = 20
_MAX_PROBLEM = 300


@dataclass(frozen=True)
class NormalizedCall:
    """The parts of a call that come out of its arguments."""

    arguments: dict[str, Json]
    paths: tuple[PathUse, ...]
    commands: Commands
    undecidable: str
    files: tuple[FileVersion, ...]


class Normalizer:
    """Checks and completes arguments. Every problem is named at once, for the agent."""

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

    def normal(self, tool: str, arguments: dict[str, Json], root: Path) -> NormalizedCall:
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
        return NormalizedCall(complete, paths, commands, undecidable, files)

    def _refuse(self, spec: ToolSpec, problems: Iterator[str]) -> None:
        listed = [problem[:_MAX_PROBLEM] for problem in islice(problems, _MAX_PROBLEMS)]
        if listed:
            raise BadArguments(spec.name, listed)

    def _refuse_misfits(self, spec: ToolSpec, arguments: dict[str, Json]) -> None:
        problems = self._schema_problems(spec, arguments)
        listed = [problem[:_MAX_PROBLEM] for problem in islice(problems, _MAX_PROBLEMS)]
        if listed:
            fits = self._registry.validator(spec.name).is_valid
            raise BadArguments(spec.name, listed, shape_of(spec, fits))

    def _shape_problems(self, arguments: Json) -> Iterator[str]:
        if not isinstance(arguments, dict):
            yield f"arguments must be a JSON object, not {type(arguments).__name__}"
            return
        try:
            size = len(canonical_json(arguments).encode())
        except (TypeError, ValueError, RecursionError) as error:
            yield f"arguments are not plain JSON: {error}"
            return
        if size > self._argument_bytes:
            yield f"arguments have {size} bytes; the limit is {self._argument_bytes}"

    def _secret_problems(self, arguments: dict[str, Json]) -> Iterator[str]:
        for location, text in _texts(arguments, ""):
            if (name := self._looks_secret(text)) is not None:
                yield (
                    f"{location or 'a name'} contains a secret in plain text; write "
                    f"`secret://{name}` instead; {HARMLESS_REMEDY}"
                )

    def _schema_problems(self, spec: ToolSpec, arguments: dict[str, Json]) -> Iterator[str]:
        errors = self._registry.validator(spec.name).iter_errors(arguments)
        for error in sorted(errors, key=lambda error: [str(part) for part in error.absolute_path]):
            yield _describe(error)

    def _touched(self, spec: ToolSpec, arguments: dict[str, Json]) -> TouchedByCall:
        """Return what the arguments touch. Raises `BadArguments` where that cannot be told, hence not judged."""
        touches = self._registry.tool(spec.name).touches
        if touches is None:
            return TouchedByCall()
        try:
            return touches(arguments)
        except ValueError as error:
            raise BadArguments(spec.name, [str(error)]) from error

    def _overwritten(
        self, spec: ToolSpec, arguments: dict[str, Json], paths: tuple[PathUse, ...], root: Path
    ) -> tuple[FileVersion, ...]:
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
        self, spec: ToolSpec, arguments: dict[str, Json], root: Path, touched: TouchedByCall
    ) -> tuple[PathUse, ...]:
        uses: list[PathUse] = []
        problems: list[str] = []
        named = [(argument, arguments.get(argument.name)) for argument in spec.paths]
        for path in touched.paths:
            named.append((PathArgument(name=path.argument, access=path.access), path.path))
        for argument, value in named:
            try:
                uses.extend(path_uses(argument, value, root))
            except PathUnusable as error:
                problems.append(f"{argument.name!r}: {error}")
        self._refuse(spec, iter(problems))
        return tuple(uses)

    def _commands(
        self, spec: ToolSpec, arguments: dict[str, Json], touched: TouchedByCall
    ) -> tuple[Commands, str]:
        command = arguments.get(spec.command_argument) if spec.command_argument else None
        split = [self._split(spec, command) for command in touched.commands]
        if command is not None:
            split.append(self._split(spec, command))
        commands = tuple(command for simple_commands, _ in split for command in simple_commands)
        return commands, "; ".join(undecidable for _, undecidable in split if undecidable)

    def _split(self, spec: ToolSpec, command: Json) -> tuple[Commands, str]:
        """The simple commands of a shell line, or of a list, which is one."""
        command = list(command) if isinstance(command, tuple) else command
        arguments = command if isinstance(command, list) else [command]
        if not arguments or not all(
            isinstance(argument, str) and "\0" not in argument for argument in arguments
        ):
            raise BadArguments(
                spec.name,
                [
                    f"{spec.command_argument!r} must be a string or a list of strings, without NUL characters"
                ],
            )
        if isinstance(command, list):
            return (tuple(command),), ""
        commands, undecidable = self._split_command(command)
        if not commands and not undecidable:
            raise BadArguments(spec.name, [f"{spec.command_argument!r} is empty; name a command"])
        return commands, undecidable


def _files(commands: Commands, paths: tuple[PathUse, ...], root: Path) -> tuple[FileVersion, ...]:
    if length_of(commands) > MAX_COMMAND:
        return ()  # nobody is asked about such a command, so no yes has to be bound to its files
    folders = [Path(use.real) for use in paths if use.argument == _FOLDER_ARGUMENT]
    return files_of(commands, folders[0] if folders else root, root)


def _describe(error: ValidationError) -> str:
    location = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "additionalProperties" and isinstance(error.instance, dict):
        properties = cast("dict[str, Json]", error.schema).get("properties", {})
        extra = ", ".join(repr(name) for name in error.instance if name not in properties)
        return f"unknown argument {extra}{f' in {location!r}' if location else ''}"
    message = _plainly(error)
    return f"{location!r}: {message}" if location else message


_KINDS = {"string": "text", "array": "a list", "object": "an object", "null": "nothing"}


def _plainly(error: ValidationError) -> str:
    """Shorten a validation error; jsonschema's own messages are about schemas."""
    if error.validator in ("anyOf", "oneOf"):
        choices = cast("list[Json]", error.validator_value)
        kinds = [str(one.get("type", "")) for one in choices if isinstance(one, dict)]
        named = " or ".join(_KINDS.get(kind, kind) for kind in kinds if kind)
        return f"must be {named or 'of another type'}{'' if error.instance else ', and not empty'}"
    if error.validator == "pattern" and "propertyNames" in error.absolute_schema_path:
        return f"{error.instance!r} is not a valid name here"
    return error.message


def _texts(value: Json, location: str) -> Iterator[tuple[str, str]]:
    """Every text in a value with the place it stands at; names of an object's fields too."""
    if isinstance(value, str):
        yield location, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield location, key
            yield from _texts(item, f"{location}.{key}" if location else repr(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{location}[{number}]")
