"""Sources that are asked for one thing: a command, a git repository, an HTTP address."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import ssl
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from podium.core.errors import CallRefused, ToolMissing
from podium.core.model import Json, whole_text
from podium.core.processes import Confinement, ProcessExit, ProcessLimits, ProcessSpec
from podium.jobs.sense.io.content import named_hidden, redacted, understand_output
from podium.jobs.sense.io.sources.file_selection import (
    NotSensed,
    SourceDeps,
    etag_of,
    real_path,
    text_tail,
    trim_cut_end,
    without_login,
)
from podium.jobs.sense.models import Condition, Look, Sensed
from podium.ports.launcher import Launcher

if TYPE_CHECKING:
    from http.client import HTTPConnection, HTTPResponse

_FRESH_SECONDS = 10.0
"""For so long what was found for the mark stands for a look, once."""


class AskedSource(ABC):
    """Source of one thing that is queried, once for an etag and the look after it."""

    def __init__(self, deps: SourceDeps, name: str, location: str) -> None:
        """`place` is what it is called in a look: a command, an address, a path."""
        self._deps = deps
        self._name = name
        self._location = location
        self._fresh_look: tuple[float, Look] | None = None

    @abstractmethod
    async def _ask(self) -> tuple[Condition, str, Json]:
        """Condition, why, content. Raises `NotSensed`."""

    @property
    def name(self) -> str:
        return self._name

    async def etag(self) -> str:
        look = await self._look()
        self._fresh_look = (self._deps.clock.monotonic(), look)
        return look.mark

    async def look(self) -> Look:
        look, self._fresh_look = self._fresh_look, None
        if look and self._deps.clock.monotonic() - look[0] < _FRESH_SECONDS:
            return look[1]
        return await self._look()

    async def _look(self) -> Look:
        condition: Condition
        try:
            condition, why, content = await self._ask()
        except NotSensed as problem:
            condition, why, content = problem.condition, problem.why, problem.content
        redact = self._deps.redact
        return _look_at(
            Sensed(
                source=self._name,
                place=redact(whole_text(self._location)),
                condition=condition,
                why=redact(whole_text(why)),
                content=redacted(named_hidden(content), redact),
            )
        )


def _look_at(sensed: Sensed) -> Look:
    """The look of a source that finds one thing and has to find it to know whether it changed."""
    facts = (sensed.place, sensed.condition, sensed.why, sensed.stale, sensed.content)
    return Look(source=sensed.source, found=(sensed,), total=1, mark=etag_of(*facts))


NOT_TRUSTED = "podium.yaml is not trusted in its current form; read it, then run `podium trust`"


class UntrustedSource(AskedSource):
    """Placeholder of an untrusted command or URL; its look says what a person has to do."""

    def __init__(self, deps: SourceDeps, name: str, target: str) -> None:
        """`wish` is the command or the address that the project's file names."""
        super().__init__(deps, name, without_login(target))

    async def _ask(self) -> tuple[Condition, str, Json]:
        raise NotSensed("unreadable", NOT_TRUSTED)


GetConfinement = Callable[[], Confinement]
"""Returns the confinement of programs that a source starts: they read the root and write nothing."""

_ERROR_CHARACTERS = 2_000


class CommandSource(AskedSource):
    """Runs a program at the root and gives its exit code and output, as JSON where it is JSON."""

    def __init__(
        self,
        deps: SourceDeps,
        name: str,
        command: Sequence[str],
        *,
        launcher: Launcher,
        confine: GetConfinement,
        timeout_seconds: float = 10.0,
    ) -> None:
        super().__init__(deps, name, shlex.join(command))
        self._launcher = launcher
        self._confine = confine
        self._command = tuple(command)
        self._timeout_seconds = timeout_seconds

    async def _ask(self) -> tuple[Condition, str, Json]:
        limits = ProcessLimits(seconds=self._timeout_seconds, output_bytes=self._deps.file_bytes)
        spawn = ProcessSpec(
            argv=self._command, cwd=str(self._deps.root), limits=limits, confinement=self._confine()
        )
        ended = await ended_of(self._launcher, spawn)
        content: dict[str, Json] = {"exit_code": ended.exit_code}
        if ended.signal is not None:
            content["signal"] = ended.signal
        if ended.exit_code != 0:
            stderr = ended.stderr.decode(errors="replace").strip()
            content["errors"] = text_tail(stderr, _ERROR_CHARACTERS)
        if ended.stdout_dropped_bytes:
            text = ended.stdout.decode(errors="replace").replace("\0", "�")
            content["output"] = trim_cut_end(text)
            return "cut", f"output truncated to {len(ended.stdout)} bytes", content
        content["output"] = understand_output(ended.stdout)
        return "ok", "", content


async def ended_of(launcher: Launcher, spawn: ProcessSpec) -> ProcessExit:
    """Run it and return its exit. Raises `NotSensed` if it did not end by itself."""
    try:
        ended = await launcher.run(spawn)
    except ToolMissing as error:
        raise NotSensed("missing", str(error)) from None
    except (CallRefused, OSError) as error:
        raise NotSensed("unreadable", f"it could not be started: {error}") from None
    if ended.timed_out:
        raise NotSensed("unreadable", f"timed out after {spawn.limits.seconds:g} seconds")
    return ended


_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "diff.external=",
    "gc.auto=0",
    "log.showSignature=false",
    "submodule.recurse=false",
    "protocol.allow=never",
)
"""Settings of a repository can name programs; these overrides keep every one of them from starting."""
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    # Looking must not write the index anew.
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_STATUS = (
    "status",
    "-z",
    "--porcelain=v2",
    "--branch",
    "--no-renames",
    "--untracked-files=all",
    # Git would start what the settings of repositories inside this one name.
    "--ignore-submodules=all",
)
_FIELDS_BEFORE_NAME = {"1 ": 8, "u ": 10, "? ": 1}
"""Of a changed file, one in conflict, one that git does not know."""
_MAX_CHANGED_FILES = 50


class GitSource(AskedSource):
    """Source of a git repository. Git starts no other program and writes nothing."""

    def __init__(
        self,
        deps: SourceDeps,
        name: str,
        path: str = ".",
        *,
        launcher: Launcher,
        confine: GetConfinement = Confinement,
        commits: int = 20,
        timeout_seconds: float = 10.0,
    ) -> None:
        super().__init__(deps, name, path or ".")
        self._path = path or "."
        self._launcher = launcher
        self._confine = confine
        self._commits = commits
        self._timeout_seconds = timeout_seconds

    async def _ask(self) -> tuple[Condition, str, Json]:
        folder = await asyncio.to_thread(self._folder)
        off = await self._filters(folder)
        entries = (await self._git_output(folder, *_STATUS, settings=off)).split("\0")
        about = dict(header[2:].split(" ", 1) for header in entries if header.startswith("# "))
        subfolder = folder.relative_to(self._deps.root)
        changed = sorted(line for entry in entries if (line := self._changed(entry, subfolder)))
        head = _unless(about.get("branch.oid", ""), "(initial)")
        content: dict[str, Json] = {
            "head": head,
            "branch": _unless(about.get("branch.head", ""), "(detached)"),
            "changed_files": len(changed),
            "changed": changed[:_MAX_CHANGED_FILES],
            "commits": await self._log(folder) if head else [],
        }
        if "branch.ab" in about:
            content["ahead_behind"] = about["branch.ab"]
        return "ok", "", content

    def _folder(self) -> Path:
        folder = self._deps.root / real_path(self._deps.root, self._path)
        if not os.path.lexists(folder / ".git"):
            raise NotSensed("missing", "not the root of a git repository")
        return folder

    async def _filters(self, folder: Path) -> dict[str, str]:
        """Variables that switch off the content filters that the repository names, whatever their names are."""
        argv = ("config", "--null", "--name-only", "--includes", "--get-regexp", r"^filter\.")
        result = await self._run(folder, *argv)
        if result.exit_code not in (0, 1) or result.stdout_dropped_bytes:
            raise _failed("config", result)
        keys = dict.fromkeys(key for key in os.fsdecode(result.stdout).split("\0") if key)
        settings = {"GIT_CONFIG_COUNT": str(len(keys))}
        for number, key in enumerate(keys):
            settings[f"GIT_CONFIG_KEY_{number}"] = key
            settings[f"GIT_CONFIG_VALUE_{number}"] = "false" if key.endswith(".required") else ""
        return settings

    def _changed(self, entry: str, subfolder: PurePath) -> str:
        """Parse an entry of the status into change and file name; empty for files that do not count."""
        if entry[:2] not in _FIELDS_BEFORE_NAME:
            return ""
        *fields, file = entry.split(" ", _FIELDS_BEFORE_NAME[entry[:2]])
        if self._deps.is_own(str(subfolder / file)):
            return ""
        return f"{fields[1] if len(fields) > 1 else '??'} {file}"

    async def _log(self, folder: Path) -> list[dict[str, str]]:
        fields = ("commit", "at", "author", "subject")
        form = "--format=%H%x00%cI%x00%an%x00%s"
        output = await self._git_output(
            folder, "log", f"-n{self._commits}", "--no-show-signature", form
        )
        return [dict(zip(fields, line.split("\0"), strict=False)) for line in output.splitlines()]

    async def _git_output(
        self, folder: Path, *argv: str, settings: dict[str, str] | None = None
    ) -> str:
        ended = await self._run(folder, *argv, settings=settings)
        if ended.exit_code != 0:
            raise _failed(argv[0], ended)
        if ended.stdout_dropped_bytes:
            raise NotSensed("too_large", f"the output of git {argv[0]} is too large")
        return ended.stdout.decode(errors="replace")

    async def _run(
        self, folder: Path, *argv: str, settings: dict[str, str] | None = None
    ) -> ProcessExit:
        # Named, not looked for: neither above, nor where the repository's settings point.
        location = (f"--git-dir={folder / '.git'}", f"--work-tree={folder}")
        hardened = _set((*_SETTINGS, f"safe.directory={folder}"))
        spawn = ProcessSpec(
            argv=("git", "--no-pager", *hardened, *location, *argv),
            cwd=str(folder),
            env={**_ENVIRONMENT, **(settings or {})},
            limits=ProcessLimits(
                seconds=self._timeout_seconds, output_bytes=max(self._deps.file_bytes, 1_000_000)
            ),
            confinement=self._confine(),
        )
        return await ended_of(self._launcher, spawn)


def _set(settings: Sequence[str]) -> tuple[str, ...]:
    return tuple(token for setting in settings for token in ("-c", setting))


def _unless(value: str, none: str) -> str | None:
    return None if value in ("", none) else value


def _failed(command: str, ended: ProcessExit) -> NotSensed:
    stderr = text_tail(ended.stderr.decode(errors="replace").strip(), 500)
    return NotSensed("unreadable", f"git {command} failed: {stderr or 'no error message'}")


_MAX_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "Accept": "application/json, text/*;q=0.8, */*;q=0.1",
    "Accept-Encoding": "identity",
    "Connection": "close",
    "User-Agent": "podium-sense",
}


class HttpSource(AskedSource):
    """Gets an address over HTTP and gives status and body, as JSON where it is JSON.

    It is asked directly, whatever proxies the environment names, and redirects are followed on the same host alone.
    """

    def __init__(
        self, deps: SourceDeps, name: str, url: str, *, timeout_seconds: float = 10.0
    ) -> None:
        super().__init__(deps, name, without_login(url))
        self._url = url
        self._timeout_seconds = timeout_seconds

    async def _ask(self) -> tuple[Condition, str, Json]:
        address = _checked(self._url)
        for _ in range(_MAX_REDIRECTS + 1):
            status, target, body = await self._answer(address)
            if status not in _REDIRECTS:
                return "ok", "", {"status": status, "body": understand_output(body)}
            address = _redirected(address, target)
        raise NotSensed("unreadable", f"more than {_MAX_REDIRECTS} redirects")

    async def _answer(self, address: SplitResult) -> tuple[int, str, bytes]:
        exchange = _Exchange(address, self._timeout_seconds, self._deps.file_bytes)
        try:
            # An answer that comes drop by drop never meets the time limit of a single read.
            async with asyncio.timeout(self._timeout_seconds):
                return await asyncio.to_thread(exchange.run)
        except TimeoutError:
            limit = f"{self._timeout_seconds:g} seconds"
            raise NotSensed("unreadable", f"no answer within {limit}") from None
        except (OSError, ValueError) as error:
            raise NotSensed("unreadable", f"no answer: {error}") from None
        finally:
            exchange.end()


class _Exchange:
    """One question and its answer. Runs in a thread; `end` lets it return from wherever it waits."""

    def __init__(self, address: SplitResult, seconds: float, limit_bytes: int) -> None:
        self._address = address
        self._seconds = seconds
        self._limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._wire: socket.socket | None = None
        self._over = False

    def run(self) -> tuple[int, str, bytes]:
        """Status, where it redirects to, body."""
        from http.client import HTTPException

        connection = self._connected()
        try:
            path = self._address.path or "/"
            query = f"?{self._address.query}" if self._address.query else ""
            connection.request("GET", path + query, headers=_HEADERS)
            with connection.getresponse() as response:
                return response.status, response.getheader("Location", ""), self._body(response)
        except HTTPException as error:
            raise ValueError(f"not an HTTP response: {error!r}") from None
        finally:
            connection.close()
            self.end()

    def end(self) -> None:
        with self._lock:
            self._over = True
            if self._wire is not None:
                wire, self._wire = self._wire, None
                with suppress(OSError):  # the other side was quicker
                    wire.shutdown(socket.SHUT_RDWR)
                wire.close()

    def _connected(self) -> HTTPConnection:
        # A fifth of a second to import: only whoever asks over HTTP waits for it.
        from http.client import HTTPConnection

        host, port = str(self._address.hostname), self._port()
        wire = socket.create_connection((host, port), self._seconds)
        try:
            self._keep(wire)
            connection = HTTPConnection(host, port, timeout=self._seconds)
            connection.sock = self._secured(wire, host)
        except BaseException:
            wire.close()
            raise
        return connection

    def _port(self) -> int:
        return self._address.port or (443 if self._address.scheme == "https" else 80)

    def _keep(self, wire: socket.socket) -> None:
        """A second handle of the same connection: the first changes hands when it is encrypted."""
        with self._lock:
            if self._over:
                raise TimeoutError("too late")
            self._wire = wire.dup()

    def _secured(self, wire: socket.socket, host: str) -> socket.socket:
        if self._address.scheme != "https":
            return wire
        return ssl.create_default_context().wrap_socket(wire, server_hostname=host)

    def _body(self, response: HTTPResponse) -> bytes:
        if response.status in _REDIRECTS:
            return b""
        body = response.read(self._limit_bytes + 1)
        if len(body) > self._limit_bytes:
            raise NotSensed("too_large", f"the response is larger than {self._limit_bytes} bytes")
        if response.length:
            raise NotSensed("malformed", "the response is incomplete")
        return body


def _checked(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        port = address.port
    except ValueError as error:
        raise NotSensed("unreadable", f"not a valid URL: {error}") from None
    if address.scheme not in ("http", "https") or not address.hostname or port == 0:
        raise NotSensed("unreadable", "only http:// and https:// URLs are supported")
    if address.username is not None or address.password is not None:
        raise NotSensed("unreadable", "the URL contains credentials; use one without")
    return address


def _redirected(address: SplitResult, target: str) -> SplitResult:
    following = _checked(urljoin(address.geturl(), target))
    same = (following.hostname, following.port) == (address.hostname, address.port)
    if not same or (address.scheme == "https" and following.scheme == "http"):
        where = without_login(following.geturl())
        raise NotSensed("unreadable", f"the redirect to {where!r} is not followed")
    return following
