"""Programs on terminals: a tmux server that outlives Podium, panes, and messages that arrive once."""

from podium.agents.tui.activity import Activity
from podium.agents.tui.capturing import Screen, history, look
from podium.agents.tui.control import Control
from podium.agents.tui.injecting import Delivered, Injector
from podium.agents.tui.ledger import Ledger
from podium.agents.tui.panes import Panes, Program
from podium.agents.tui.program import require_tmux
from podium.agents.tui.seeing import Composer, Eyes, Manner, Patience
from podium.agents.tui.server import ServerIdentity, TerminalSettings, TmuxServer

__all__ = [
    "Activity",
    "Composer",
    "Control",
    "Delivered",
    "Eyes",
    "Injector",
    "Ledger",
    "Manner",
    "Panes",
    "Patience",
    "Program",
    "Screen",
    "ServerIdentity",
    "TerminalSettings",
    "TmuxServer",
    "history",
    "look",
    "require_tmux",
]
