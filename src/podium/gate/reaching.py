"""Which hosts a command wants to reach, and whether a confined run's network leads there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from podium.domain.gating import BuiltInRule, GateContext, Tier
from podium.gate.programs import names
from podium.gate.refusing import Refused
from podium.gate.shell import ANY, COMPUTED, SimpleCommand

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
    found: list[Host] = []
    words = iter(command.argv[1:])
    for word in words:
        if word in _VALUED and not (command.basename == "curl" and word == "-O"):
            next(words, None)
        elif word.startswith("-") or COMPUTED in word or ANY in word:
            continue
        elif (host := _host(word)) is not None:
            found.append(host)
    return tuple(found)


def _connected(arguments: Sequence[str]) -> tuple[Host, ...] | None:
    """`nc -z HOST PORT`."""
    plain = [word for word in arguments if not word.startswith("-")]
    if len(plain) != 2 or not plain[1].isdigit():
        return None
    return ((plain[0].lower(), int(plain[1])),)


def _asked(arguments: Sequence[str]) -> tuple[Host, ...] | None:
    """Clients of databases: `-h HOST`, `--host=HOST`, a URL; without any, this machine."""
    found: list[Host] = []
    words = iter(arguments)
    for word in words:
        if word in ("-h", "--host"):
            found.append((next(words, "").lower(), None))
        elif word.startswith(("--host=", "-h")):
            found.append((word.removeprefix("--host=").removeprefix("-h").lower(), None))
        elif "://" in word and (host := _host(word)) is not None:
            found.append(host)
        elif COMPUTED in word or "host=" in word:
            return None
    return tuple(found)


def _host(word: str) -> Host | None:
    match = _URL.fullmatch(word)
    if match is None:
        return None
    scheme = _SCHEME.match(word)
    port = int(match[2]) if match[2] else _PORTS.get(scheme[1].lower()) if scheme else 80
    return match[1].lower().rstrip("."), port


def refuse_hosts(name: str, hosts: Iterable[Host], context: GateContext) -> None:
    """Raise `Refused` for a host that the confined run's network does not lead to."""
    for host, port in hosts:
        if _LOOPBACK.fullmatch(host) or any(_fits(host, port, one) for one in context.hosts):
            continue
        listed = ", ".join(context.hosts) or "none"
        raise Refused(
            BuiltInRule.UNREACHABLE_HOST,
            f"{name} cannot reach {host!r} from here; hosts that can be reached: {listed}",
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
