"""Facts about a call that rules and checks ask for, and the folders that commands of a line run in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from podium.core.decisions import Access, BuiltInRule, Call, GateContext, PathUse, Tier, ToolSpec
from podium.policy.classification import CommandUse, read_command
from podium.policy.command_paths import CommandLocation
from podium.policy.refusal import CallDenied
from podium.policy.shell import (
    COMPUTED,
    MAX_TOKENS,
    ParsedLine,
    SimpleCommand,
    read_argv,
    read_line,
)
from podium.policy.shell.command_line import MAX_PLAIN_LINE
from podium.policy.shell.simple_command import unreadable
from podium.policy.zones import (
    CompiledZone,
    TouchedPath,
    WritablePaths,
    ZoneSet,
    is_private,
    may_be_visible,
    relative_to,
    resolve,
)

_MAX_FOLDERS = 16
_HARMLESS = frozenset({"-L", "-P", "--"})


@dataclass(slots=True)
class _SubshellFolder:
    """A subshell's folder: the ones it may be, and those it would have stayed in had a `cd` failed."""

    folders: tuple[str, ...]
    left: tuple[str, ...] = ()
    been: tuple[str, ...] = ()
    """All it was before: `popd` goes back to one of them."""
    is_certain: bool = True


class CommandRoute:
    """Follows the commands of a line in order. Raises `CallDenied` for a `cd` that may not be."""

    def __init__(self, root: str, folder: str) -> None:
        self._root = root
        self._folders: tuple[str, ...] = (folder,)

    def location(self, command: SimpleCommand) -> CommandLocation:
        """The folders the command may run in. After `cd` both count: it may fail."""
        return CommandLocation(self._root, self._folders)

    def passed(self, command: SimpleCommand) -> None:
        if command.program != "cd":
            return
        location = CommandLocation(self._root, self._folders)
        plain = _targets(command)
        if len(plain) != 1 or plain[0].startswith("-") or not location.holds(plain[0]):
            raise _outside()
        reached = location.touch(plain[0], None).paths
        self._folders = _few(tuple(dict.fromkeys((*self._folders, *reached))))


class ConfinedCommandRoute(CommandRoute):
    """The same where the kernel keeps to the workspace what runs: a `cd` may lead to all it can see.

    A `cd` that the next command needs to succeed (`cd a && b`) leaves one place alone; one in a
    subshell ends with it. In a line with functions every folder counts for every command.
    """

    def __init__(
        self, root: str, folder: str, commands: Sequence[SimpleCommand], *, unsteady: bool
    ) -> None:
        super().__init__(root, folder)
        self._folders_of: dict[tuple[int, ...], _SubshellFolder] = {(): _SubshellFolder((folder,))}
        self._all: _SubshellFolder | None = None
        if unsteady:
            for command in commands:
                self.passed(command)
            locations = self._folders_of.values()
            folders = dict.fromkeys(f for p in locations for f in (*p.folders, *p.left))
            self._all = _SubshellFolder(
                _few(tuple(folders)), is_certain=all(location.is_certain for location in locations)
            )

    def location(self, command: SimpleCommand) -> CommandLocation:
        current = self._all or self._folder_of(command)
        return CommandLocation(self._root, current.folders, current.is_certain)

    def passed(self, command: SimpleCommand) -> None:
        if command.program not in ("cd", "pushd", "popd"):
            return
        current = self._folder_of(command)
        current.been = tuple(dict.fromkeys((*current.been, *current.folders)))
        if command.program == "popd":
            current.folders = _few(current.been)
            return
        plain = _targets(command)
        current.left = tuple(dict.fromkeys((*current.left, *current.folders)))
        target = plain[0] if plain else "~"
        if len(plain) > 1 or target.startswith(("-", COMPUTED)) or COMPUTED in target:
            current.is_certain = False
            return
        reached = CommandLocation(self._root, current.folders).touch(target, None).paths
        for path in reached:
            if relative_to(path, self._root) is None and not may_be_visible(path):
                raise _outside()
        current.folders = _few(reached)

    def _folder_of(self, command: SimpleCommand) -> _SubshellFolder:
        scope = command.scope
        while scope not in self._folders_of:
            scope = scope[:-1]
        current = self._folders_of[scope]
        if not command.after_success and current.left:
            current.folders = _few(tuple(dict.fromkeys((*current.folders, *current.left))))
            current.left = ()
        if scope == command.scope:
            return current
        own = self._folders_of[command.scope] = _SubshellFolder(
            current.folders, is_certain=current.is_certain
        )
        return own


def _targets(command: SimpleCommand) -> list[str]:
    return [argument for argument in command.argv[1:] if argument not in _HARMLESS]


def _few(folders: tuple[str, ...]) -> tuple[str, ...]:
    if len(folders) > _MAX_FOLDERS:
        raise CallDenied(
            BuiltInRule.UNDECIDABLE_COMMAND, "too many `cd` commands in one line; use fewer"
        )
    return folders


def _outside() -> CallDenied:
    return CallDenied(
        BuiltInRule.OUTSIDE_WORKSPACE, "`cd` may only go to a folder inside the workspace", Tier.T2
    )


FOLDER_ARGUMENT = "cwd"
"""A path argument of this name is the folder that the call's commands run in."""
ENVIRONMENT_ARGUMENT = "env"
"""An argument of this name that is an object sets variables for the call's commands."""

_MAX_PATHS = 6_000
"""Paths that the commands of one call may name: each is held against every zone."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """A call as the gate sees it."""

    call: Call
    context: GateContext
    path_touches: tuple[TouchedPath, ...]
    real_paths: Mapping[str, tuple[str, ...]]
    """Real paths by the argument that names them."""
    uses: tuple[CommandUse, ...]
    refusal: CallDenied | None
    """The objection of a built-in check to the call's commands."""

    @property
    def starts_commands(self) -> bool:
        tool = self.context.tool
        named = tool is not None and tool.command_argument is not None
        return named or bool(self.call.commands) or bool(self.call.undecidable)

    def touches(self) -> Iterator[TouchedPath]:
        yield from self.path_touches
        for use in self.uses:
            yield from use.touches


def gather(call: Call, context: GateContext) -> CallFacts:
    """Read a call's paths and commands. What is refused on the way is kept as `refusal`."""
    touches = tuple(_path_touch(path, context.root) for path in call.paths)
    uses: list[CommandUse] = []
    refusal: CallDenied | None = None
    try:
        _read_commands(call, context, uses)
    except CallDenied as refused:
        refusal = refused
    return CallFacts(call, context, touches, _real_paths(call), tuple(uses), refusal)


def _read_commands(call: Call, context: GateContext, uses: list[CommandUse]) -> None:
    if call.undecidable:
        raise CallDenied(BuiltInRule.UNDECIDABLE_COMMAND, unreadable(call.undecidable))
    tool = context.tool
    if tool is not None and tool.command_argument is not None and not call.commands:
        raise CallDenied(
            BuiltInRule.UNDECIDABLE_COMMAND, f"{call.tool!r} has no command that can be parsed"
        )
    folder = next((use.real for use in call.paths if use.argument == FOLDER_ARGUMENT), context.root)
    variables = _environment(call)
    paths = 0
    route = CommandRoute(context.root, folder)
    for reading in _readings(call, tool):
        if context.confined:
            route = ConfinedCommandRoute(
                context.root, folder, reading.commands, unsteady=reading.unsteady
            )
        elif reading.beyond_plain is not None:
            raise CallDenied(*reading.beyond_plain)
        for command in reading.commands:
            use = _read(command, route, context, variables)
            paths += sum(len(touch.paths) for touch in use.touches)
            if paths > _MAX_PATHS:
                raise CallDenied(
                    BuiltInRule.UNDECIDABLE_COMMAND,
                    f"the command may name more than {_MAX_PATHS} paths; split it into several calls",
                )
            uses.append(use)
        if reading.refusal is not None:
            raise CallDenied(*reading.refusal)


def _read(
    command: SimpleCommand,
    route: CommandRoute,
    context: GateContext,
    variables: tuple[tuple[str, str], ...],
) -> CommandUse:
    if variables:
        command = command._replace(variables=(*variables, *command.variables))
    use = read_command(command, route.location(command), context)
    route.passed(command)
    return use


def _readings(call: Call, tool: ToolSpec | None) -> Iterator[ParsedLine]:
    """The line that a shell would be given, or the words of each program that is started without one."""
    name = tool.command_argument if tool is not None else None
    command_line = call.arguments.get(name) if name is not None else None
    if isinstance(command_line, str):
        yield read_line(command_line)
        return
    _refuse_too_much(call)
    for argv in call.commands:
        if not argv or not argv[0]:
            raise CallDenied(
                BuiltInRule.UNDECIDABLE_COMMAND, "a command without a program cannot be judged"
            )
        yield read_argv(argv, assigns=command_line is None and "/" not in argv[0])


def _refuse_too_much(call: Call) -> None:
    token_count = sum(map(len, call.commands))
    if (
        token_count > MAX_TOKENS
        or sum(len(token) for argv in call.commands for token in argv) > MAX_PLAIN_LINE
    ):
        raise CallDenied(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"the command has more than {MAX_TOKENS} words or {MAX_PLAIN_LINE} characters; shorten it",
        )


def _environment(call: Call) -> tuple[tuple[str, str], ...]:
    variables = call.arguments.get(ENVIRONMENT_ARGUMENT)
    if not call.commands or not isinstance(variables, Mapping):
        return ()
    return tuple((str(name), str(value)) for name, value in variables.items())


def _real_paths(call: Call) -> Mapping[str, tuple[str, ...]]:
    real: dict[str, tuple[str, ...]] = {}
    for path in call.paths:
        real[path.argument] = (*real.get(path.argument, ()), path.real)
    return real


def _path_touch(path: PathUse, root: str) -> TouchedPath:
    """The real path; and the given one too when it lies in the workspace, where it may be a link."""
    requested = resolve(path.given, root)
    if requested != path.real and relative_to(requested, root) is not None:
        return TouchedPath(path.given, (path.real, requested), path.access)
    return TouchedPath(path.given, (path.real,), path.access)


def refuse_paths(facts: CallFacts, zones: ZoneSet, writable: WritablePaths) -> CallDenied | None:
    """The objection of zones and of the workspace's edge to the call."""
    root = facts.context.root
    confined = facts.context.confined and facts.starts_commands
    for touch in facts.touches():
        for zone in zones.near(touch, root):
            if zone.closes(touch, root, held=confined and facts.context.holds_zones):
                return CallDenied(f"{zone.kind}-zone:{zone.name}", _closed(touch, zone))
            if zone.kind in ("forbidden", "read-only") and zone.would_move(touch, root):
                return CallDenied(
                    f"{zone.kind}-zone:{zone.name}",
                    f"{touch.text!r} contains the {zone.kind} zone {zone.name!r}; leave it in place",
                )
        if touch.access in (Access.WRITE, Access.DELETE) and not all(
            writable.hold(path, root) or (confined and _is_own(path, root)) for path in touch.paths
        ):
            return CallDenied(
                BuiltInRule.OUTSIDE_WORKSPACE,
                f"{touch.text!r} is outside the folders that may be written; use a path inside the workspace",
            )
        if (
            confined
            and touch.access is Access.READ
            and not all(
                relative_to(path, root) is not None
                or may_be_visible(path)
                or writable.hold(path, root)
                for path in touch.paths
            )
        ):
            return CallDenied(
                BuiltInRule.OUTSIDE_WORKSPACE,
                f"{touch.text!r} is not available to a confined command; use a path inside the workspace",
            )
    return None


def _is_own(path: str, root: str) -> bool:
    return relative_to(path, root) is None and is_private(path)


def _closed(touch: TouchedPath, zone: CompiledZone) -> str:
    if zone.kind == "read-only":
        return f"{touch.text!r} is in the zone {zone.name!r}, which is read-only"
    return f"{touch.text!r} is in the forbidden zone {zone.name!r} and cannot be used"
