"""Everything about a call that rules and checks ask for, gathered once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from podium.domain.gating import Access, BuiltInRule, Call, GateContext, PathUse, ToolSpec
from podium.gate.classify import CommandUse, read_command
from podium.gate.command_paths import Standing
from podium.gate.commands import LONGEST_LINE, MOST_WORDS
from podium.gate.places import CompiledZone, Touch, WritablePlaces, relative_to, resolve
from podium.gate.refusing import Refused
from podium.gate.wrappers import unwrap

FOLDER_ARGUMENT = "cwd"
"""A path argument of this name is the folder that the call's commands run in."""
ENVIRONMENT_ARGUMENT = "env"
"""An argument of this name that is an object sets variables for the call's commands."""

_MOST_PATHS = 6_000
"""Paths that the commands of one call may name: each is held against every zone."""


@dataclass(frozen=True, slots=True)
class Facts:
    """A call as the gate sees it."""

    call: Call
    context: GateContext
    path_touches: tuple[Touch, ...]
    real_paths: Mapping[str, tuple[str, ...]]
    """Real paths by the argument that names them."""
    uses: tuple[CommandUse, ...]
    refusal: Refused | None
    """What a built-in check has against the call's commands."""

    @property
    def starts_commands(self) -> bool:
        tool = self.context.tool
        named = tool is not None and tool.command_argument is not None
        return named or bool(self.call.commands) or bool(self.call.undecidable)

    def touches(self) -> Iterator[Touch]:
        yield from self.path_touches
        for use in self.uses:
            yield from use.touches


def gather(call: Call, context: GateContext) -> Facts:
    """Read a call's paths and commands. What is refused on the way is kept as `refusal`."""
    touches = tuple(_path_touch(path, context.root) for path in call.paths)
    uses: list[CommandUse] = []
    refusal: Refused | None = None
    try:
        _read_commands(call, context, uses)
    except Refused as refused:
        refusal = refused
    return Facts(call, context, touches, _real_paths(call), tuple(uses), refusal)


def _read_commands(call: Call, context: GateContext, uses: list[CommandUse]) -> None:
    if call.undecidable:
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"the command cannot be read for certain: {call.undecidable}; "
            "split it into plain commands without shell features and run them one by one",
        )
    tool = context.tool
    if tool is not None and tool.command_argument is not None and not call.commands:
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND, f"{call.tool!r} was given no command that can be read"
        )
    folder = next((use.real for use in call.paths if use.argument == FOLDER_ARGUMENT), context.root)
    standing = Standing(context.root, (folder,))
    _refuse_too_much(call)
    variables = _environment(call)
    paths = 0
    for argv in call.commands:
        if not argv or not argv[0]:
            raise Refused(
                BuiltInRule.UNDECIDABLE_COMMAND, "a command without a program cannot be judged"
            )
        for command in unwrap(argv, variables, assigns=_assigns(call, tool, argv)):
            use = replace(read_command(command, standing), given=argv)
            paths += sum(len(touch.paths) for touch in use.touches)
            if paths > _MOST_PATHS:
                raise Refused(
                    BuiltInRule.UNDECIDABLE_COMMAND,
                    f"its words may name more than {_MOST_PATHS} paths; do it in several calls",
                )
            uses.append(use)
            standing = standing.after(command)


def _refuse_too_much(call: Call) -> None:
    words = sum(map(len, call.commands))
    if (
        words > MOST_WORDS
        or sum(len(word) for argv in call.commands for word in argv) > LONGEST_LINE
    ):
        raise Refused(
            BuiltInRule.UNDECIDABLE_COMMAND,
            f"more than {MOST_WORDS} words or {LONGEST_LINE} characters are not read; use less",
        )


def _assigns(call: Call, tool: ToolSpec | None, argv: Sequence[str]) -> bool:
    """Whether a leading `NAME=value` sets a variable: on a line it does, in a list it is the program."""
    name = tool.command_argument if tool is not None else None
    given = call.arguments.get(name) if name is not None else None
    if isinstance(given, str):
        return True
    return given is None and "/" not in argv[0]


def _environment(call: Call) -> tuple[tuple[str, str], ...]:
    given = call.arguments.get(ENVIRONMENT_ARGUMENT)
    if not call.commands or not isinstance(given, Mapping):
        return ()
    return tuple((str(name), str(value)) for name, value in given.items())


def _real_paths(call: Call) -> Mapping[str, tuple[str, ...]]:
    real: dict[str, tuple[str, ...]] = {}
    for path in call.paths:
        real[path.argument] = (*real.get(path.argument, ()), path.real)
    return real


def _path_touch(path: PathUse, root: str) -> Touch:
    """The real path; and the given one too when it lies in the workspace, where it may be a link."""
    given = resolve(path.given, root)
    if given != path.real and relative_to(given, root) is not None:
        return Touch(path.given, (path.real, given), path.access)
    return Touch(path.given, (path.real,), path.access)


def refuse_places(
    facts: Facts, zones: Sequence[CompiledZone], writable: WritablePlaces
) -> Refused | None:
    """What zones and the workspace's edge have against the call."""
    root = facts.context.root
    for touch in facts.touches():
        for zone in zones:
            closed = zone.kind == "forbidden" or (zone.kind == "read-only" and touch.may_write)
            if closed and zone.holds(touch, root):
                return Refused(f"{zone.kind}-zone:{zone.name}", _closed(touch, zone))
            if zone.kind in ("forbidden", "read-only") and zone.would_move(touch, root):
                return Refused(
                    f"{zone.kind}-zone:{zone.name}",
                    f"{touch.given!r} holds the {zone.kind} zone {zone.name!r}; leave it in place",
                )
        if touch.access in (Access.WRITE, Access.DELETE) and not all(
            writable.hold(path, root) for path in touch.paths
        ):
            return Refused(
                BuiltInRule.OUTSIDE_WORKSPACE,
                f"{touch.given!r} is outside what may be written here; stay in the workspace",
            )
    return None


def _closed(touch: Touch, zone: CompiledZone) -> str:
    if zone.kind == "read-only":
        return f"{touch.given!r} lies in {zone.name!r}, which may be read and not written"
    return f"{touch.given!r} lies in the forbidden zone {zone.name!r}; do without it"
