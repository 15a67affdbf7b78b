"""What is really usable on this machine: each check tries the thing itself."""

from podium.wiring.checkup.examine import examine
from podium.wiring.checkup.finding import Finding, State

__all__ = ["Finding", "State", "examine"]
