"""Seatbelt: a confinement as a profile for macOS's `sandbox-exec`.

Written from what Apple's own profiles and other programs use. It has not been run on a Mac by us, and no
launcher uses it yet: on macOS a confined start is refused. In a profile the last rule that fits decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from podium.core.processes import Confinement
from podium.sandbox.confining.view import ConfinedView, normal

_SYSTEM = (
    "/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/Applications/Xcode.app",
    "/private/etc", "/private/var/db/timezone", "/private/var/select",
)  # fmt: skip
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")
_SERVICES = (
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
    "com.apple.system.notification_center",
    "com.apple.trustd.agent",
    "com.apple.SecurityServer",
)
"""Names, certificates and the like. None of them acts for its caller on files."""


def profile(confinement: Confinement, temporary: str, ports: Iterable[int] = ()) -> str:
    """The profile's text. `ports` are those of 127.0.0.1 that may be connected to.

    Nothing is mounted there: paths are those outside, as `unmounted_env` names them.
    """
    sources = [normal(mount.source) for mount in confinement.mounts]
    writable = [normal(mount.source) for mount in confinement.mounts if mount.writable]
    rules = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow process-info* (target same-sandbox))",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow file-read-metadata)",
        _rule("allow", "mach-lookup", (f"(global-name {_text(name)})" for name in _SERVICES)),
        _rule("allow", "file-read* process-exec", map(_tree, (*_SYSTEM, *sources, temporary))),
        _rule("allow", "file-read*", map(_exactly, ("/", *_DEVICES))),
        _rule("allow", "file-write*", map(_tree, (temporary, *writable))),
        _rule("allow", "file-write-data", map(_exactly, _DEVICES)),
    ]
    return "\n".join(
        [
            *rules,
            *_write_rules(confinement),
            *_execs(confinement),
            *_network(confinement, ports),
            "",
        ]
    )


def _write_rules(confinement: Confinement) -> list[str]:
    """Rules for what is pinned and for the names above it: who can rename a folder can put another in its place."""
    inside = ConfinedView(confinement.mounts)
    pinned = [inside.outside(path) for path in confinement.pinned]
    fixed = [normal(mount.source) for mount in confinement.mounts if not mount.writable]
    read_only = [path for path in (*pinned, *fixed) if path]
    if not read_only:
        return []
    above = {str(folder) for path in read_only for folder in PurePosixPath(path).parents}
    names = map(_exactly, sorted(above))
    return [
        _rule("deny", "file-write*", map(_tree, read_only)),
        _rule("deny", "file-write-unlink file-write-create", names),
    ]


def _execs(confinement: Confinement) -> list[str]:
    """Programs that are refused as a whole. Subcommands cannot be told apart here."""
    if confinement.execs is None or not confinement.execs.refused:
        return []
    endings = (f'(regex #"/{_pattern(name)}$")' for name in confinement.execs.refused)
    return [_rule("deny", "process-exec", endings)]


def _network(confinement: Confinement, ports: Iterable[int]) -> list[str]:
    if confinement.network == "open":
        return ["(allow network*)", "(allow system-socket)"]
    own = '(allow network-bind network-inbound (local ip "localhost:*"))'
    allowed_ports = sorted({*ports, *confinement.forwarded_ports})
    addresses = [f'(remote ip "localhost:{port}")' for port in allowed_ports]
    sockets = [
        f"(remote unix-socket (path-literal {_text(normal(mount.source))}))"
        for mount in confinement.mounts
    ]
    outward = [_rule("allow", "network-outbound", [*addresses, *sockets])]
    return ["(deny network*)", own, *(outward if addresses or sockets else [])]


def _rule(verdict: str, operations: str, filters: Iterable[str]) -> str:
    return f"({verdict} {operations}\n  " + "\n  ".join(filters) + ")"


def _tree(path: str) -> str:
    return f"(subpath {_text(path)})"


def _exactly(path: str) -> str:
    return f"(literal {_text(path)})"


def _text(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _pattern(name: str) -> str:
    return "".join(char if char.isalnum() or char in "-_" else f"\\{char}" for char in name)
