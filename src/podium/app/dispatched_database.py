"""PostgreSQL database with DBOS's tables beside Podium's own."""

from __future__ import annotations

from podium.engine.distributed.database import migrate
from podium.store.postgres_snapshot import PostgresDatabase


class DispatchedDatabase(PostgresDatabase):
    """Making it makes what dispatches the queues, too."""

    def migrate(self) -> None:
        super().migrate()
        migrate(self.url)
