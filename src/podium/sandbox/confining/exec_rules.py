"""Judging an exec by its final words: a pure function over data, without a shell in between."""

from __future__ import annotations

from podium.core.git_targets import LOCATION_VARIABLES, local_path, read_target

TYPE_CHECKING = False  # `typing` loads too slowly
if TYPE_CHECKING:
    from podium.core.processes import ExecRules

_LOADERS = ("ld-linux", "ld-musl", "ld.so", "ld64.so")
_LOADER_OPTIONS_WITH_VALUE = (
    "--library-path",
    "--preload",
    "--audit",
    "--inhibit-rpath",
    "--argv0",
)


class SubcommandRule:
    """Limits to a subcommand that may be used."""

    def __init__(
        self,
        refused_options: tuple[str, ...],
        other_options: tuple[str, ...],
        subcommands: tuple[str, ...] | None,
        needs_subcommand: bool,
        max_arguments: int | None,
        asking: tuple[str, ...],
    ) -> None:
        self.refused_options = refused_options
        self.other_options = other_options
        self.allowed_subcommands = subcommands
        self.needs_subcommand = needs_subcommand
        self.max_arguments = max_arguments
        self.asking = asking


class ProgramRule:
    """A program of whose subcommands only some may be started."""

    def __init__(
        self,
        name: str,
        options_with_value: tuple[str, ...],
        refused_options: tuple[str, ...],
        settings: tuple[str, ...],
        subcommands: dict[str, SubcommandRule],
        instead: str,
    ) -> None:
        self.name = name
        self.options_with_value = options_with_value
        self.refused_options = refused_options
        self.settings = settings
        self.subcommands = subcommands
        self.instead = instead


class ExecRuleSet:
    """The programs that may be started. Plain, since the guard that judges by it loads no models."""

    def __init__(
        self,
        refused: dict[str, str],
        programs: dict[str, ProgramRule],
        repositories: tuple[str, ...] = (),
    ) -> None:
        self.refused = refused
        self.programs = programs
        self.repositories = repositories

    @property
    def names(self) -> list[str]:
        """Programs whose files have to be known."""
        return [*self.refused, *self.programs]


def as_data(rules: ExecRules) -> list[object]:
    """The rules as lists and texts that can be handed to another process."""
    return [
        dict(rules.refused),
        [
            [
                program.program,
                list(program.options_with_value),
                list(program.refused_options),
                list(program.settings),
                {
                    name: [
                        sub.refused_options,
                        sub.other_options,
                        sub.allowed_subcommands,
                        sub.needs_subcommand,
                        sub.max_arguments,
                        sub.asking,
                    ]
                    for name, sub in program.subcommands.items()
                },
                program.instead,
            ]
            for program in rules.programs
        ],
        list(rules.repositories),
    ]


def from_data(data: list[object]) -> ExecRuleSet:
    """The rules, as `as_data` gave them."""
    refused, programs, *more = data
    repositories = more[0] if more else []
    assert isinstance(refused, dict)  # noqa: S101 — for the type checker; we wrote it ourselves
    assert isinstance(programs, list)  # noqa: S101 — as above
    assert isinstance(repositories, list)  # noqa: S101 — as above
    made = [
        ProgramRule(
            name,
            tuple(valued),
            tuple(options),
            tuple(settings),
            {sub: SubcommandRule(*facts) for sub, facts in subcommands.items()},
            instead,
        )
        for name, valued, options, settings, subcommands, instead in programs
    ]
    return ExecRuleSet(refused, {program.name: program for program in made}, tuple(repositories))


class ProcessContext:
    """The folder and variables of a process, asked for only when its arguments do not decide."""

    def folder(self) -> str:
        raise NotImplementedError

    def variables(self) -> list[str]:
        """As `NAME=value`."""
        raise NotImplementedError


def judge(
    rules: ExecRuleSet,
    names: tuple[str, ...],
    argv: list[str],
    around: ProcessContext | None = None,
) -> str:
    """The reason why this may not be started, or nothing. `names` are all that the file goes by."""
    if any(name.startswith(_LOADERS) for name in names):
        return _judge_loaded(rules, argv, around)
    for name in names:
        if name in rules.refused:
            return f"{name}: {rules.refused[name]}"
    for program in rules.programs.values():
        if any(name == program.name or name.startswith(program.name + "-") for name in names):
            reason = _judge_program(program, names, argv, rules.repositories, around)
            if reason:
                instead = f"; instead: {program.instead}" if program.instead else ""
                return f"{program.name}: {reason}{instead}"
    return ""


def _judge_loaded(rules: ExecRuleSet, argv: list[str], around: ProcessContext | None) -> str:
    """The dynamic loader starts the program that its arguments name."""
    arguments = argv[1:]
    while arguments and arguments[0].startswith("-"):
        arguments = arguments[2:] if arguments[0] in _LOADER_OPTIONS_WITH_VALUE else arguments[1:]
    return judge(rules, (arguments[0].rpartition("/")[2],), arguments, around) if arguments else ""


def _judge_program(
    program: ProgramRule,
    names: tuple[str, ...],
    argv: list[str],
    repositories: tuple[str, ...],
    around: ProcessContext | None,
) -> str:
    """A program looks at the name it was called by first, then at its words.

    Where file and call disagree every reading has to pass: which one counts is the program's affair.
    """
    called = argv[0].rpartition("/")[2] if argv else ""
    beginning = program.name + "-"
    readings = [
        [name.removeprefix(beginning), *argv[1:]]
        for name in dict.fromkeys((called, *names))
        if name.startswith(beginning)
    ]
    if not called.startswith(beginning):
        readings.append(argv[1:])
    for arguments in readings:
        reason = _judge_arguments(program, arguments)
        if reason and repositories and around is not None:
            reason = _judge_elsewhere(arguments, repositories, around, reason)
        if reason:
            return reason
    return ""


def _judge_elsewhere(
    arguments: list[str], repositories: tuple[str, ...], around: ProcessContext, reason: str
) -> str:
    """The reason still, unless all that the command is about lies outside of these repositories."""
    target = read_target(arguments)
    if target is None:
        return reason
    folder = around.folder()
    for step in target.folders:
        folder = _path(folder, step)
    pairs = (variable.partition("=") for variable in around.variables())
    location_values = {
        name: value for name, _, value in pairs if name in LOCATION_VARIABLES and value
    }
    named = (*target.locations, *location_values.values(), *map(local_path, target.changed()))
    about = [_path(folder, name) for name in named]
    if not (target.makes_repository or "GIT_DIR" in location_values):
        about.append(folder)
    if any(_is_in(path, held) for path in about for held in repositories):
        return reason
    address = target.network_address()
    return f"{target.name} may not access {address!r}" if address else ""


def _path(folder: str, name: str) -> str:
    """A path by its text: names in it that are links are not followed."""
    parts: list[str] = []
    for part in (name if name.startswith("/") else f"{folder}/{name}").split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _judge_arguments(program: ProgramRule, arguments: list[str]) -> str:
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        option = arguments[at]
        if _begins(option, program.refused_options):
            return f"the option {option!r} is not allowed"
        value = arguments[at + 1] if at + 1 < len(arguments) else ""
        if option == "-c" or (option.startswith("-c") and not option.startswith("--")):
            setting = value if option == "-c" else option[2:]
            key = setting.partition("=")[0].lower()
            if key not in program.settings:
                return f"setting {key!r} is not allowed"
        at += 2 if option in (*program.options_with_value, "-c") else 1
    if at >= len(arguments):
        return ""
    name, rest = arguments[at], arguments[at + 1 :]
    subcommand = program.subcommands.get(name)
    if subcommand is None:
        return f"{name!r} is not allowed"
    return _judge_subcommand(name, subcommand, rest)


def _judge_subcommand(name: str, rules: SubcommandRule, arguments: list[str]) -> str:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for option in options:
        if option.startswith("-") and _is_refused(option, rules):
            return f"{name} with {option!r} is not allowed"
    plain = [argument for argument in arguments if not argument.startswith("-")]
    if any(_bare(option) in rules.asking for option in (*options, *plain[:1])):
        return ""
    if not plain:
        return f"{name} without a subcommand is not allowed" if rules.needs_subcommand else ""
    if rules.allowed_subcommands is not None and plain[0] not in rules.allowed_subcommands:
        return f"{name} {plain[0]!r} is not allowed"
    if rules.max_arguments is not None and len(plain) > rules.max_arguments:
        return (
            f"{name} {plain[0]!r} with the argument {plain[rules.max_arguments]!r} is not allowed"
        )
    return ""


def _is_refused(option: str, rules: SubcommandRule) -> bool:
    if option.startswith("--"):
        # Programs take a long option by any beginning of it, unless that is an option itself.
        name = _bare(option)
        if len(name) == 2 or name in rules.other_options:
            return False
        return any(full.startswith(name) for full in rules.refused_options)
    short_options = {full[1] for full in rules.refused_options if len(full) == 2}
    return any(char in short_options for char in option[1:])


def _bare(option: str) -> str:
    return option.partition("=")[0]


def _begins(option: str, refused: tuple[str, ...]) -> bool:
    return any(option.startswith(full) for full in refused)
