"""E-mail over SMTP: one message to one person, and a word on whether it was taken."""

from __future__ import annotations

import hashlib
import re
import smtplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.errors import MessageError
from email.header import Header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as FOR_SMTP
from email.utils import format_datetime
from typing import TYPE_CHECKING

from podium.core.errors import ToolBroke

from ..exchange import Line, NotReached, converse, reason_of
from .hiding import hiding
from .mail_settings import MailSettings, mail_settings
from .maybe import MaybeSent

if TYPE_CHECKING:
    from podium.tools.packs import PackScope

MAX_BYTES = 15_000_000
"""Of text and files together: about 20 MB when encoded, which most servers take."""

_PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9.-]{1,253}")


@dataclass(frozen=True)
class Attachment:
    """A file that goes along."""

    file_name: str
    content: bytes
    media_type: str = "application/octet-stream"


@dataclass(frozen=True)
class Mail:
    """Mail to send. The sender and the server are settings."""

    to: str
    subject: str
    body: str
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True)
class SentMail:
    """The server has taken the message."""

    message_id: str
    server_output: str


async def send_mail(mail: Mail, scope: PackScope) -> SentMail:
    """Hand the message to the server. On return the server has said that it took it.

    Raises `MaybeSent` when its answer to the whole message did not come, `ToolBroke` when the message
    certainly was not taken. The Message-ID is made from the call's key, so that a copy is known as one.
    """
    settings = mail_settings(scope.settings)
    if len(mail.body) + sum(len(attachment.content) for attachment in mail.attachments) > MAX_BYTES:
        raise ToolBroke(f"the message is larger than {MAX_BYTES // 1_000_000} MB; send less")
    content = _composed(mail, settings, scope).as_bytes()
    post = _Post(settings, mail.to, content, message_id_of(scope.key, settings.domain))
    # Ends before the call does, so that what is said of it is known and not guessed.
    return await converse(post.send, max(1.0, scope.timeout_seconds * 0.8))


def message_id_of(key: str, domain: str) -> str:
    """The Message-ID of the message that the call with this key sends."""
    return f"<{hashlib.sha256(key.encode()).hexdigest()[:32]}@{domain}>"


def _composed(mail: Mail, settings: MailSettings, scope: PackScope) -> EmailMessage:
    _no_control_characters("recipient", mail.to)
    _no_control_characters("subject", mail.subject)
    if not _PLAIN_ADDRESS.fullmatch(mail.to):
        raise ToolBroke(f"{mail.to!r:.80} is not a valid e-mail address; correct it")
    message = EmailMessage(policy=FOR_SMTP)
    try:
        message["From"] = Address(settings.sender_name, addr_spec=settings.sender)
        message["To"] = Address(addr_spec=mail.to)
        _entitle(message, mail.subject)
        message["Date"] = format_datetime(scope.now)
        message["Message-ID"] = message_id_of(scope.key, settings.domain)
        message.set_content(mail.body)
        for attachment in mail.attachments:
            _no_control_characters("attachment's name", attachment.file_name)
            kind, _, subtype = attachment.media_type.partition("/")
            message.add_attachment(
                attachment.content,
                maintype=kind,
                subtype=subtype or "octet-stream",
                filename=attachment.file_name,
            )
    except (ValueError, MessageError) as error:
        raise ToolBroke(f"the message cannot be composed: {error}; correct it") from None
    return message


def _entitle(message: EmailMessage, subject: str) -> None:
    if subject.isascii():
        message["Subject"] = subject
        return
    # Python's newer header classes lose a space where they break a long encoded line.
    encoded = Header(subject, "utf-8", header_name="Subject").encode(linesep="\r\n")
    message.set_raw("Subject", encoded)


def _no_control_characters(what: str, text: str) -> None:
    """A line break in a header would let its writer add headers, and recipients, of their own."""
    if any(ord(character) < 32 or ord(character) == 127 for character in text):
        raise ToolBroke(f"the {what} contains a line break or control character; remove it")


@dataclass(frozen=True)
class _Post:
    """One conversation with a mail server."""

    settings: MailSettings
    to: str
    content: bytes
    message_id: str

    def send(self, line: Line) -> SentMail:
        with self._before_the_message(line):
            server = self._connected(line)
        try:
            with self._before_the_message(line):
                self._introduced(server)
                line.check()
                self._expect(server.docmd("DATA"), 354, "the message")
            output = self._handed_over(server, line)
            with suppress(smtplib.SMTPException, OSError):
                server.quit()
            return SentMail(self.message_id, output)
        finally:
            server.close()

    @contextmanager
    def _before_the_message(self, line: Line) -> Iterator[None]:
        """Until the message itself is on its way nothing can have been sent."""
        try:
            yield
        except smtplib.SMTPAuthenticationError as error:
            raise self._not_sent(
                f"it does not accept the login ({self._words(error.smtp_error)}); check "
                "ROOFING_SMTP_USER and ROOFING_SMTP_PASSWORD"
            ) from None
        except smtplib.SMTPResponseException as error:
            text = f"{error.smtp_code} {self._words(error.smtp_error)}"
            raise self._not_sent(f"it said {text}") from None
        except NotReached as error:
            raise self._not_sent(str(error)) from None
        except (smtplib.SMTPException, OSError) as error:
            why = "it took too long" if line.is_cut else reason_of(error)
            raise self._not_sent(f"{why}; check ROOFING_SMTP_HOST and the server") from None

    def _connected(self, line: Line) -> smtplib.SMTP:
        """Raises `SMTPConnectError` when the server greets with a no."""
        settings = self.settings
        name = settings.domain
        if settings.tls == "ssl":
            trusted = ssl.create_default_context()
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                settings.host, settings.port, name, timeout=line.seconds, context=trusted
            )
        else:
            server = smtplib.SMTP(settings.host, settings.port, name, timeout=line.seconds)
        try:
            line.hold(server.sock)
        except NotReached:
            server.close()
            raise
        return server

    def _introduced(self, server: smtplib.SMTP) -> None:
        """Greet, encrypt, log in, name sender and recipient."""
        server.ehlo_or_helo_if_needed()
        if self.settings.tls == "starttls":
            self._encrypted(server)
        if self.settings.user:
            server.login(self.settings.user, self.settings.password)
        self._expect(server.mail(self.settings.sender), 250, "the sender")
        code, output = server.rcpt(self.to)
        if code not in (250, 251):
            raise self._not_sent(f"it rejected {self.to!r}: {code} {self._words(output)}")

    def _encrypted(self, server: smtplib.SMTP) -> None:
        if not server.has_extn("starttls"):
            raise self._not_sent(
                "it offers no encryption; set ROOFING_SMTP_TLS to ssl, or to none for a server on "
                "this machine"
            )
        server.starttls(context=ssl.create_default_context())
        server.ehlo_or_helo_if_needed()

    def _handed_over(self, server: smtplib.SMTP, line: Line) -> str:
        """From here to the server's answer, nobody can know whether the message is out."""
        body = re.sub(rb"(?m)^\.", b"..", self.content)
        try:
            server.send(body + (b"" if body.endswith(b"\r\n") else b"\r\n") + b".\r\n")
            code, output = server.getreply()
        except (smtplib.SMTPException, OSError) as error:
            why = "it took too long" if line.is_cut else reason_of(error)
            raise MaybeSent(
                "the message", f"{self.settings.host} did not answer: {why}", self.message_id
            ) from None
        if not 200 <= code < 300:
            raise self._not_sent(f"it rejected the message: {code} {self._words(output)}")
        return f"{code} {self._words(output)}"

    def _expect(self, reply: tuple[int, bytes], wanted: int, what: str) -> None:
        code, output = reply
        if code != wanted:
            raise self._not_sent(f"it rejected {what}: {code} {self._words(output)}")

    def _not_sent(self, reason: str) -> ToolBroke:
        place = f"{self.settings.host}:{self.settings.port}"
        return ToolBroke(f"the e-mail was not sent by {place}: {reason}")

    def _words(self, data: bytes | str) -> str:
        """A server may quote the login that it was given."""
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        hide = hiding(self.settings.password, self.settings.user)
        return hide(" ".join(text.split()))[:300]
