"""PostgreSQL: connections that understand the statements of this room."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podium.core.errors import BadInput, StoreUnusable, ToolMissing
from podium.store.rows import RowCursor

if TYPE_CHECKING:
    import psycopg

SCHEMA = "podium"
"""The schema of Podium's tables."""

OLDEST_SERVER = 14

IDLE_SECONDS = 3
"""So long a process that is stopped or cut off can hold everybody up, and no longer."""

MAX_WAIT_SECONDS = 60
"""Longest wait of a statement for a lock that another session holds, and longest time of a reading one."""

_DEFAULTS: Mapping[str, str | int] = {
    "application_name": "podium",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    # A machine that vanished sends nothing: without these the end would never be noticed.
    "keepalives_idle": 3,
    "keepalives_interval": 1,
    "keepalives_count": 3,
    "tcp_user_timeout": 6_000,
}
"""Connection parameters for what the URL leaves open."""

_SESSION = (
    f"SET search_path = {SCHEMA}; "
    f"SET idle_in_transaction_session_timeout = '{IDLE_SECONDS}s'; "
    f"SET lock_timeout = '{MAX_WAIT_SECONDS}s'; "
    "SET statement_timeout = 0; "
    "SET TimeZone = 'UTC'; "
    # The server's side of the same: a lock must not outlive a machine that vanished.
    "SET tcp_keepalives_idle = 3; SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3; "
    # What returned must survive a crash of the server, whatever the role's default is.
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)

_REMEDY = "write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %-escapes for special characters"

_NAMED = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|::|:([A-Za-z_]\w*)|%")


class PostgresConnection:
    """A connection on which statements name their values as `:name`.

    Nothing is begun or committed by itself: each statement stands alone until `BEGIN` is executed.
    """

    def __init__(self, raw: psycopg.Connection[tuple[Any, ...]], name: str) -> None:
        self.raw = raw
        self.name = name
        """The database in messages: its URL without the password."""

    def execute(self, statement: str, values: Mapping[str, Any] | None = None, /) -> RowCursor:
        import psycopg

        values = values or {}
        try:
            return self.raw.execute(translated(statement), values)
        except psycopg.DataError:
            refuse_nul(values)
            raise

    @property
    def is_lost(self) -> bool:
        return self.raw.closed

    def close(self) -> None:
        """Let go of it. Harmless when it was lost or closed before."""
        self.raw.close()


def connect(url: str, *, longest_statement_seconds: int = 0) -> PostgresConnection:
    """A connection set up for Podium. Raises the driver's errors; 0 seconds: as long as it takes."""
    psycopg = _driver()
    parameters = _parts(url)
    raw = psycopg.connect(autocommit=True, prepare_threshold=2, **{**_DEFAULTS, **parameters})
    try:
        if raw.info.server_version < OLDEST_SERVER * 10_000:
            raise StoreUnusable(
                name_of(url),
                f"this is PostgreSQL {raw.info.server_version // 10_000}",
                f"Podium needs version {OLDEST_SERVER} or later",
            )
        raw.execute(_SESSION)
        if longest_statement_seconds:
            raw.execute(f"SET statement_timeout = '{longest_statement_seconds:d}s'".encode())
    except BaseException:
        raw.close()
        raise
    return PostgresConnection(raw, name_of(url))


def name_of(url: str) -> str:
    """The URL as it may be shown: without password and options."""
    parts = _parts(url)
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


@lru_cache(maxsize=1024)
def translated(statement: str) -> str:
    """The statement as the driver wants it: `%(name)s` for `:name`."""
    return _NAMED.sub(_placeholder, statement)


def _placeholder(match: re.Match[str]) -> str:
    if match[1]:
        return f"%({match[1]})s"
    return match[0].replace("%", "%%")


@lru_cache(maxsize=16)
def _parts(url: str) -> dict[str, Any]:
    psycopg = _driver()
    try:
        if not url.startswith(("postgresql://", "postgres://")):
            raise psycopg.ProgrammingError
        parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
        _refuse_strange(parts)
        return parts
    except psycopg.ProgrammingError:
        # The driver's own words quote the URL, password and all.
        raise BadInput(f"the database URL cannot be parsed; {_REMEDY}") from None


def _refuse_strange(parts: Mapping[str, Any]) -> None:
    """Raises `BadInput` for parts that no server has, and never says them: one may be half a password."""
    host, port = str(parts.get("host") or ""), str(parts.get("port") or "")
    if any("," in str(parts.get(name) or "") for name in ("host", "hostaddr", "port")):
        raise BadInput(
            "the database URL names several hosts; name only the primary, or an address that always "
            "leads to it"
        )
    if port and not (port.isascii() and port.isdigit()):
        raise BadInput(f"the port in the database URL is not a number; {_REMEDY}")
    if "@" in host or "@" in str(parts.get("dbname") or ""):
        raise BadInput(f"the database URL contains more than one @; {_REMEDY}")


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise ToolMissing(
            "PostgreSQL needs the package psycopg; install it with `pip install 'podium[distributed]'`"
        ) from error
    return psycopg


def refuse_nul(values: Mapping[str, Any]) -> None:
    """Raises `BadInput` if a value holds what cannot be kept."""
    for name, value in values.items():
        if isinstance(value, str) and "\0" in value:
            raise BadInput(
                f"{name} {value!r} contains a NUL character, which PostgreSQL cannot store; remove it"
            )
