"""What a confined process sees beside the workspace, and what of it is its own."""

from __future__ import annotations

_PRIVATE = ("/tmp", "/var/tmp", "/dev/shm", "/~")  # noqa: S108 - a confined process has its own
"""Fresh for each run and gone after it. `/~` is how the gate writes the home folder."""
_SYSTEM = (
    *("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/proc", "/sys", "/dev"),
    *("/nix", "/run", "/var/lib", "/var/cache", "/snap"),
)
"""There to be read, as far as it is there at all."""
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/fd", "/dev/tty", "/dev/null")


def is_private(path: str) -> bool:
    """Whether it lies in a place that a confined run may fill as it likes."""
    return _beneath(path, _PRIVATE) or _beneath(path, _STREAMS)


def may_be_seen(path: str) -> bool:
    """Whether a confined run finds something there although it is outside the workspace."""
    return path == "/" or is_private(path) or _beneath(path, _SYSTEM)


def _beneath(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
