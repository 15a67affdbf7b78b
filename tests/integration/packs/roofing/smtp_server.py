"""A small SMTP server on loopback that really speaks the protocol, and can be told to misbehave."""

from __future__ import annotations

import asyncio
import base64
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Received:
    """A message that the server said yes to."""

    sender: str
    recipients: list[str]
    content: bytes
    encrypted: bool
    user: str


@dataclass
class SmtpServer:
    """Behaviour of the server, and the mails it was given."""

    port: int = 0
    certificate: tuple[Path, Path] | None = None
    """With one it offers STARTTLS, or speaks TLS from the start when `tls_at_once`."""
    tls_at_once: bool = False
    starttls_reply: str = "220 go ahead"
    login: tuple[str, str] | None = None
    greeting: str = "220 mail.example.com ready"
    refused: dict[str, str] = field(default_factory=dict)
    """Recipient → the reply to it."""
    sender_reply: str = "250 sender ok"
    data_reply: str = "354 end with a dot"
    final_reply: str = "250-taken\r\n250 queued as 1234"
    """Of several lines, as real servers send them."""
    hang_up_after: str = ""
    """`connect`, `rcpt`, `data` (in the middle of the message) or `message` (instead of an answer)."""
    silent_after_message: bool = False
    is_silent: bool = False
    """Whether it owes the answer to a whole message."""
    was_left: bool = False
    """Whether the client hung up on its silence."""
    received: list[Received] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


@asynccontextmanager
async def serving(server: SmtpServer) -> AsyncIterator[SmtpServer]:
    talks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        try:
            await _Talk(server, reader, writer).hold()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            talks.discard(task)
            writer.close()
            with suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    context = _context(server) if server.tls_at_once else None
    listening = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()
        for task in [*talks]:
            task.cancel()
        await asyncio.gather(*talks, return_exceptions=True)


class _Talk:
    """One client's conversation."""

    def __init__(
        self, server: SmtpServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._sender = ""
        self._recipients: list[str] = []
        self._user = ""
        self._encrypted = server.tls_at_once

    async def hold(self) -> None:
        if self._server.hang_up_after == "connect":
            return
        await self._say(self._server.greeting)
        while line := await self._reader.readline():
            output = line.decode("ascii", "replace").strip()
            verb = output.partition(" ")[0].upper()
            self._server.commands.append(verb)
            if not await self._answered(verb, output):
                return

    async def _answered(self, verb: str, text: str) -> bool:
        """False: hang up."""
        server = self._server
        match verb:
            case "EHLO":
                await self._say(self._extensions())
            case "STARTTLS":
                await self._say(server.starttls_reply)
                if server.starttls_reply.startswith("220"):
                    await self._writer.start_tls(_context(server))
                    self._encrypted = True
            case "AUTH":
                await self._say(await self._logged_in(text))
            case "MAIL":
                self._sender = text.partition("<")[2].partition(">")[0]
                await self._say(server.sender_reply)
            case "RCPT":
                if server.hang_up_after == "rcpt":
                    return False
                to = text.partition("<")[2].partition(">")[0]
                self._recipients.append(to)
                await self._say(server.refused.get(to, "250 recipient ok"))
            case "DATA":
                return await self._took_the_message()
            case "RSET" | "NOOP":
                await self._say("250 ok")
            case "QUIT":
                await self._say("221 bye")
                return False
            case _:
                await self._say("502 no such command")
        return True

    def _extensions(self) -> str:
        lines = ["mail.example.com", "SIZE 30000000"]
        if self._server.certificate and not self._encrypted:
            lines.append("STARTTLS")
        if self._server.login:
            lines.append("AUTH PLAIN")
        return "\r\n".join([*(f"250-{line}" for line in lines), "250 8BITMIME"])

    async def _logged_in(self, text: str) -> str:
        given = text.split(" ")[2] if text.count(" ") > 1 else ""
        _, user, password = base64.b64decode(given).decode().split("\0")
        if (user, password) != self._server.login:
            return "535 5.7.8 bad credentials"
        self._user = user
        return "235 welcome"

    async def _took_the_message(self) -> bool:
        server = self._server
        await self._say(server.data_reply)
        if not server.data_reply.startswith("354"):
            return True
        if server.hang_up_after == "data":
            await self._reader.readline()
            return False
        lines: list[bytes] = []
        while (line := await self._reader.readline()) != b".\r\n":
            if not line:
                return False
            lines.append(line[1:] if line.startswith(b".") else line)
        if server.hang_up_after == "message":
            return False
        if server.silent_after_message:
            server.is_silent = True
            with suppress(ConnectionError):
                await self._reader.read()
            server.was_left = True
            return False
        if server.final_reply.startswith("250"):
            content = b"".join(lines)
            server.received.append(
                Received(self._sender, self._recipients, content, self._encrypted, self._user)
            )
        await self._say(server.final_reply)
        return True

    async def _say(self, reply: str) -> None:
        self._writer.write(f"{reply}\r\n".encode())
        await self._writer.drain()


def _context(server: SmtpServer) -> ssl.SSLContext:
    assert server.certificate is not None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*server.certificate)
    return context


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key; skips the test where there is no openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed, so there is no certificate to serve with")
    certificate, key = folder / "mail.pem", folder / "mail.key"
    words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    subject = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-out", str(certificate), "-keyout", str(key)]
    subprocess.run(["openssl", *words.split(), *subject, *files], check=True, capture_output=True)
    return certificate, key
