"""The order: what Podium tells a guard to start."""

from __future__ import annotations

import os

_LENGTH_BYTES = 8


class GuardOrder:
    """A program to start and its limits. None means no limit of that kind."""

    def __init__(
        self,
        *,
        program: str,
        argv: list[str],
        cwd: str,
        env: dict[str, str],
        owner_pid: int,
        seconds: float | None,
        grace_seconds: float,
        linger_seconds: float,
        farewell_seconds: float,
        memory_bytes: int | None,
        processes: int | None,
        file_bytes: int | None,
        tree_memory_bytes: int | None = None,
        temporary_bytes: int | None = None,
        plan: bytes = b"",
        leaves_server: bool = False,
        on_terminal: bool = False,
    ) -> None:
        self.program = program
        self.argv = argv
        self.cwd = cwd
        self.env = env
        self.owner_pid = owner_pid
        self.seconds = seconds
        self.grace_seconds = grace_seconds
        self.linger_seconds = linger_seconds
        self.farewell_seconds = farewell_seconds
        self.memory_bytes = memory_bytes
        self.processes = processes
        self.file_bytes = file_bytes
        self.tree_memory_bytes = tree_memory_bytes
        self.temporary_bytes = temporary_bytes
        self.plan = plan
        """The tree's confinement, as `ConfinementPlan` encodes it. Empty: not at all."""
        self.leaves_server = leaves_server
        """True if what the program put into the background goes on once it has ended well."""
        self.on_terminal = on_terminal
        """It belongs to the terminal that its guard has: typed keys and signals go to it."""

    def encode(self) -> bytes:
        """The order for the control socket. None of its texts may hold a NUL."""
        optional = (
            self.seconds, self.memory_bytes, self.processes, self.file_bytes,
            self.tree_memory_bytes, self.temporary_bytes,
        )  # fmt: skip
        numbers = [
            self.owner_pid, self.grace_seconds, self.linger_seconds, self.farewell_seconds,
        ]  # fmt: skip
        fields = [str(number) for number in numbers]
        fields += ["" if number is None else str(number) for number in optional]
        fields += [str(int(self.leaves_server)), str(int(self.on_terminal)), self.plan.hex()]
        fields += [self.program, self.cwd, str(len(self.argv)), *self.argv]
        for name, value in self.env.items():
            fields += [name, value]
        body = b"\0".join(os.fsencode(field) for field in fields)
        return len(body).to_bytes(_LENGTH_BYTES, "big") + body

    @classmethod
    def read_from(cls, control: int) -> GuardOrder | None:
        """The order waiting on the socket; None when Podium went away before it was complete."""
        head = _read_exactly(control, _LENGTH_BYTES)
        body = head and _read_exactly(control, int.from_bytes(head, "big"))
        return cls._decode(body) if body else None

    @classmethod
    def decode(cls, data: bytes) -> GuardOrder:
        """The order as `encode` gave it, whole."""
        return cls._decode(data[_LENGTH_BYTES:])

    @classmethod
    def _decode(cls, body: bytes) -> GuardOrder:
        fields = [os.fsdecode(field) for field in body.split(b"\0")]
        argv_end = 16 + int(fields[15])
        rest = fields[argv_end:]
        return cls(
            owner_pid=int(fields[0]),
            grace_seconds=float(fields[1]),
            linger_seconds=float(fields[2]),
            farewell_seconds=float(fields[3]),
            seconds=float(fields[4]) if fields[4] else None,
            memory_bytes=int(fields[5]) if fields[5] else None,
            processes=int(fields[6]) if fields[6] else None,
            file_bytes=int(fields[7]) if fields[7] else None,
            tree_memory_bytes=int(fields[8]) if fields[8] else None,
            temporary_bytes=int(fields[9]) if fields[9] else None,
            leaves_server=fields[10] == "1",
            on_terminal=fields[11] == "1",
            plan=bytes.fromhex(fields[12]),
            program=fields[13],
            cwd=fields[14],
            argv=fields[16:argv_end],
            env=dict(zip(rest[::2], rest[1::2], strict=True)),
        )


def _read_exactly(fd: int, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = os.read(fd, min(count - len(data), 1 << 20))
        if not chunk:
            return b""
        data += chunk
    return bytes(data)
