"""The guard's part of the operating system, loaded quickly."""

from __future__ import annotations

import ctypes
import sys

TYPE_CHECKING = False  # what a type checker takes for True; `typing` itself loads too slowly
if TYPE_CHECKING:
    import signal
else:
    # `signal` pulls in `enum`, which alone would make each start 7 ms slower.
    import _signal as signal

__all__ = ["ON_LINUX", "adopt_orphans", "die_with_parent", "gain_no_privileges", "signal"]

ON_LINUX = sys.platform == "linux"

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own. Linux only."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have this process killed when the thread that forked it ends. Linux only."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def gain_no_privileges() -> None:
    """Make set-uid programs run as the caller, for this process and all it starts. Linux only."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    if _LIBC.prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")
