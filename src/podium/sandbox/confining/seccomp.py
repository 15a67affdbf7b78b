"""Seccomp filters: assembled by hand, and installed with a listener that hears the guarded calls."""

from __future__ import annotations

import ctypes
import errno
import struct

from podium.sandbox.confining.file_calls import OTHER_END
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
        raise OSError(errno.ENOSYS, "no seccomp filter for this processor architecture")
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
    raise OSError(ctypes.get_errno(), "the kernel rejected the seccomp filter")


EXECS = ("execve", "execveat")

METADATA = (
    "chmod", "fchmod", "fchmodat", "fchmodat2",
    "chown", "fchown", "lchown", "fchownat",
    "utime", "utimes", "futimesat", "utimensat",
    "setxattr", "lsetxattr", "fsetxattr",
    "removexattr", "lremovexattr", "fremovexattr",
)  # fmt: skip
"""Calls that change a file without writing to it. Landlock does not know them."""

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE = 0
_STREAM, _TYPE = 1, 0xF
_NO_STREAM = ArgumentCondition(1, (_STREAM,), mask=_TYPE, among=False)
_FASTOPEN = 0x20000000

# The terminal's own calls that type into it, of which a tree needs neither.
_TYPING = (0x5412, 0x541C)
# Inode flags, versions and attributes: chattr and its like.
_INODE_FLAGS = (0x40086602, 0x40046602, 0x401C5820, 0x40087602, 0x40047602)

_NEVER = {
    # Keys belong to the user, whatever namespaces a process is in.
    "add_key": errno.EPERM,
    "request_key": errno.EPERM,
    "keyctl": errno.EPERM,
    "bpf": errno.EPERM,
    "perf_event_open": errno.EPERM,
    "userfaultfd": errno.EPERM,
    # Its requests pass by every filter. Programs know how to do without.
    "io_uring_setup": errno.ENOSYS,
    "io_uring_enter": errno.ENOSYS,
    "io_uring_register": errno.ENOSYS,
}

_SHARED_MEMORY = (
    "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop",
    "msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink",
)  # fmt: skip
"""Memory, semaphores and queues that all processes of a user share, by number instead of by path."""

_BY_PID = {
    "prlimit64": 0,
    "sched_setaffinity": 0,
    "sched_setscheduler": 0,
    "sched_setparam": 0,
    "sched_setattr": 0,
    "migrate_pages": 0,
    "move_pages": 0,
    "setpriority": 1,
    "ioprio_set": 1,
}
"""Calls that change another process, by the argument that names it. 0 is the caller itself."""


_KIND_OF_TARGET = {"setpriority": 0, "ioprio_set": 1}
"""Calls that can mean a whole group or user too, and the number that means a process."""


def mounted(judged_sockets: bool = False) -> list[SyscallRule]:
    """The filter around bubblewrap, where mounts and namespaces are the boundary.

    `judged_sockets` is for a tree that shares the machine's network, and with it the abstract sockets.
    """
    if not judged_sockets:
        return [*_for_all(), *_guarded(EXECS)]
    return [*_for_all(), *_streams_only(), *_guarded((*EXECS, "connect"))]


def unmounted(network_open: bool) -> list[SyscallRule]:
    """The filter beside Landlock: all that it leaves open is refused, or done by the guard itself."""
    rules = [*_for_all(), *_streams_only()]
    rules.append(SyscallRule("ioctl", refused(errno.EPERM), ArgumentCondition(1, _INODE_FLAGS)))
    rules += [SyscallRule(call, refused(errno.ENOSYS)) for call in _SHARED_MEMORY]
    # Of the kernel's own lines the one to ask for addresses: others list every socket of the machine.
    other_lines = ArgumentCondition(2, (_NETLINK_ROUTE,), among=False)
    rules.append(
        SyscallRule(
            "socket", refused(errno.EACCES), ArgumentCondition(0, (AF_NETLINK,)), other_lines
        )
    )
    if not network_open:
        internet = ArgumentCondition(0, (AF_INET, AF_INET6))
        rules.append(SyscallRule("socket", refused(errno.EACCES), internet, _NO_STREAM))
    for call, argument in _BY_PID.items():
        rules.append(
            SyscallRule(call, refused(errno.EPERM), ArgumentCondition(argument, (0,), among=False))
        )
    for call, process in _KIND_OF_TARGET.items():
        rules.append(
            SyscallRule(call, refused(errno.EPERM), ArgumentCondition(0, (process,), among=False))
        )
    for call in ("setxattrat", "removexattrat", "file_setattr"):
        rules.append(SyscallRule(call, refused(errno.ENOSYS)))
    rules.append(SyscallRule("ioctl", NOTIFY, ArgumentCondition(1, (OTHER_END,))))
    return [*rules, *_guarded((*EXECS, *METADATA, "connect"))]


_MODE_AT = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
_SET_UID = 0o4000


def _for_all() -> list[SyscallRule]:
    families = (AF_UNIX, AF_INET, AF_INET6, AF_NETLINK)
    rules = [SyscallRule(call, refused(number)) for call, number in _NEVER.items()]
    rules.append(SyscallRule("ioctl", refused(errno.EPERM), ArgumentCondition(1, _TYPING)))
    rules.append(
        SyscallRule(
            "socket", refused(errno.EAFNOSUPPORT), ArgumentCondition(0, families, among=False)
        )
    )
    for call, argument in _MODE_AT.items():
        # It would stay behind on the user's disk, and make whoever starts it this user.
        lasting = ArgumentCondition(argument, (_SET_UID,), mask=_SET_UID)
        rules.append(SyscallRule(call, refused(errno.EPERM), lasting))
    return rules


def _streams_only() -> list[SyscallRule]:
    """A datagram names its receiver itself, past every judgement of `connect`."""
    own = ArgumentCondition(0, (AF_UNIX,))
    rules = [
        SyscallRule("socket", refused(errno.EACCES), own, _NO_STREAM),
        SyscallRule("socketpair", refused(errno.EACCES), own, _NO_STREAM),
    ]
    for call, argument in (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3)):
        fast = ArgumentCondition(argument, (_FASTOPEN,), mask=_FASTOPEN)
        rules.append(SyscallRule(call, refused(errno.EOPNOTSUPP), fast))
    return rules


def _guarded(calls: tuple[str, ...]) -> list[SyscallRule]:
    return [SyscallRule(call, NOTIFY) for call in calls]
