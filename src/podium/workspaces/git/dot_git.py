"""Names that some file system takes for `.git`."""

from __future__ import annotations

import re

_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_ENDING_DROPPED_BY_NTFS = re.compile(r"[. ]*(:.*)?$", re.DOTALL)
_SHORT = re.compile(r"git~[0-9]+")
_MODULES_SHORT = re.compile(r"(gitmod~[0-9]+|gi7eba~[0-9]+|gi7eb~[0-9]+|gi7e~[0-9]+|gi7~[0-9]+)")


def _plain(name: str) -> str:
    """The name as macOS and Windows compare it."""
    return _ENDING_DROPPED_BY_NTFS.sub("", _IGNORED_BY_HFS.sub("", name)).casefold()


def is_dot_git(name: str) -> bool:
    """Whether macOS, Windows or Linux would find a git directory under this name."""
    return any(plain == ".git" or _SHORT.fullmatch(plain) is not None for plain in _readings(name))


def is_dot_gitmodules(name: str) -> bool:
    return any(
        plain == ".gitmodules" or _MODULES_SHORT.fullmatch(plain) is not None
        for plain in _readings(name)
    )


def _readings(name: str) -> list[str]:
    # Windows takes a backslash for the end of a folder's name.
    return [_plain(part) for part in name.split("\\")]
