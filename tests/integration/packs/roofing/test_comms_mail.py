"""Mail over a real SMTP conversation: taken, certainly not taken, or nobody knows."""

from __future__ import annotations

import asyncio
import base64
import email
import email.policy
import smtplib
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from packs.roofing.comms import Attachment, Mail, MaybeSent, send_mail
from packs.roofing.exchange import reason_of

from podium.core.errors import ToolBroke
from podium.testing import retry_until
from podium.tools.packs import PackScope
from tests.integration.packs.roofing.smtp_server import SmtpServer, make_certificate, serving
from tests.unit.packs.roofing.roofing_harness import pack_scope

MAIL = Mail("sarah@example.com", "Your quote", "Hello Sarah,\n\nhere it is.\n.\nBye\n")


def mail_scope(tmp_path: Path, server: SmtpServer, **others: Any) -> PackScope:
    tls = others.pop("tls", "none")
    settings = {
        "ROOFING_SMTP_HOST": "127.0.0.1",
        "ROOFING_SMTP_PORT": str(server.port),
        "ROOFING_SMTP_FROM": "Clayton Roofing <office@roofing.example>",
        "ROOFING_SMTP_TLS": tls,
        **others.pop("settings", {}),
    }
    return pack_scope(tmp_path, settings, tool="email.send", **others)


def read(content: bytes) -> EmailMessage:
    message = email.message_from_bytes(content, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def text_of(message: EmailMessage) -> str:
    body = message.get_body()
    assert isinstance(body, EmailMessage)
    return str(body.get_content()).replace("\r\n", "\n")


async def test_a_message_arrives_whole_with_an_id_made_from_the_key(tmp_path: Path) -> None:
    async with serving(SmtpServer()) as server:
        scope = mail_scope(tmp_path, server)
        first = await send_mail(MAIL, scope)
        again = await send_mail(MAIL, scope)
        other = await send_mail(MAIL, mail_scope(tmp_path, server, key="run_1:call:2"))
    taken = server.received[0]
    message = read(taken.content)
    assert (taken.sender, taken.recipients) == ("office@roofing.example", ["sarah@example.com"])
    assert message["From"] == "Clayton Roofing <office@roofing.example>"
    assert message["To"] == "sarah@example.com"
    assert message["Subject"] == "Your quote"
    assert message["Date"] == "Mon, 16 Nov 2026 09:30:00 +0000"
    assert message["Message-ID"] == first.message_id
    assert text_of(message) == MAIL.body
    assert first.server_output == "250 taken queued as 1234"
    assert again.message_id == first.message_id != other.message_id


async def test_unicode_long_lines_and_files_of_any_kind_go_through(tmp_path: Path) -> None:
    photo = Attachment("roof café.jpg", bytes(range(256)) * 50, "image/jpeg")
    body = "Zoë — 🏠\n" + "long " * 2000 + "\n.hidden\n..twice\n"
    mail = Mail("sarah@example.com", "Dächer für Zoë " * 10, body, (photo,))
    async with serving(SmtpServer()) as server:
        await send_mail(mail, mail_scope(tmp_path, server))
    message = read(server.received[0].content)
    assert message["Subject"].strip() == mail.subject.strip()
    assert text_of(message) == body
    (attached,) = message.iter_attachments()
    assert attached.get_filename() == photo.file_name
    assert attached.get_payload(decode=True) == photo.content
    assert all(len(line) <= 998 for line in server.received[0].content.split(b"\r\n"))


async def test_a_login_travels_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = make_certificate(tmp_path)
    # What the machine trusts is told by the environment; only this way is the real check made.
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    login = {"ROOFING_SMTP_USER": "office", "ROOFING_SMTP_PASSWORD": "hush"}
    for tls in ("starttls", "ssl"):
        server = SmtpServer(
            certificate=certificate, tls_at_once=tls == "ssl", login=("office", "hush")
        )
        async with serving(server):
            await send_mail(MAIL, mail_scope(tmp_path, server, tls=tls, settings=login))
        assert (server.received[0].encrypted, server.received[0].user) == (True, "office")


async def test_a_server_whose_certificate_is_not_trusted_gets_nothing(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    for tls in ("starttls", "ssl"):
        server = SmtpServer(certificate=certificate, tls_at_once=tls == "ssl")
        async with serving(server):
            with pytest.raises(ToolBroke, match="certificate is not trusted"):
                await send_mail(MAIL, mail_scope(tmp_path, server, tls=tls))
        assert "MAIL" not in server.commands


@pytest.mark.parametrize(
    ("server", "words"),
    [
        (SmtpServer(greeting="554 go away"), "554 go away"),
        (SmtpServer(greeting="421-busy\r\n421 later"), "421 busy later"),
        (SmtpServer(hang_up_after="connect"), "was not sent by 127.0.0.1"),
        (SmtpServer(sender_reply="451 greylisted"), "rejected the sender: 451 greylisted"),
        (
            SmtpServer(refused={"sarah@example.com": "550-no such\r\n550 person"}),
            "rejected 'sarah@example.com': 550 no such person",
        ),
        (SmtpServer(refused={"sarah@example.com": "452 full"}), "452 full"),
        (SmtpServer(hang_up_after="rcpt"), "was not sent by 127.0.0.1"),
        (SmtpServer(data_reply="554 no valid recipients"), "rejected the message: 554 no valid"),
        (SmtpServer(final_reply="552 too large"), "rejected the message: 552 too large"),
        (SmtpServer(final_reply="451-try\r\n451 again"), "rejected the message: 451 try again"),
        (SmtpServer(login=("office", "other")), "does not accept the login"),
    ],
)
async def test_what_certainly_was_not_sent_is_reported_as_such(
    tmp_path: Path, server: SmtpServer, words: str
) -> None:
    login = {"ROOFING_SMTP_USER": "office", "ROOFING_SMTP_PASSWORD": "hush"} if server.login else {}
    async with serving(server):
        with pytest.raises(ToolBroke, match=words) as caught:
            await send_mail(MAIL, mail_scope(tmp_path, server, settings=login))
    assert not isinstance(caught.value, MaybeSent)
    assert "hush" not in str(caught.value)
    assert server.received == []


async def test_a_login_that_the_server_quotes_is_not_passed_on(tmp_path: Path) -> None:
    login = {"ROOFING_SMTP_USER": "office", "ROOFING_SMTP_PASSWORD": "hush-hush-9"}
    quoted = base64.b64encode(b"\0office\0hush-hush-9").decode()
    server = SmtpServer(
        login=("office", "hush-hush-9"), sender_reply=f"550 {'x' * 280} you said {quoted}"
    )
    async with serving(server):
        with pytest.raises(ToolBroke, match="rejected the sender") as caught:
            await send_mail(MAIL, mail_scope(tmp_path, server, settings=login))
    assert quoted[:8] not in str(caught.value)


async def test_server_without_encryption_is_not_sent_the_password(tmp_path: Path) -> None:
    refusing = SmtpServer(certificate=(Path("unused"), Path("unused")), starttls_reply="454 no TLS")
    for server in (SmtpServer(), refusing):
        async with serving(server):
            with pytest.raises(ToolBroke, match=r"offers no encryption|454 no TLS"):
                await send_mail(MAIL, mail_scope(tmp_path, server, tls="starttls"))
        assert not {"AUTH", "MAIL"} & set(server.commands)


async def test_a_refused_connection_is_certain(tmp_path: Path) -> None:
    async with serving(SmtpServer()) as server:
        pass
    with pytest.raises(ToolBroke, match=r"refused; check ROOFING_SMTP_HOST") as caught:
        await send_mail(MAIL, mail_scope(tmp_path, server))
    assert not isinstance(caught.value, MaybeSent)


@pytest.mark.parametrize(
    "server", [SmtpServer(hang_up_after="message"), SmtpServer(hang_up_after="data")]
)
async def test_a_connection_lost_around_the_message_leaves_doubt(
    tmp_path: Path, server: SmtpServer
) -> None:
    async with serving(server):
        with pytest.raises(MaybeSent, match="may have been sent") as caught:
            await send_mail(MAIL, mail_scope(tmp_path, server))
    assert caught.value.reference in str(caught.value)
    assert caught.value.reference.endswith("@roofing.example>")


async def test_a_server_that_falls_silent_is_not_waited_for_beyond_the_calls_time(
    tmp_path: Path,
) -> None:
    async with serving(SmtpServer(silent_after_message=True)) as server:
        with pytest.raises(MaybeSent, match="took too long"):
            await send_mail(MAIL, mail_scope(tmp_path, server, timeout_seconds=1.2))


def test_silence_is_reported_alike_whoever_notices_it_first() -> None:
    # The socket's own time-out and the cut of the line come at the same moment.
    smtplib_reports = smtplib.SMTPServerDisconnected("Connection unexpectedly closed: timed out")
    smtplib_reports.__context__ = TimeoutError("timed out")
    assert reason_of(smtplib_reports) == reason_of(TimeoutError()) == "it took too long"


async def test_a_cancelled_call_ends_its_conversation(tmp_path: Path) -> None:
    async with serving(SmtpServer(silent_after_message=True)) as server:
        scope = mail_scope(tmp_path, server, timeout_seconds=600)
        sending = asyncio.create_task(send_mail(MAIL, scope))
        await retry_until(lambda: server.is_silent)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        await retry_until(lambda: server.was_left)


@pytest.mark.parametrize(
    ("mail", "words"),
    [
        (
            Mail("a@example.com\r\nBcc: all@example.com", "s", "b"),
            "recipient contains a line break",
        ),
        (Mail("a@example.com", "Hi\nBcc: all@example.com", "b"), "subject contains a line break"),
        (Mail("a@example.com, b@example.com", "s", "b"), "not a valid e-mail address"),
        (Mail("a@example.com> RCPT TO:<b@example.com", "s", "b"), "not a valid e-mail address"),
        (Mail("nobody", "s", "b"), "not a valid e-mail address"),
        (Mail("zoë@example.com", "s", "b"), "not a valid e-mail address"),
        (Mail("a@example.com", "s", "half \ud800"), "cannot be composed"),
        (
            Mail("a@example.com", "s", "b", (Attachment("a\nb", b"x"),)),
            "attachment's name contains",
        ),
        (
            Mail("a@example.com", "s", "b", (Attachment("a", bytes(15_000_001)),)),
            "larger than 15 MB",
        ),
    ],
)
async def test_what_could_smuggle_or_cannot_be_written_never_leaves(
    tmp_path: Path, mail: Mail, words: str
) -> None:
    async with serving(SmtpServer()) as server:
        with pytest.raises(ToolBroke, match=words):
            await send_mail(mail, mail_scope(tmp_path, server))
    assert server.commands == []


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ROOFING_SMTP_HOST": ""}, "set ROOFING_SMTP_HOST"),
        ({"ROOFING_SMTP_FROM": ""}, "set ROOFING_SMTP_FROM"),
        ({"ROOFING_SMTP_FROM": "office"}, "ROOFING_SMTP_FROM must be an e-mail address"),
        ({"ROOFING_SMTP_FROM": "a@b.co\nBcc: c@d.co"}, "ROOFING_SMTP_FROM must be|line break"),
        ({"ROOFING_SMTP_PORT": "99999"}, "ROOFING_SMTP_PORT must be"),
        ({"ROOFING_SMTP_TLS": "maybe"}, "ROOFING_SMTP_TLS must be"),
        ({"ROOFING_SMTP_HOST": "mail.example", "ROOFING_SMTP_USER": "u"}, "travel unencrypted"),
        ({"ROOFING_SMTP_USER": "u", "ROOFING_SMTP_PASSWORD": "hüsh"}, "ASCII letters"),
    ],
)
async def test_settings_of_the_mail_server_are_checked_first(
    tmp_path: Path, settings: dict[str, str], words: str
) -> None:
    async with serving(SmtpServer()) as server:
        with pytest.raises(ToolBroke, match=words):
            await send_mail(MAIL, mail_scope(tmp_path, server, settings=settings))
    assert server.commands == []
