"""`DbosEngine`: the same runs on many machines, handed out by DBOS on PostgreSQL."""

from podium.engine.distributed.engine import DISTRIBUTED, DbosEngine
from podium.engine.distributed.workflows import enqueue

__all__ = ["DISTRIBUTED", "DbosEngine", "enqueue"]
