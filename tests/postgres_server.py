"""A real PostgreSQL server in a folder of its own, that ends with the process that wanted it."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

StopMode = Literal["smart", "fast", "immediate"]

GUARDIAN = Path(__file__).with_name("postgres_guardian.py")
TO_INSTALL = (
    "PostgreSQL's server programs are not on this machine: run `sh scripts/need postgres` "
    "(Debian, Ubuntu: apt-get install postgresql; macOS: brew install postgresql)"
)
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 64MB
# Tests kill Podium, not the machine: what the kernel was given is as good as on the disk.
fsync = off
full_page_writes = off
jit = off
max_wal_size = 256MB
password_encryption = 'scram-sha-256'
"""


PLENTY_BYTES = 4 << 30
"""Of memory, for a whole session's databases and their log."""


class Servant(NamedTuple):
    """Whom the server runs as when the tests are run by root, which it refuses to be."""

    uid: int
    gid: int


class PostgresServer:
    """One cluster in one folder. Processes that name the same folder share it."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        self._cluster = folder / "cluster"
        self._data = self._cluster / "data"
        self._servant = _servant()

    def ensure_started(self) -> None:
        """Start the server unless a process of this session did; return when it takes connections."""
        with self._alone():
            if not self._facts_file.exists():
                self._create()

    def start(self) -> None:
        """Start a server that was stopped, on the port it had."""
        with self._alone():
            self._start()

    def stop(self, mode: StopMode = "fast") -> None:
        """`immediate` is what a crash looks like from outside: the next start recovers from the log."""
        self._run("pg_ctl", "stop", "-D", str(self._data), "-m", mode, "-w")

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    @property
    def pid(self) -> int:
        """The postmaster's. Raises `FileNotFoundError` while the server is stopped."""
        return int((self._data / "postmaster.pid").read_text().splitlines()[0])

    @property
    def port(self) -> int:
        return int(self._facts["port"])

    def url(self, database: str = "postgres") -> str:
        """As the role `podium`, an ordinary one that owns the databases made here."""
        return self._url("podium", database)

    def admin_url(self, database: str = "postgres") -> str:
        """As the superuser."""
        return self._url("postgres", database)

    def create_database(self, template: str = "template1") -> str:
        """A new database, owned by the role `podium`; gives its name."""
        name = f"test_{secrets.token_hex(8)}"
        self.administer(f"CREATE DATABASE {name} OWNER podium TEMPLATE {template}")
        return name

    def drop_database(self, name: str) -> None:
        """Drop it, whoever is connected."""
        self.administer(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def administer(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Execute one statement as the superuser, outside a transaction; its rows, if it has any."""
        import psycopg

        with psycopg.connect(self.admin_url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def log(self) -> str:
        path = self._cluster / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def _facts_file(self) -> Path:
        return self.folder / "server.json"

    @cached_property
    def _facts(self) -> dict[str, str]:
        facts: dict[str, str] = json.loads(self._facts_file.read_text())
        return facts

    def _url(self, role: str, database: str) -> str:
        return f"postgresql://{role}:{self._facts[role]}@127.0.0.1:{self._facts['port']}/{database}"

    def _create(self) -> None:
        facts = {"port": "", "postgres": secrets.token_urlsafe(12), "podium": secrets.token_hex(12)}
        self._cluster.mkdir(mode=0o700)
        self._hand_over(self._cluster)
        self._watch_over()
        self._initialise(facts["postgres"])
        self._start_on_a_free_port(facts)
        unfinished = self.folder / "server.json.new"
        unfinished.touch(0o600)
        unfinished.write_text(json.dumps(facts))
        unfinished.rename(self._facts_file)
        self.administer(f"ALTER ROLE postgres PASSWORD '{_quickly_checked(facts['postgres'])}'")
        self.administer(f"CREATE ROLE podium LOGIN PASSWORD '{_quickly_checked(facts['podium'])}'")

    def _initialise(self, password: str) -> None:
        password_file = self._cluster / "password"
        password_file.touch(0o600)
        password_file.write_text(password)
        self._hand_over(password_file)
        common = ["-D", str(self._data), "-U", "postgres", "-E", "UTF8", "--no-sync"]
        common += ["-A", "scram-sha-256", f"--pwfile={password_file}"]
        try:
            self._run(
                "initdb", *common, "--locale=C", "--locale-provider=icu", "--icu-locale=en-US"
            )
        except RuntimeError:
            self._run("initdb", *common, "--locale=C")
        password_file.unlink()
        with (self._data / "postgresql.conf").open("a") as conf:
            conf.write(SETTINGS)

    def _start_on_a_free_port(self, facts: dict[str, str]) -> None:
        for is_last in (False, False, False, False, True):
            facts["port"] = str(_free_port())
            with (self._data / "postgresql.conf").open("a") as conf:
                conf.write(f"port = {facts['port']}\n")
            try:
                self._start()
                break
            except RuntimeError:
                # Another program may have taken the port in the meantime.
                if is_last or "Address already in use" not in self.log:
                    raise

    def _start(self) -> None:
        log = str(self._cluster / "log")
        self._run("pg_ctl", "start", "-D", str(self._data), "-l", log, "-w", "-t", "60")

    def _run(self, program: str, *arguments: str) -> None:
        """Run one of the server's programs, as the servant where there is one."""
        # Not a pipe for what it says: the server would inherit it, and we would wait for its end.
        with tempfile.TemporaryFile() as output:
            done = subprocess.run(
                [str(self._programs / program), *arguments],
                cwd=self._cluster,
                env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self._servant.uid if self._servant else None,
                group=self._servant.gid if self._servant else None,
                extra_groups=[] if self._servant else None,
                check=False,
            )
            output.seek(0)
            words = output.read().decode(errors="replace")
        if done.returncode:
            raise RuntimeError(f"{program} {arguments[0]} failed: {words}\n{self.log[-2000:]}")

    def _hand_over(self, path: Path) -> None:
        if self._servant:
            os.chown(path, *self._servant)

    def _watch_over(self) -> None:
        pg_ctl = [str(self._programs / "pg_ctl"), "stop", "-D", str(self._data), "-m", "immediate"]
        if self._servant:
            drop = "import os, sys; os.setgroups([]); os.setgid(int(sys.argv[1])); "
            drop += "os.setuid(int(sys.argv[2])); os.execv(sys.argv[3], sys.argv[3:])"
            uid, gid = self._servant
            pg_ctl = [sys.executable, "-Ic", drop, str(gid), str(uid), *pg_ctl]
        command = [sys.executable, "-I", str(GUARDIAN), str(self.folder), *pg_ctl]
        quiet = subprocess.DEVNULL
        subprocess.run(command, cwd="/", stdin=quiet, stdout=quiet, stderr=quiet, check=True)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.folder / "starting").open("r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class Lifeline:
    """The folder of a server, and the lock that says the one who wanted it is still alive."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="podium-postgres-", dir=_open_folder()))
        self.folder.chmod(0o711)
        (self.folder / "starting").touch()
        self._alive = (self.folder / "alive").open("w")
        fcntl.flock(self._alive, fcntl.LOCK_EX)

    def cut(self, programs: Path | None) -> None:
        """End the server, if there is one, and remove the folder."""
        if programs is not None and (self.folder / "cluster" / "data" / "postmaster.pid").exists():
            PostgresServer(self.folder, programs).stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)
        self._alive.close()


def server_programs() -> Path | None:
    """The folder of `initdb`, `postgres` and `pg_ctl`; None when they are not installed."""
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    newest_first = sorted(versions, key=lambda path: _number(path.parent.name), reverse=True)
    on_path = shutil.which("postgres")
    asked = [Path(on_path).resolve().parent] if on_path else []
    for folder in (*asked, *newest_first, *_from_pg_config()):
        if all((folder / name).exists() for name in ("initdb", "postgres", "pg_ctl")):
            return folder
    return None


def _from_pg_config() -> list[Path]:
    if shutil.which("pg_config") is None:
        return []
    result = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
    return [Path(result.stdout.strip())] if result.returncode == 0 else []


def _number(version: str) -> float:
    try:
        return float(version)
    except ValueError:
        return 0.0


def _quickly_checked(password: str) -> str:
    """The password as the server keeps it (RFC 5803), with few rounds of hashing.

    Tests connect thousands of times, and the usual 4096 rounds are paid at both ends of each connection.
    """
    salt, rounds = secrets.token_bytes(16), 16
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
    client, server = (
        hmac.digest(salted, word, "sha256") for word in (b"Client Key", b"Server Key")
    )
    stored = hashlib.sha256(client).digest()
    kept, at_client, at_server = (
        base64.b64encode(item).decode() for item in (salt, stored, server)
    )
    return f"SCRAM-SHA-256${rounds}:{kept}${at_client}:{at_server}"


def _servant() -> Servant | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Servant(entry.pw_uid, entry.pw_gid)
    raise RuntimeError("PostgreSQL refuses to run as root, and there is no user 'nobody'")


def _open_folder() -> str:
    """Memory where there is plenty, for each test makes and drops hundreds of files; else the folder for temporary files.

    That would be /tmp when the servant cannot get there.
    """
    memory = Path("/dev/shm")
    if memory.is_mount() and shutil.disk_usage(memory).free >= PLENTY_BYTES:
        return str(memory)
    usual = Path(tempfile.gettempdir()).resolve()
    way = (usual, *usual.parents)
    if _servant() is None or all(folder.stat().st_mode & 0o001 for folder in way):
        return str(usual)
    return "/tmp"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
