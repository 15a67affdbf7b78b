"""Judging the execs of a tree: which file is meant, what it is, and what the rules say of it."""

from __future__ import annotations

import errno
import os
import stat

from podium.sandbox.confining.exec_rules import ExecRuleSet, ProcessContext, judge
from podium.sandbox.confining.file_calls import open_descriptor, open_meant, path_of
from podium.sandbox.confining.notices import MAX_PATH_BYTES, SyscallNotice

_PROGRAM_FOLDERS = (
    "/usr/bin", "/usr/local/bin", "/usr/sbin", "/usr/local/sbin", "/bin", "/sbin",
    "/usr/lib/git-core", "/usr/libexec/git-core", "/usr/local/libexec/git-core",
)  # fmt: skip
_FIRST_LINE_BYTES = 256
_INTERPRETERS_DEEP = 5
_MAX_REMEMBERED = 1000


class ExecRequest(ProcessContext):
    """A waiting exec."""

    def __init__(self, notice: SyscallNotice) -> None:
        """Read it from the caller's memory. Raises `OSError` and `TooMuch`."""
        folder, path_at, argv_at = (
            (notice.number(0), 1, 2) if notice.name == "execveat" else (-100, 0, 1)
        )
        self._pid = notice.pid
        self._folder = folder
        path = notice.text_at(notice.arguments[path_at], MAX_PATH_BYTES)
        self.path = os.fsdecode(path)
        self.argv = notice.argv_at(notice.arguments[argv_at])
        self._notice = notice
        self._env_at = argv_at + 1

    def folder(self) -> str:
        return os.readlink(f"/proc/{self._pid}/cwd")  # noqa: PTH115 — pathlib loads too slowly

    def variables(self) -> list[str]:
        return self._notice.argv_at(self._notice.arguments[self._env_at])

    def open(self) -> int:
        """A descriptor of the file. Raises `OSError` when there is none."""
        if self.path:
            return open_meant(self._pid, self._folder, self.path)
        return open_descriptor(self._pid, self._folder)

    def open_interpreter(self, path: str) -> int:
        return open_meant(self._pid, self._folder, path)


class ExecJudge:
    """Says of each exec why it may not be, if so."""

    def __init__(self, rules: ExecRuleSet) -> None:
        self._rules = rules
        self._files = _files_of(rules.names)
        self._first_lines: dict[tuple[int, int, int], list[str]] = {}

    def reason(self, request: ExecRequest) -> str:
        """Empty when it may be started. Raises `OSError` when its file is not to be found.

        What we cannot look at is not started either: it could be anything.
        """
        return self._reason(request, request.open(), request.path, request.argv, _INTERPRETERS_DEEP)

    def _reason(
        self, request: ExecRequest, file: int, path: str, argv: list[str], deep: int
    ) -> str:
        try:
            about = os.fstat(file)
            file_name = self._files.get((about.st_dev, about.st_ino), "")
            names = (file_name, _name(path_of(file)), _name(path))
            reason = judge(self._rules, tuple(name for name in names if name), argv, request)
            interpreter = [] if reason else self._first_line(file, about)
        finally:
            os.close(file)
        if not interpreter or deep == 0:
            return reason
        next_file = request.open_interpreter(interpreter[0])
        script_argv = [*interpreter, path, *argv[1:]]
        return self._reason(request, next_file, interpreter[0], script_argv, deep - 1)

    def _first_line(self, file: int, about: os.stat_result) -> list[str]:
        """As `first_line`, remembered: no change of a file leaves the time of its last change alone."""
        if len(self._first_lines) > _MAX_REMEMBERED:
            self._first_lines.clear()
        identity = (about.st_dev, about.st_ino, about.st_ctime_ns)
        if identity not in self._first_lines:
            self._first_lines[identity] = first_line(file, about)
        return self._first_lines[identity]


def cannot_start(request: ExecRequest) -> int:
    """The errno with which the kernel will refuse to execute this, as far as can be foreseen; or 0."""
    try:
        file = request.open()
    except OSError as error:
        return error.errno or errno.ENOENT
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode) or not about.st_mode & 0o111:
            return errno.EACCES
        interpreter = first_line(file, about)
    finally:
        os.close(file)
    if not interpreter:
        return 0
    try:
        os.close(request.open_interpreter(interpreter[0]))
    except OSError as error:
        return error.errno or errno.ENOENT
    return 0


def first_line(file: int, about: os.stat_result) -> list[str]:
    """Interpreter and argument of a script's first line; nothing for other files."""
    if not stat.S_ISREG(about.st_mode):
        return []
    try:
        readable = os.open(f"/proc/self/fd/{file}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        head = os.read(readable, _FIRST_LINE_BYTES)
    finally:
        os.close(readable)
    if not head.startswith(b"#!"):
        return []
    line = os.fsdecode(head[2:].split(b"\n", 1)[0]).strip(" \t")
    return line.replace("\t", " ").split(" ", 1) if line else []


def _files_of(names: list[str]) -> dict[tuple[int, int], str]:
    """The files of programs. Not those that are many programs in one, such as busybox."""
    names_by_file: dict[tuple[int, int], str] = {}
    for folder in _PROGRAM_FOLDERS:
        for name in names:
            path = f"{folder}/{name}"
            try:
                about = os.stat(path)  # noqa: PTH116 — pathlib loads too slowly
            except OSError:
                continue
            if _name(os.path.realpath(path)) == name:
                names_by_file[(about.st_dev, about.st_ino)] = name
    return names_by_file


def _name(path: str) -> str:
    return path.rpartition("/")[2]
