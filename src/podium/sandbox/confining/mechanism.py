"""The ways in which a kernel can confine, and what a canary found out about each."""

from __future__ import annotations

from podium.domain.model import Noun
from podium.sandbox.confining.plan import BUBBLEWRAP, LANDLOCK

__all__ = ["BUBBLEWRAP", "LANDLOCK", "Mechanism", "Trial"]


class Mechanism(Noun):
    """A way to confine process trees."""

    name: str
    bubblewrap: str = ""
    """The program, for the way by mounts."""
    disable_userns: bool = True
    """Whether bubblewrap can keep a tree from making user namespaces of its own."""

    @property
    def limits_temporary(self) -> bool:
        """Whether temporary files can be limited: they need a mount of their own, and bubblewrap its option
        `--size`, which came before the one above. Of an older one nobody can tell."""
        return self.name == BUBBLEWRAP and self.disable_userns

    @property
    def title(self) -> str:
        if self.name == LANDLOCK:
            return "Landlock and seccomp guard"
        inner = "" if self.disable_userns else ", user namespaces left on inside"
        return f"bubblewrap and exec guard{inner}"


class Trial(Noun):
    """A mechanism that was tried on this machine."""

    mechanism: Mechanism
    works: bool
    why: str = ""
    """What went wrong: why it did not start, or what got through."""
