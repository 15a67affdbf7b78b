"""Seccomp filters: assembled by hand, and installed with a listener that hears the guarded calls."""

from __future__ import annotations

import ctypes
import errno
import struct

from podium.sandbox.confining.syscalls import LIBC, THIS_MACHINE, ProcessorAbi, number_of

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
_ERRNO = 0x00050000

_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER_AT, _AUDIT_AT, _ARGUMENTS_AT = 0, 4, 16
_X32 = 0x40000000
"""Numbers from here on are the x32 calls of an x86_64 kernel: the same calls by other numbers."""
_FULL = 0xFFFFFFFF

_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
_WAIT_KILLABLE = 1 << 5


def refused(number: int) -> int:
    """The verdict that lets a call fail with this errno."""
    return _ERRNO | number


class ArgumentCondition:
    """A condition on an argument, of which the kernel too looks at the lower half alone."""

    def __init__(
        self, argument: int, values: tuple[int, ...], mask: int = _FULL, among: bool = True
    ) -> None:
        """Holds when the masked argument is `among` the values, or else is none of them."""
        self.argument = argument
        self.values = values
        self.mask = mask
        self.among = among


class SyscallRule:
    """A verdict on a system call, when all its conditions hold."""

    def __init__(self, call: str, verdict: int, *conditions: ArgumentCondition) -> None:
        self.call = call
        self.verdict = verdict
        self.conditions = conditions


def assemble(rules: list[SyscallRule], machine: ProcessorAbi) -> bytes:
    """The filter. The first rule that fits decides; calls no rule speaks of are allowed."""
    code = [
        _instruction(_LOAD, _AUDIT_AT),
        _instruction(_EQUAL, machine.audit, yes=1),
        _instruction(_RETURN, refused(errno.ENOSYS)),
        _instruction(_LOAD, _NUMBER_AT),
        _instruction(_AT_LEAST, _X32, no=1),
        _instruction(_RETURN, refused(errno.ENOSYS)),
    ]
    for rule in rules:
        if rule.call in machine.numbers:
            code += _block(rule, machine.numbers[rule.call])
    return b"".join([*code, _instruction(_RETURN, ALLOW)])


def _block(rule: SyscallRule, number: int) -> list[bytes]:
    # Built from its end, since jumps go forward by counts of instructions.
    code = [_instruction(_RETURN, rule.verdict)]
    for condition in reversed(rule.conditions):
        code = [*_test(condition, len(code)), *code]
    reload = [_instruction(_LOAD, _NUMBER_AT)] if rule.conditions else []
    return [_instruction(_EQUAL, number, no=len(code) + len(reload)), *code, *reload]


def _test(condition: ArgumentCondition, rest: int) -> list[bytes]:
    """Go on with the `rest` instructions behind when it holds, else jump over them."""
    code = [_instruction(_LOAD, _ARGUMENTS_AT + 8 * condition.argument)]
    if condition.mask != _FULL:
        code.append(_instruction(_AND, condition.mask))
    for left, value in enumerate(reversed(condition.values)):
        code.insert(
            1 if condition.mask == _FULL else 2,
            _instruction(
                _EQUAL,
                value,
                yes=left if condition.among else left + rest,
                no=rest if condition.among and left == 0 else 0,
            ),
        )
    return code


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def install(rules: list[SyscallRule]) -> int:
    """Put this process and all it will start under the rules. Gives the listener's descriptor.

    `no_new_privs` must have been set. Raises `OSError`; then nothing was changed.
    """
    if THIS_MACHINE is None:
        raise OSError(errno.ENOSYS, "no filter for this kind of processor")
    code = assemble(rules, THIS_MACHINE)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _FilterProgram(len(code) // 8, ctypes.addressof(buffer))
    # Kernels before 5.19 do not know of waiting that only a deadly signal interrupts.
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = LIBC.syscall(
            ctypes.c_long(number_of("seccomp")),
            ctypes.c_long(_SET_MODE_FILTER),
            ctypes.c_long(flags),
            ctypes.byref(program),
        )
        if listener >= 0:
            return int(listener)
        if ctypes.get_errno() != errno.EINVAL:
            break
    raise OSError(ctypes.get_errno(), "seccomp filter refused")
