"""Guarded system calls as the kernel tells of them, and the answers it takes."""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from podium.sandbox.confining.syscalls import name_of

_RECEIVE, _SEND, _IS_VALID, _ADD_DESCRIPTOR = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_CONTINUE = 1
_AND_ANSWER = 2
_NOTICE_BYTES = 80
_PAGE_BYTES = 4096
_POINTERS_BYTES = 256

MAX_PATH_BYTES = 4096
MAX_ARGUMENT_BYTES = 1 << 17
MAX_ARGUMENTS = 1 << 16
MAX_ARGV_BYTES = 1 << 22


class ArgumentsTooLarge(Exception):
    """More words than anybody would judge."""


class SyscallNotice:
    """A call that waits for its answer. The caller's memory may change at any time."""

    def __init__(self, identity: int, pid: int, name: str, arguments: tuple[int, ...]) -> None:
        self.identity = identity
        self.pid = pid
        self.name = name
        self.arguments = arguments
        self._memory = -1

    def number(self, position: int) -> int:
        """An argument that the kernel takes for a signed number of 32 bits."""
        value = self.arguments[position] & 0xFFFFFFFF
        return value - (1 << 32) if value >= 1 << 31 else value

    def bytes_at(self, address: int, count: int) -> bytes:
        """Bytes of the caller's memory; fewer when there are fewer."""
        if self._memory < 0:
            self._memory = os.open(f"/proc/{self.pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return os.pread(self._memory, count, address)
        except (OSError, OverflowError):
            return b""

    def text_at(self, address: int, most: int) -> bytes:
        """The text there, up to its NUL. Raises `ArgumentsTooLarge` when there is none for so long."""
        text = b""
        while len(text) <= most:
            at = address + len(text)
            piece = self.bytes_at(at, _PAGE_BYTES - at % _PAGE_BYTES)
            if not piece:
                raise OSError(errno.EFAULT, "cannot read the memory of the process")
            end = piece.find(b"\0")
            if end >= 0:
                return text + piece[:end]
            text += piece
        raise ArgumentsTooLarge

    def argv_at(self, address: int) -> list[str]:
        """The texts of a list that ends with a null, such as an argv."""
        argv: list[str] = []
        bytes_left = MAX_ARGV_BYTES
        pointers = b""
        while address:
            if len(pointers) < 8:
                pointers = self.bytes_at(address + 8 * len(argv), _POINTERS_BYTES)
            pointer, pointers = pointers[:8], pointers[8:]
            if len(pointer) < 8:
                raise OSError(errno.EFAULT, "cannot read the memory of the process")
            if not any(pointer):
                break
            argument = self.text_at(int.from_bytes(pointer, "little"), MAX_ARGUMENT_BYTES)
            bytes_left -= len(argument)
            if bytes_left < 0 or len(argv) >= MAX_ARGUMENTS:
                raise ArgumentsTooLarge
            argv.append(os.fsdecode(argument))
        return argv

    def close(self) -> None:
        if self._memory >= 0:
            os.close(self._memory)
            self._memory = -1


def receive(listener: int) -> SyscallNotice | None:
    """The next call that waits; None when its caller is gone already."""
    buffer = bytearray(_NOTICE_BYTES)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer, True)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR):
            return None
        raise
    identity, pid, _, number = struct.unpack_from("=QIIi", buffer)
    arguments = struct.unpack_from("=6Q", buffer, 32)
    return SyscallNotice(identity, pid, name_of(number), arguments)


def still_waits(listener: int, notice: SyscallNotice) -> bool:
    """Tell whether the caller still stands there: else its pid may belong to another by now."""
    try:
        fcntl.ioctl(listener, _IS_VALID, struct.pack("=Q", notice.identity))
    except OSError:
        return False
    return True


def let_go_on(listener: int, notice: SyscallNotice) -> None:
    """The kernel does the call, as the caller's memory has it then."""
    _answer(listener, notice, 0, _CONTINUE)


def answer(listener: int, notice: SyscallNotice, failure: int) -> None:
    """The call is over: it failed with this errno, or with 0 it was done by us."""
    _answer(listener, notice, -failure, 0)


def hand_over(listener: int, notice: SyscallNotice, descriptor: int, flags: int) -> None:
    """The call is over: it gave the caller this descriptor, under a number of its own."""
    added = struct.pack("=QIIII", notice.identity, _AND_ANSWER, descriptor, 0, flags)
    fcntl.ioctl(listener, _ADD_DESCRIPTOR, added)


def _answer(listener: int, notice: SyscallNotice, error: int, flags: int) -> None:
    try:
        fcntl.ioctl(listener, _SEND, struct.pack("=QqiI", notice.identity, 0, error, flags))
    except OSError as problem:
        if problem.errno not in (errno.ENOENT, errno.EINPROGRESS):
            raise
