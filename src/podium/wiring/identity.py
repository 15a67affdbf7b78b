"""Who is at the command line, as the operating system says it. No variable and no setting has a say in it."""

from __future__ import annotations

import os
import pwd
import socket

from podium.domain.approvals import Approver, Authentication


def os_user() -> Approver:
    """The operating-system user of this process."""
    name = os_user_name()
    return Approver(
        name=name,
        authentication=Authentication.OS_USER,
        credential=f"os:{os.getuid()}@{socket.gethostname()}",
        account=name,
    )


def os_user_name() -> str:
    """The login name of this process's user, or `uid-1000` where it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
