"""Classification of one simple command: its kind, paths, hosts and risk."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from podium.core.decisions import Access, BuiltInRule, GateContext, Tier, TierTerm
from podium.policy import programs
from podium.policy.command_paths import (
    CommandLocation,
    finds_and_removes,
    is_computed,
    moved,
    path_parts,
    refuse_ruin,
    removed_by_find,
    removes_folders,
    touches_of,
    understood,
    writer_touches,
)
from podium.policy.git_firewall import RULE as GIT_RULE
from podium.policy.git_firewall import read_git, scratch_target, scratch_touches
from podium.policy.programs import CommandKind, names, weigh_variable
from podium.policy.refusal import CallDenied
from podium.policy.shell import ANY, ASSIGNMENT, COMPUTED, SimpleCommand, assignment, printable
from podium.policy.shell.wrappers import SHELLS, runs_a_file
from podium.policy.zones import HARMLESS_PATHS, TouchedPath

_FETCHING = names("curl wget http https xh aria2c")
_CONNECTING = names("nc ncat netcat telnet")
_ASKING = names("psql mysql redis-cli mongosh")
_VALUED = names(
    "-o -O -d -H -X -u -A -e -b -c -F -T -w -m -D -E -K -x -Y -y -z -C -P -t -T -U --output --data "
    "--data-raw --data-binary --data-urlencode --json --header --request --user --user-agent "
    "--referer --cookie --cookie-jar --form --upload-file --write-out --max-time --dump-header "
    "--cert --key --cacert --connect-timeout --retry --retry-delay --output-document "
    "--directory-prefix --timeout --tries --post-data --method --body-data"
)
_URL = re.compile(
    r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?(\[[0-9a-fA-F:]+\]|[^/:?#\s\[\]]+)(?::(\d+))?(?:[/?#].*)?",
    re.DOTALL | re.IGNORECASE,
)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = re.compile(r"localhost|127(?:\.\d{1,3}){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost")

Host = tuple[str, int | None]


def hosts_of(command: SimpleCommand) -> tuple[Host, ...] | None:
    """Hosts and ports that its words name. None: that cannot be told of this program."""
    if command.basename in _CONNECTING:
        return _connected(command.argv[1:])
    if command.basename in _ASKING:
        return _asked(command.argv[1:])
    if command.basename not in _FETCHING:
        return None
    hosts: list[Host] = []
    tokens = iter(command.argv[1:])
    for argument in tokens:
        if argument in _VALUED and not (command.basename == "curl" and argument == "-O"):
            next(tokens, None)
        elif argument.startswith("-") or COMPUTED in argument or ANY in argument:
            continue
        elif (host := _host(argument)) is not None:
            hosts.append(host)
    return tuple(hosts)


def _connected(arguments: Sequence[str]) -> tuple[Host, ...] | None:
    """`nc -z HOST PORT`."""
    plain = [argument for argument in arguments if not argument.startswith("-")]
    if len(plain) != 2 or not plain[1].isdigit():
        return None
    return ((plain[0].lower(), int(plain[1])),)


def _asked(arguments: Sequence[str]) -> tuple[Host, ...] | None:
    """Clients of databases: `-h HOST`, `--host=HOST`, a URL; without any, this machine."""
    hosts: list[Host] = []
    tokens = iter(arguments)
    for token in tokens:
        if token in ("-h", "--host"):
            hosts.append((next(tokens, "").lower(), None))
        elif token.startswith(("--host=", "-h")):
            hosts.append((token.removeprefix("--host=").removeprefix("-h").lower(), None))
        elif "://" in token and (host := _host(token)) is not None:
            hosts.append(host)
        elif COMPUTED in token or "host=" in token:
            return None
    return tuple(hosts)


def _host(address: str) -> Host | None:
    match = _URL.fullmatch(address)
    if match is None:
        return None
    scheme = _SCHEME.match(address)
    port = int(match[2]) if match[2] else _PORTS.get(scheme[1].lower()) if scheme else 80
    return match[1].lower().rstrip("."), port


def refuse_hosts(name: str, hosts: Iterable[Host], context: GateContext) -> None:
    """Raise `CallDenied` for a host that the confined run's network does not lead to."""
    for host, port in hosts:
        if _LOOPBACK.fullmatch(host) or any(_fits(host, port, one) for one in context.hosts):
            continue
        listed = ", ".join(context.hosts) or "none"
        raise CallDenied(
            BuiltInRule.UNREACHABLE_HOST,
            f"{name} cannot reach {host!r} from here; reachable hosts: {listed}",
            Tier.T3,
        )


def _fits(host: str, port: int | None, listed: str) -> bool:
    """`name`, `*.name` (below it alone) or `name:port`, as `Confinement.hosts` has them."""
    name, colon, own_port = listed.rpartition(":")
    if not colon or not own_port.isdigit():
        name, own_port = listed, ""
    ports = {int(own_port)} if own_port else {80, 443}
    if port not in ports:
        return False
    name = name.lower().rstrip(".")
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


_JQ_LOADING = re.compile(r"\b(import|include|env|ENV)\b")
"""Words of jq's language that read other files, or the environment."""


@dataclass(frozen=True)
class CommandUse:
    """A simple command, read."""

    command: SimpleCommand
    kind: CommandKind
    touches: tuple[TouchedPath, ...]
    factors: tuple[TierTerm, ...]
    perhaps: CommandKind | None = None
    """Its possible kind in a form that is not understood: allow rules do not go by it, others do."""
    computed: bool = False
    """Something in it is only known when it runs."""

    @property
    def open(self) -> bool:
        """Tell whether what it does shows only when it runs: by computed words, or by what the program is."""
        return self.computed or self.kind is CommandKind.OTHER

    @cached_property
    def argv(self) -> tuple[str, ...]:
        """Program and arguments: all that allow rules see."""
        return (self.command.program, *self.command.argv[1:])

    @cached_property
    def readings(self) -> tuple[tuple[str, ...], ...]:
        """The readings of deny and ask rules: also the program by its bare name, and any wrapper."""
        plain = (self.command.basename, *self.command.argv[1:])
        return tuple(dict.fromkeys((self.argv, plain, self.command.outer_argv)))


def read_command(
    command: SimpleCommand, location: CommandLocation, context: GateContext
) -> CommandUse:
    """Classify a command. Raises `CallDenied` for what is denied under every policy."""
    confined = context.confined
    factors = [*_variable_factors(_lasting(command), confined)]
    opened = tuple(_opened(command, location))
    writes = any(touch.access is Access.WRITE for touch in opened)
    if not command.argv:
        kind = CommandKind.WRITE if writes else CommandKind.OTHER
        return CommandUse(command, kind, opened, tuple(factors))
    _refuse_by_name(command, confined)
    if command.basename == "git":
        return _read_git(command, location, factors, opened, confined)
    factors += _variable_factors(_set_by(command), confined)
    kind = _kind(command, confined)
    factors += _kind_factors(command, kind, context)
    if kind is CommandKind.READ and writes:
        kind = CommandKind.WRITE
    perhaps = CommandKind.WRITE if command.program in programs.WRITERS else None
    touches = (*_touched(command, kind, location, confined), *opened)
    if confined:
        refuse_ruin(command, touches, location)
    return CommandUse(command, kind, touches, tuple(factors), perhaps, command.computed)


def _opened(command: SimpleCommand, location: CommandLocation) -> Iterator[TouchedPath]:
    """The files that the shell opens for the command."""
    for redirect in command.redirects:
        if not is_computed(redirect.target) and redirect.target not in HARMLESS_PATHS:
            yield location.touch(redirect.target, redirect.access)


def _touched(
    command: SimpleCommand, kind: CommandKind, location: CommandLocation, confined: bool
) -> Iterator[TouchedPath]:
    if command.program in programs.WRITERS:
        yield from writer_touches(command, location)
    else:
        yield from touches_of(command, kind, location)
    if confined and command.program == "find":
        yield from removed_by_find(command, location)


def _lasting(command: SimpleCommand) -> Iterator[tuple[str, str]]:
    """The variables it is given, but for `IFS= read`, where it only parts the line that is read."""
    for name, value in command.variables:
        if not (name == "IFS" and command.argv[:1] == ("read",)):
            yield name, value


def _set_by(command: SimpleCommand) -> Iterator[tuple[str, str]]:
    """Variables that a builtin sets: `export A=1`, `read A`, `printf -v A`."""
    arguments = command.argv[1:]
    if command.program in programs.EXPORTING:
        yield from (assignment(argument) for argument in arguments if ASSIGNMENT.match(argument))
    elif command.program in programs.NAMING:
        yield from ((argument, COMPUTED) for argument in arguments if argument.isidentifier())
    elif command.program == "printf" and arguments[:1] == ("-v",):
        yield from ((argument, COMPUTED) for argument in arguments[1:2])


def _variable_factors(
    variables: Iterable[tuple[str, str]], confined: bool = False
) -> Iterator[TierTerm]:
    for name, value in variables:
        weight = weigh_variable(name, value, confined=confined)
        if weight == "dangerous":
            raise CallDenied(
                BuiltInRule.DANGEROUS_VARIABLE,
                f"the variable {name} changes which programs run or what they load; omit it",
            )
        if weight == "unknown" and not confined:
            yield TierTerm(tier=Tier.T2, because=f"sets {name}, whose effect is unknown")


def _refuse_by_name(command: SimpleCommand, confined: bool) -> None:
    name = command.basename
    if name in programs.PRIVILEGED:
        raise CallDenied(
            BuiltInRule.PRIVILEGE,
            f"{name} runs with another user's privileges, which is not allowed",
        )
    if name in programs.SHELL_STATE and not (confined and _steady(command)):
        raise CallDenied(
            BuiltInRule.SHELL_INDIRECTION, f"{name} changes the shell itself, which is not allowed"
        )
    if confined and name in programs.CALCULATING:
        _refuse_calculation(command)
    if _is_indirect(name, confined):
        raise CallDenied(
            BuiltInRule.SHELL_INDIRECTION,
            f"{name} starts commands that its command line does not show; run them one by one",
        )
    ruinous = name in programs.RUINOUS or name.startswith(programs.RUINOUS_BEGINNINGS)
    if ruinous and not (confined and name in programs.DELETERS):
        raise CallDenied(
            BuiltInRule.DESTRUCTIVE_COMMAND, f"{name} destroys data that cannot be restored"
        )
    if name.startswith("git-") or (name == "git" and command.program != "git"):
        raise CallDenied(
            GIT_RULE,
            f"{command.argv[0]!r}: call the system's git as `git <command>`",
            Tier.T2,
        )
    if name in SHELLS and not runs_a_file(command.argv, confined=confined):
        raise CallDenied(
            BuiltInRule.SHELL_INDIRECTION,
            f"{name} would read commands that the command line does not show",
        )


def _is_indirect(name: str, confined: bool) -> bool:
    if confined and name in programs.CONFINED_INDIRECT:
        return False
    return name in programs.INDIRECT or name.startswith(programs.LOADER_BEGINNINGS)


def _steady(command: SimpleCommand) -> bool:
    """Tell whether a builtin changes nothing but variables, limits and options of its own shell."""
    stateful_flags = programs.STEADY_STATE.get(command.basename)
    if stateful_flags is None:
        return False
    short = [
        argument for argument in command.argv[1:] if argument[:1] in "-+" and argument[:2] != "--"
    ]
    return not any(set(stateful_flags) & set(option[1:]) for option in short)


def _refuse_calculation(command: SimpleCommand) -> None:
    """These builtins take some words for calculations, which run `a[$(…)]`."""
    for argument in command.argv[1:]:
        if "$(" in argument or "`" in argument:
            raise CallDenied(
                BuiltInRule.SHELL_INDIRECTION,
                f"{command.basename} may run the text {printable(argument)[:80]!r}; omit it",
            )


def _read_git(
    command: SimpleCommand,
    location: CommandLocation,
    factors: Sequence[TierTerm],
    opened: tuple[TouchedPath, ...],
    confined: bool,
) -> CommandUse:
    if confined and (scratch := scratch_target(command.argv[1:], location)) is not None:
        touches = (*scratch_touches(*scratch), *opened)
        return CommandUse(
            command, CommandKind.GIT_WRITE, touches, tuple(factors), computed=command.computed
        )
    if not location.holds("."):
        raise CallDenied(GIT_RULE, _outside(confined), Tier.T2)
    use = read_git(command.argv[1:], location.holds, confined=confined)
    if use.folder is not None:
        location = CommandLocation(location.root, location.touch(use.folder, None).paths)
    if location.folders != (location.root,) and not confined:
        because = "a folder may be a repository of its own, whose configuration can start programs"
        factors = (*factors, TierTerm(tier=Tier.T2, because=because))
    access = Access.WRITE if use.writes else Access.READ
    touches = tuple(
        location.touch(part, access)
        for argument in use.path_arguments
        for part in path_parts(argument)
    )
    if len(use.moved) > 1:
        touches = (*touches, *moved(use.moved, location))
    kind = CommandKind.GIT_WRITE if use.writes else CommandKind.GIT_READ
    if any(touch.access is Access.WRITE for touch in opened):
        kind = CommandKind.GIT_WRITE
    losing = () if confined else use.factors
    return CommandUse(
        command, kind, (*touches, *opened), (*factors, *losing), computed=command.computed
    )


def _outside(confined: bool) -> str:
    if not confined:
        return "git may only run inside the workspace"
    return (
        "git may only run inside the workspace or on a scratch repository; name its folder with `cd DIR && "
        "git …` or `git -C DIR …`, without addresses of other machines"
    )


def _kind(command: SimpleCommand, confined: bool) -> CommandKind:
    program, name = command.program, command.basename
    if not confined:
        _refuse_recursion(command)
    if name in programs.REACHING:
        return CommandKind.OTHER if confined and _stays(name, command.argv) else CommandKind.NETWORK
    if name in programs.INSTALLING or _installs(name, command.argv):
        return CommandKind.INSTALL
    if name in programs.DELETERS:
        return CommandKind.DELETE
    if program in programs.WRITERS:
        return CommandKind.WRITE if understood(command) else CommandKind.OTHER
    if confined and program == "find" and finds_and_removes(command):
        return CommandKind.DELETE
    if program in programs.READERS and not _does_more(program, command.argv[1:]):
        return CommandKind.READ
    return CommandKind.OTHER


def _stays(name: str, argv: Sequence[str]) -> bool:
    return len(argv) > 1 and argv[1] in programs.LOCAL_SUBCOMMANDS.get(name, ())


def _installs(name: str, argv: Sequence[str]) -> bool:
    plain = [argument for argument in argv[1:] if not argument.startswith("-")]
    if name.startswith("python") and argv[1:3] == ("-m", "pip"):
        return True
    subcommands = programs.INSTALLING_SUBCOMMANDS.get(name)
    if subcommands is None:
        return False
    # `yarn` alone installs.
    return (plain[0] in subcommands) if plain else name == "yarn"


def _does_more(program: str, arguments: Sequence[str]) -> bool:
    """Tell whether a reader is used in a form that also writes or starts something."""
    if program == "find" and any(
        argument.startswith(programs.FIND_ACTIONS) for argument in arguments
    ):
        raise CallDenied(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            "find may only list files here, without -exec, -ok, -delete or -fprint",
        )
    if program == "uniq":  # Its second plain word is written to.
        return any(not argument.startswith("-") for argument in arguments)
    if program == "jq" and any(_JQ_LOADING.search(argument) for argument in arguments):
        return True
    flags, beginnings = programs.READERS[program]
    return any(
        bool(set(flags) & set(argument))
        if not argument.startswith("--")
        else argument.startswith(beginnings)
        for argument in arguments
        if argument.startswith("-")
    )


def _refuse_recursion(command: SimpleCommand) -> None:
    option = removes_folders(command)
    if option:
        raise CallDenied(
            BuiltInRule.DESTRUCTIVE_COMMAND,
            f"{command.basename} {option} affects whole folders; name the files one by one",
        )


def _kind_factors(
    command: SimpleCommand, kind: CommandKind, context: GateContext
) -> Iterator[TierTerm]:
    """Yield the factors of its kind: what the kernel keeps in the workspace can be undone; what leaves the machine cannot."""
    name, confined = command.basename, context.confined
    undone = Tier.T1 if confined and context.undoable else Tier.T2
    if kind is CommandKind.NETWORK:
        hosts = hosts_of(command) if confined else None
        if hosts is None or context.network == "open":
            yield TierTerm(tier=programs.REACHING[name], because=f"{name} can reach other machines")
            return
        refuse_hosts(name, hosts, context)
        yield TierTerm(tier=Tier.T1, because=f"{name} can reach the listed hosts")
    elif kind is CommandKind.INSTALL:
        because = f"{name} installs code from other hosts"
        yield TierTerm(tier=undone if context.network == "listed" else Tier.T2, because=because)
    elif kind is CommandKind.DELETE:
        yield TierTerm(tier=undone, because=f"{name} deletes or overwrites existing files")
