"""Programs on terminals: a tmux server that outlives Podium, panes, and messages that arrive once."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.agents.tui.activity import Activity
    from podium.agents.tui.adapter import Adapter, TuiDeps, TuiTimings
    from podium.agents.tui.control import Control
    from podium.agents.tui.generic import GenericTui
    from podium.agents.tui.injector import Delivered, Injector
    from podium.agents.tui.ledger import Ledger
    from podium.agents.tui.pair import SideState, TerminalPair, TuiAgent, adapter_for
    from podium.agents.tui.pair_access import MirroredPairs, SteeredPairs
    from podium.agents.tui.panes import Panes, Program
    from podium.agents.tui.screen import (
        Composer,
        Eyes,
        Manner,
        Patience,
        TerminalScreen,
        history,
        look,
    )
    from podium.agents.tui.server import ServerIdentity, TerminalSettings, TmuxServer, require_tmux

__all__ = [
    "Activity",
    "Adapter",
    "Composer",
    "Control",
    "Delivered",
    "Eyes",
    "GenericTui",
    "Injector",
    "Ledger",
    "Manner",
    "MirroredPairs",
    "Panes",
    "Patience",
    "Program",
    "ServerIdentity",
    "SideState",
    "SteeredPairs",
    "TerminalPair",
    "TerminalScreen",
    "TerminalSettings",
    "TmuxServer",
    "TuiAgent",
    "TuiDeps",
    "TuiTimings",
    "adapter_for",
    "history",
    "look",
    "require_tmux",
]

export_lazily(
    __name__,
    {
        "Activity": "activity",
        "adapter_for": "pair",
        "Adapter": "adapter",
        "TuiTimings": "adapter",
        "TuiAgent": "pair",
        "TerminalScreen": "screen",
        "history": "screen",
        "look": "screen",
        "Control": "control",
        "GenericTui": "generic",
        "Delivered": "injector",
        "Injector": "injector",
        "TuiDeps": "adapter",
        "Ledger": "ledger",
        "MirroredPairs": "pair_access",
        "SideState": "pair",
        "TerminalPair": "pair",
        "Panes": "panes",
        "Program": "panes",
        "require_tmux": "server",
        "Composer": "screen",
        "Eyes": "screen",
        "Manner": "screen",
        "Patience": "screen",
        "ServerIdentity": "server",
        "TerminalSettings": "server",
        "TmuxServer": "server",
        "SteeredPairs": "pair_access",
    },
)
