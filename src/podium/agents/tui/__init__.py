"""Programs on terminals: a tmux server that outlives Podium, panes, and messages that arrive once."""

from typing import TYPE_CHECKING

from podium.platform.lazy_exports import export_lazily

if TYPE_CHECKING:
    from podium.agents.tui.activity import Activity
    from podium.agents.tui.adapters import adapter_for
    from podium.agents.tui.adapting import Adapter, Terms
    from podium.agents.tui.agent import TuiAgent
    from podium.agents.tui.capturing import Screen, history, look
    from podium.agents.tui.control import Control
    from podium.agents.tui.generic import GenericTui
    from podium.agents.tui.injecting import Delivered, Injector
    from podium.agents.tui.kit import TuiKit
    from podium.agents.tui.ledger import Ledger
    from podium.agents.tui.mirroring import MirroredPairs
    from podium.agents.tui.pair import SideState, TerminalPair
    from podium.agents.tui.panes import Panes, Program
    from podium.agents.tui.program import require_tmux
    from podium.agents.tui.seeing import Composer, Eyes, Manner, Patience
    from podium.agents.tui.server import ServerIdentity, TerminalSettings, TmuxServer
    from podium.agents.tui.steering import SteeredPairs

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
    "Screen",
    "ServerIdentity",
    "SideState",
    "SteeredPairs",
    "TerminalPair",
    "TerminalSettings",
    "Terms",
    "TmuxServer",
    "TuiAgent",
    "TuiKit",
    "adapter_for",
    "history",
    "look",
    "require_tmux",
]

export_lazily(
    __name__,
    {
        "Activity": "activity",
        "adapter_for": "adapters",
        "Adapter": "adapting",
        "Terms": "adapting",
        "TuiAgent": "agent",
        "Screen": "capturing",
        "history": "capturing",
        "look": "capturing",
        "Control": "control",
        "GenericTui": "generic",
        "Delivered": "injecting",
        "Injector": "injecting",
        "TuiKit": "kit",
        "Ledger": "ledger",
        "MirroredPairs": "mirroring",
        "SideState": "pair",
        "TerminalPair": "pair",
        "Panes": "panes",
        "Program": "panes",
        "require_tmux": "program",
        "Composer": "seeing",
        "Eyes": "seeing",
        "Manner": "seeing",
        "Patience": "seeing",
        "ServerIdentity": "server",
        "TerminalSettings": "server",
        "TmuxServer": "server",
        "SteeredPairs": "steering",
    },
)
