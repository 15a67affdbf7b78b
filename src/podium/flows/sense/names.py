"""One order of a name at a time, and none again once it was done: two files may bear the same id."""

from __future__ import annotations

from datetime import datetime

from podium.flows.sense.releasing import BEGINNING
from podium.ports import Tx


def take_name(tx: Tx, wo_id: str, run_id: str, now: datetime) -> bool:
    """Take the name for this run. False: another run has it, or has done it. Asked again, the answer is the same."""
    if tx.counted(_mine(wo_id, run_id), BEGINNING):
        return True
    if tx.counted(_anyone(wo_id), BEGINNING) > 0:
        return False
    tx.count(_anyone(wo_id), now)
    tx.count(_mine(wo_id, run_id), now)
    return True


def free_name(tx: Tx, wo_id: str, run_id: str, now: datetime) -> None:
    """Let go of a name whose order was not done: somebody may mend it and send it again."""
    freed = f"{_mine(wo_id, run_id)}:freed"
    if tx.counted(_mine(wo_id, run_id), BEGINNING) and not tx.counted(freed, BEGINNING):
        tx.count(_anyone(wo_id), now, -1.0)
        tx.count(freed, now)


def _anyone(wo_id: str) -> str:
    return f"order:{wo_id}"


def _mine(wo_id: str, run_id: str) -> str:
    return f"order:{wo_id}:{run_id}"
