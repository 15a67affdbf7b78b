"""Dependencies and name of the operator's flow."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from podium.core.packs import Pack
from podium.ports import Clock, Ids, Store, Toolbox

OPERATOR = "operator"
"""The flow, its queue, and the role in which its calls are made."""


@dataclass(frozen=True)
class Bench:
    """A pack, and the tools of it."""

    pack: Pack
    toolbox: Toolbox
    store: Store


@dataclass(frozen=True)
class OperatorFlowDeps:
    """Dependencies of a run of the operator."""

    store: Store
    clock: Clock
    ids: Ids
    bench_for: Callable[[str], Awaitable[Bench]]
    """The pack of this name. Raises what loading it raises."""
    approval_seconds: float
    """Seconds that people have to approve a plan."""
