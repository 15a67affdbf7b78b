"""apprise against real servers: what a person gets, and what a service does wrong."""

from __future__ import annotations

import email
from email.message import Message

import pytest

from podium.notices import AppriseChannel
from podium.ports import Notice, NoticeItem
from podium.testing import retry_until
from tests.integration.packs.roofing.smtp_server import SmtpServer, serving
from tests.unit.notices.notices_harness import listening

HOSTILE = (
    "<b>hi</b> & [pay here](https://evil.example/x) <!channel> @everyone <https://evil.example|ok>"
)
NOTICE = Notice(
    title="Podium: 1 waiting <script>",
    parts=(NoticeItem(text=HOSTILE, link="https://podium.example.org/l/abc-_x"),),
)


def outlet(url: str, **more: float) -> AppriseChannel:
    return AppriseChannel("CHAT", url, redact=lambda text: text.replace("a-token", "…"), **more)


async def test_service_is_notified_by_http_and_only_podiums_own_link_can_be_opened() -> None:
    with listening() as service:
        response = await outlet(service.url).send(NOTICE)
    assert response.done, response.why
    (body,) = service.bodies
    assert body["title"] == "Podium: 1 waiting ‹script›"
    assert body["message"].splitlines() == [
        "‹b›hi‹/b› & [pay here] (https:// evil.example/x) ‹!channel› @ everyone "
        "‹https:// evil.example|ok›",
        "https://podium.example.org/l/abc-_x",
    ]


async def test_mailbox_is_notified_through_a_real_mail_server() -> None:
    async with serving(SmtpServer()) as server:
        url = f"mailto://127.0.0.1:{server.port}?from=podium@example.org&to=ann@example.org"
        response = await outlet(url).send(NOTICE)
    assert response.done, response.why
    (mail,) = server.received
    assert mail.recipients == ["ann@example.org"]
    read = email.message_from_bytes(mail.content)
    assert str(email.header.make_header(email.header.decode_header(read["Subject"]))) == (
        "Podium: 1 waiting ‹script›"
    )
    for text in texts_of(read):
        assert "podium.example.org/l/abc-_x" in text
        assert "<b>" not in text
        assert "evil.example/x)" in text
        assert "https://evil" not in text


def texts_of(mail: Message) -> list[str]:
    found = [part.get_payload(decode=True) for part in mail.walk() if not part.is_multipart()]
    texts = [item.decode() for item in found if isinstance(item, bytes)]
    assert texts
    return texts


async def test_what_is_too_long_for_a_service_comes_in_several_messages_with_every_link_whole() -> (
    None
):
    part = NoticeItem(text="word " * 200, link="https://podium.example.org/l/" + "A" * 210)
    with listening() as service:
        url = f"mmost://127.0.0.1:{service.port}/atokenofeightormore"
        response = await outlet(url).send(Notice(title="Podium: 10 ended", parts=(part,) * 10))
    assert response.done, response.why
    texts = [body["text"] for body in service.bodies]
    assert len(texts) == 3
    assert max(map(len, texts)) <= 4000
    assert sum(text.count(part.link) for text in texts) == 10


@pytest.mark.sample(1)
@pytest.mark.parametrize(("status", "in_doubt"), [(401, False), (404, False), (503, True)])
async def test_refused_notice_was_not_sent_and_a_broken_service_leaves_a_doubt(
    status: int, in_doubt: bool
) -> None:
    with listening() as service:
        service.statuses = [status]
        response = await outlet(service.url).send(NOTICE)
    assert not response.done
    assert response.in_doubt is in_doubt
    assert str(status) in response.why
    assert "a-token" not in response.why


async def test_a_service_that_is_not_there_is_a_doubt_that_says_so() -> None:
    with listening() as service:
        url = service.url
    response = await AppriseChannel(
        "CHAT", url, redact=lambda text: text.replace("127.0.0.1", "[redacted]")
    ).send(NOTICE)
    assert (response.done, response.in_doubt) == (False, True)
    assert "onnection" in response.why
    assert "[redacted]" in response.why
    assert "127.0.0.1" not in response.why


async def test_a_service_that_never_answers_is_left_and_is_not_asked_twice_at_once() -> None:
    with listening() as service:
        service.held.clear()
        slow = outlet(f"{service.url}?rto=60", seconds=0.2)
        response = await slow.send(NOTICE)
        assert (response.done, response.in_doubt, response.why) == (
            False,
            True,
            "no answer within 0.2 seconds",
        )
        again = await slow.send(NOTICE)
        assert again.why == "the previous message is still being sent"
        service.held.set()
        await retry_until(lambda: service.bodies)
    assert service.tries == 1


@pytest.mark.parametrize("url", ["", "nonsense", "nothing://x", "json://", "\x00", "a" * 100_000])
async def test_a_value_that_is_no_service_is_named_and_not_shown(url: str) -> None:
    response = await outlet(url).send(NOTICE)
    assert (response.done, response.in_doubt) == (False, False)
    assert (
        response.why
        == "its value is not a URL that apprise supports; see the documentation of apprise"
    )
