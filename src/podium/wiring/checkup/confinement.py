"""The kernel sandbox, tried with a canary that must not sing."""

from __future__ import annotations

import ctypes
import platform
import tempfile
from pathlib import Path

from podium.ports import Launcher
from podium.wiring.checkup.finding import Finding, attempt, good, weak

LANDLOCK_CREATE_RULESET = 444
"""The system call's number, the same on all architectures that have it."""
LANDLOCK_VERSION_FLAG = 1

_BUBBLEWRAP = ("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/")


async def check_bubblewrap(launcher: Launcher) -> Finding:
    """A confined process must start, and must not be able to write where it may not."""
    mend = "install bubblewrap (apt-get install bubblewrap) and allow user namespaces"
    started = await attempt(launcher, *_BUBBLEWRAP, "/bin/sh", "-c", "true")
    if not started.worked:
        return weak("bubblewrap", started.complaint, mend)
    with tempfile.TemporaryDirectory(prefix="podium-doctor-") as folder:
        canary = Path(folder) / "canary"
        await attempt(launcher, *_BUBBLEWRAP, "/bin/sh", "-c", 'echo > "$0"', str(canary))
        if canary.exists():
            return weak("bubblewrap", "starts, but does not keep a process from writing", mend)
    return good("bubblewrap", "a confined process starts and cannot write outside")


async def check_landlock() -> Finding:
    """Asks the kernel which version of Landlock it has."""
    mend = "use Linux 5.13 or newer with Landlock among its security modules"
    if platform.system() != "Linux":
        return weak("landlock", f"{platform.system()} has none", mend)
    version = landlock_version()
    if version < 1:
        return weak("landlock", "this kernel does not offer it", mend)
    return good("landlock", f"version {version} of its interface")


def landlock_version() -> int:
    """The kernel's version of the interface; 0 or less when there is none."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return int(
        libc.syscall(
            ctypes.c_long(LANDLOCK_CREATE_RULESET),
            ctypes.c_void_p(None),
            ctypes.c_size_t(0),
            ctypes.c_uint32(LANDLOCK_VERSION_FLAG),
        )
    )
