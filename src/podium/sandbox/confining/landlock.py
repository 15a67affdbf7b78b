"""Landlock: rules that a process lays on itself and all it starts, by the numbers of the kernel."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from podium.sandbox.confining.syscalls import LIBC, number_of

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_DIR, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK, _MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM = (
    1 << bit for bit in range(6, 13)
)
_REFER, _TRUNCATE = 1 << 13, 1 << 14

_READ = _EXECUTE | _READ_FILE | _READ_DIR
_MAKE = _MAKE_DIR | _MAKE_REG | _MAKE_SOCK | _MAKE_FIFO | _MAKE_SYM
_CHANGE = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE | _REFER | _TRUNCATE
_DEVICES = _MAKE_CHAR | _MAKE_BLOCK
"""Never granted."""
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
"""Rights that make sense for a file: a rule with others is refused for it."""

_SCOPES = 0b11
"""Abstract sockets and signals: neither goes to a process outside."""
_ABI_WITH_SCOPES = 6

_PATH_RULE = 1


def version() -> int:
    """The version of the kernel's interface, 0 without one."""
    try:
        return _call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    except OSError:
        return 0


def has_scopes() -> bool:
    """Tell whether signals and abstract sockets can be kept inside."""
    return version() >= _ABI_WITH_SCOPES


def keep_to_own_processes() -> None:
    """Only keep signals and abstract sockets inside; files are left alone, and can be mounted."""
    _restrict(_new_ruleset(0))


def restrict(readable: list[str], writable: list[str]) -> None:
    """From now on only these trees may be read, executed, and of the second list changed.

    `no_new_privs` must have been set. Raises `OSError` where the kernel cannot hold all of it.
    """
    if not has_scopes():
        raise OSError(errno.EOPNOTSUPP, "Landlock of this kernel does not support scopes")
    ruleset = _new_ruleset(_READ | _CHANGE | _DEVICES)
    for path in readable:
        _allow(ruleset, path, _READ)
    for path in writable:
        _allow(ruleset, path, _READ | _CHANGE)
    _restrict(ruleset)


def _new_ruleset(files: int) -> int:
    attributes = struct.pack("=QQQ", files, 0, _SCOPES)
    size = ctypes.c_size_t(len(attributes))
    return _call("landlock_create_ruleset", attributes, size, ctypes.c_uint32(0))


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, handle)
        where = ctypes.c_int(_PATH_RULE)
        _call("landlock_add_rule", ctypes.c_int(ruleset), where, rule, ctypes.c_uint32(0))
    finally:
        os.close(handle)


def _restrict(ruleset: int) -> None:
    try:
        _call("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _call(name: str, *arguments: object) -> int:
    result = int(LIBC.syscall(ctypes.c_long(number_of(name)), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name} failed")
    return result
