"""Numbers of system calls, by machine. Those a machine does not have are left out."""

from __future__ import annotations

import ctypes
import errno
import os

_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "pidfd_getfd": 438,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
    "fchmodat2": 452,
    "setxattrat": 463,
    "removexattrat": 466,
    "file_setattr": 469,
}

_X86_64 = {
    "ioctl": 16,
    "shmget": 29,
    "shmat": 30,
    "shmctl": 31,
    "socket": 41,
    "connect": 42,
    "sendto": 44,
    "sendmsg": 46,
    "socketpair": 53,
    "execve": 59,
    "semget": 64,
    "semop": 65,
    "semctl": 66,
    "msgget": 68,
    "msgsnd": 69,
    "msgrcv": 70,
    "msgctl": 71,
    "chmod": 90,
    "fchmod": 91,
    "chown": 92,
    "fchown": 93,
    "lchown": 94,
    "capset": 126,
    "utime": 132,
    "setpriority": 141,
    "sched_setparam": 142,
    "sched_setscheduler": 144,
    "setxattr": 188,
    "lsetxattr": 189,
    "fsetxattr": 190,
    "removexattr": 197,
    "lremovexattr": 198,
    "fremovexattr": 199,
    "sched_setaffinity": 203,
    "semtimedop": 220,
    "utimes": 235,
    "mq_open": 240,
    "mq_unlink": 241,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "ioprio_set": 251,
    "migrate_pages": 256,
    "fchownat": 260,
    "futimesat": 261,
    "fchmodat": 268,
    "move_pages": 279,
    "utimensat": 280,
    "perf_event_open": 298,
    "prlimit64": 302,
    "sendmmsg": 307,
    "sched_setattr": 314,
    "seccomp": 317,
    "bpf": 321,
    "execveat": 322,
    "userfaultfd": 323,
}

_AARCH64 = {
    "setxattr": 5,
    "lsetxattr": 6,
    "fsetxattr": 7,
    "removexattr": 14,
    "lremovexattr": 15,
    "fremovexattr": 16,
    "ioctl": 29,
    "ioprio_set": 30,
    "fchmod": 52,
    "fchmodat": 53,
    "fchownat": 54,
    "fchown": 55,
    "utimensat": 88,
    "capset": 91,
    "sched_setparam": 118,
    "sched_setscheduler": 119,
    "sched_setaffinity": 122,
    "setpriority": 140,
    "mq_open": 180,
    "mq_unlink": 181,
    "msgget": 186,
    "msgctl": 187,
    "msgrcv": 188,
    "msgsnd": 189,
    "semget": 190,
    "semctl": 191,
    "semtimedop": 192,
    "semop": 193,
    "shmget": 194,
    "shmctl": 195,
    "shmat": 196,
    "socket": 198,
    "socketpair": 199,
    "connect": 203,
    "sendto": 206,
    "sendmsg": 211,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "execve": 221,
    "migrate_pages": 238,
    "move_pages": 239,
    "perf_event_open": 241,
    "prlimit64": 261,
    "sendmmsg": 269,
    "sched_setattr": 274,
    "seccomp": 277,
    "bpf": 280,
    "execveat": 281,
    "userfaultfd": 282,
}


class ProcessorAbi:
    """Facts about a processor for the filter: its number in the kernel's audit, and its system calls."""

    def __init__(self, audit: int, numbers: dict[str, int]) -> None:
        self.audit = audit
        self.numbers = {**_EVERYWHERE, **numbers}
        self.names = {number: name for name, number in self.numbers.items()}


MACHINES = {
    "x86_64": ProcessorAbi(0xC000003E, _X86_64),
    "aarch64": ProcessorAbi(0xC00000B7, _AARCH64),
}


def _this_machine() -> ProcessorAbi | None:
    name = os.uname().machine
    return MACHINES.get("aarch64" if name == "arm64" else name)


THIS_MACHINE = _this_machine()
"""The processor this runs on; None when no filter can be made for it."""


def number_of(name: str) -> int:
    """The number of a call here. Raises `OSError` where there are none."""
    if THIS_MACHINE is None:
        raise OSError(errno.ENOSYS, "no such system call on this processor architecture")
    return THIS_MACHINE.numbers[name]


def name_of(number: int) -> str:
    """The name of a call here, "" for one that has none in these tables."""
    return THIS_MACHINE.names.get(number, "") if THIS_MACHINE else ""


LIBC = ctypes.CDLL(None, use_errno=True)
