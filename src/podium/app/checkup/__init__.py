"""Checkup of this machine: each check tries the thing itself."""

from podium.app.checkup.check import Finding, State
from podium.app.checkup.examination import examine, fix_what_is_safe

__all__ = ["Finding", "State", "examine", "fix_what_is_safe"]
