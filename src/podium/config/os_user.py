"""Operating-system user at the command line; no variable or setting overrides it."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

from podium.core.approvals import IN_NAMESPACE, Approver, Authentication


def os_user() -> Approver:
    """The operating-system user of this process."""
    name = os_user_name()
    return Approver(
        name=name,
        authentication=Authentication.OS_USER,
        credential=_credential(),
        account=name,
    )


def _credential() -> str:
    who = IN_NAMESPACE if _in_user_namespace() else f"os:{os.getuid()}"
    return f"{who}@{socket.gethostname()}"


def _in_user_namespace() -> bool:
    """Tell whether uids here are given out by a namespace, in which anybody may be any user."""
    try:
        first, outer, length = map(int, Path("/proc/self/uid_map").read_text().split()[:3])
    except (OSError, ValueError):
        return False
    return (first, outer, length) != (0, 0, 2**32 - 1)


def os_user_name() -> str:
    """The login name of this process's user, or `uid-1000` where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
