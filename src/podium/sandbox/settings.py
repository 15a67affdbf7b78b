"""What a launcher lets through to children, and how patient it is with them."""

from __future__ import annotations

from podium.domain.model import Noun


class LauncherSettings(Noun):
    """Settings of a `ProcessLauncher`."""

    allowed_names: tuple[str, ...] = (
        "COLORTERM",
        "HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "PATH",
        "SHELL",
        "TERM",
        "TMPDIR",
        "TZ",
        "USER",
    )
    """Variables of the parent that every child gets."""
    allowed_prefixes: tuple[str, ...] = ("LC_",)
    """Beginnings of names that every child gets as well."""
    grace_seconds: float = 5.0
    """How long a tree has between TERM and KILL when it is out of time or cancelled."""
    linger_seconds: float = 0.2
    """How long descendants may go on after the program's own end, to write their last lines."""
    start_seconds: float = 30.0
    """How long a guard may take to come up before the start is given up."""
    overdue_seconds: float = 30.0
    """How long a guard may be silent beyond its time before it is taken for stopped and killed."""
