"""The plan: what a guard has to know to confine a tree, as data that crosses to its process."""

from __future__ import annotations

import marshal

from podium.sandbox.confining.exec_rules import ExecRuleSet, from_data

BUBBLEWRAP, LANDLOCK = "bubblewrap", "landlock"


class ConfinementPlan:
    """The plan of one tree's confinement. Paths are those outside."""

    def __init__(
        self,
        *,
        mechanism: str,
        bubblewrap: str = "",
        options: list[str] | None = None,
        scoped: bool = False,
        judged_sockets: bool = False,
        readable: list[str] | None = None,
        writable: list[str] | None = None,
        network_open: bool = False,
        ports: list[int] | None = None,
        sockets: list[str] | None = None,
        rules: list[object] | None = None,
        temporary: list[str] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self.bubblewrap = bubblewrap
        self.options = options or []
        """The program bubblewrap, and its options."""
        self.scoped = scoped
        """For bubblewrap: whether Landlock has to keep abstract sockets in, since no namespace does."""
        self.judged_sockets = judged_sockets
        """For bubblewrap: whether the guard has to, since Landlock cannot either."""
        self.readable = readable or []
        self.writable = writable or []
        """For Landlock: trees that may be read, and those that may be changed too."""
        self.network_open = network_open
        self.ports = ports or []
        """For bubblewrap: where to listen inside. For Landlock: where to connect to on this machine."""
        self.sockets = sockets
        """Files of sockets, or folders of them, that may be connected to. None: all that the tree sees."""
        self.rules = rules
        self.temporary = temporary or []
        """For bubblewrap: folders in memory, by their paths inside, whose size is limited."""

    def exec_rules(self) -> ExecRuleSet | None:
        return None if self.rules is None else from_data(self.rules)

    def encode(self) -> bytes:
        return marshal.dumps(vars(self))

    @classmethod
    def decode(cls, data: bytes) -> ConfinementPlan:
        """The plan as `encode` gave it. Only for what Podium itself has written."""
        return cls(**marshal.loads(data))  # noqa: S302 — from Podium's own end of the control socket
