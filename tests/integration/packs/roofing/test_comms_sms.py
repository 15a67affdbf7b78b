"""Text messages over a gateway: taken, certainly not taken, or nobody knows."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from packs.roofing.comms import MaybeSent, Sms, send_sms

from podium.core.errors import ToolBroke
from podium.testing import retry_until
from podium.tools.packs import PackScope
from tests.integration.packs.roofing.sms_gateway import ACCOUNT, TOKEN, Gateway, sms_gateway
from tests.unit.packs.roofing.roofing_harness import pack_scope

SMS = Sms("+61400123456", "G'day Sarah — we're on our way 🏠 & 50% done+")


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with sms_gateway() as running:
        yield running


def sms_scope(tmp_path: Path, gateway: Gateway, **others: Any) -> PackScope:
    settings = {
        "ROOFING_SMS_URL": gateway.url,
        "ROOFING_SMS_ACCOUNT": ACCOUNT,
        "ROOFING_SMS_TOKEN": TOKEN,
        "ROOFING_SMS_FROM": "+61488000111",
        **others.pop("settings", {}),
    }
    return pack_scope(tmp_path, settings, tool="sms.send", **others)


async def test_a_message_is_taken_once_for_a_key(tmp_path: Path, gateway: Gateway) -> None:
    scope = sms_scope(tmp_path, gateway)
    first = await send_sms(SMS, scope)
    again = await send_sms(SMS, scope)
    assert first == again
    assert (first.sid, first.status, first.segments) == (f"SM{0:032}", "queued", 1)
    assert first.usd is None
    assert gateway.taken == {
        scope.key: {"To": SMS.to, "From": "+61488000111", "Body": SMS.text},
    }
    assert gateway.asked[0]["path"] == f"/2010-04-01/Accounts/{ACCOUNT}/Messages.json"


@pytest.mark.parametrize(
    ("fate", "usd"),
    [
        ({"price": "-0.0515"}, 0.0515),
        ({"price": "-0.0515", "price_unit": "AUD"}, None),
        ({"price": "free"}, None),
        ({"price": "nan"}, None),
        ({"price": "1e99"}, None),
    ],
)
async def test_the_price_is_what_the_gateway_says(
    tmp_path: Path, gateway: Gateway, fate: dict[str, str], usd: float | None
) -> None:
    gateway.fate = fate
    assert (await send_sms(SMS, sms_scope(tmp_path, gateway))).usd == usd


async def test_a_pool_of_senders_is_named_as_one(tmp_path: Path, gateway: Gateway) -> None:
    pool = "MG" + "0" * 32
    await send_sms(SMS, sms_scope(tmp_path, gateway, settings={"ROOFING_SMS_FROM": pool}))
    assert gateway.asked[0]["MessagingServiceSid"] == pool
    assert "From" not in gateway.asked[0]


async def test_gateway_refusal_is_reported_in_its_words(tmp_path: Path, gateway: Gateway) -> None:
    with pytest.raises(
        ToolBroke, match=r"not sent: the gateway rejected it \(21211\): The 'To' num"
    ):
        await send_sms(Sms("+61400000000", "hi"), sms_scope(tmp_path, gateway))
    wrong = {"ROOFING_SMS_TOKEN": "wrong-but-secret"}
    with pytest.raises(ToolBroke, match="does not accept the login") as caught:
        await send_sms(SMS, sms_scope(tmp_path, gateway, settings=wrong))
    assert "wrong-but-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "fate", "words"),
    [
        ((429, b'{"code": 20429, "message": "Too Many"}'), {}, "limits the rate"),
        ((404, b"<html>"), {}, "rejected it: HTTP 404"),
        ((400, b"[1, 2]"), {}, "rejected it: HTTP 400"),
        (None, {"status": "failed", "error_message": "Landline"}, r"says failed \(Landline\)"),
        (None, {"status": "undelivered", "error_code": 30005}, r"says undelivered \(30005\)"),
    ],
)
async def test_what_certainly_was_not_sent_is_reported_as_such(
    tmp_path: Path,
    gateway: Gateway,
    answer: tuple[int, bytes] | None,
    fate: dict[str, Any],
    words: str,
) -> None:
    gateway.answer, gateway.fate = answer, fate
    with pytest.raises(ToolBroke, match=words) as caught:
        await send_sms(SMS, sms_scope(tmp_path, gateway))
    assert not isinstance(caught.value, MaybeSent)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((500, b"oops"), "HTTP 500"),
        ((503, b"{}"), "HTTP 503"),
        ((302, b""), "HTTP 302"),
        ((201, b"<html>"), "cannot be read"),
        ((201, b'{"sid": 7, "status": "queued"}'), "cannot be read"),
        ((201, b"[" * 100_000), "cannot be read"),
        ((201, b" " * 1_000_001), "larger than"),
    ],
)
async def test_an_answer_that_says_nothing_leaves_doubt(
    tmp_path: Path, gateway: Gateway, answer: tuple[int, bytes], words: str
) -> None:
    gateway.answer = answer
    with pytest.raises(MaybeSent, match=words):
        await send_sms(SMS, sms_scope(tmp_path, gateway))


async def test_a_connection_lost_after_the_request_leaves_doubt(
    tmp_path: Path, gateway: Gateway
) -> None:
    gateway.hang_up = True
    with pytest.raises(MaybeSent, match=r"look for a message to \+61400123456"):
        await send_sms(SMS, sms_scope(tmp_path, gateway))


async def test_a_refused_connection_is_certain(tmp_path: Path) -> None:
    with sms_gateway() as gone:
        pass
    with pytest.raises(ToolBroke, match=r"was not sent: 127\.0\.0\.1:.*refused") as caught:
        await send_sms(SMS, sms_scope(tmp_path, gone))
    assert not isinstance(caught.value, MaybeSent)


async def test_a_silent_gateway_is_not_waited_for_beyond_the_calls_time(
    tmp_path: Path, gateway: Gateway
) -> None:
    gateway.silent = True
    with pytest.raises(MaybeSent, match="took too long"):
        await send_sms(SMS, sms_scope(tmp_path, gateway, timeout_seconds=1.2))


async def test_a_cancelled_call_ends_its_conversation(tmp_path: Path, gateway: Gateway) -> None:
    gateway.silent = True
    scope = sms_scope(tmp_path, gateway, timeout_seconds=600)
    sending = asyncio.create_task(send_sms(SMS, scope))
    await retry_until(lambda: bool(gateway.asked))
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await retry_until(lambda: gateway.was_left)


@pytest.mark.parametrize(
    ("sms", "settings", "words"),
    [
        (Sms("0400123456", "hi"), {}, r"not a phone number such as \+61400123456"),
        (Sms("+61400123456&Body=x", "hi"), {}, "not a phone number"),
        (Sms("+61400123456", "  \n"), {}, "is empty"),
        (Sms("+61400123456", "x" * 1601), {}, "has 1601 characters, the limit is 1600"),
        (Sms("+61400123456", "a\0b"), {}, "cannot be sent"),
        (Sms("+61400123456", "\ud83d"), {}, "cannot be sent"),
        (SMS, {"ROOFING_SMS_TOKEN": ""}, "set ROOFING_SMS_TOKEN"),
        (SMS, {"ROOFING_SMS_ACCOUNT": "../../x"}, "ROOFING_SMS_ACCOUNT must be"),
        (SMS, {"ROOFING_SMS_FROM": "Clayton Roofing Co"}, "ROOFING_SMS_FROM must be"),
        (SMS, {"ROOFING_SMS_URL": "http://sms.example"}, "must begin with https://"),
        (SMS, {"ROOFING_SMS_URL": "file:///etc"}, "ROOFING_SMS_URL is not a URL"),
    ],
)
async def test_what_cannot_be_sent_never_leaves(
    tmp_path: Path, gateway: Gateway, sms: Sms, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(ToolBroke, match=words):
        await send_sms(sms, sms_scope(tmp_path, gateway, settings=settings))
    assert gateway.asked == []


LOGIN = base64.b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    "form",
    [
        TOKEN,
        f"Basic {LOGIN}",
        LOGIN.rstrip("="),
        quote(LOGIN, safe=""),
        base64.urlsafe_b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode(),
        base64.b64encode(TOKEN.encode()).decode(),
        quote(f"{ACCOUNT}:{TOKEN}"),
    ],
)
@pytest.mark.parametrize("before", ["bad login ", "x" * 290])
async def test_a_login_that_the_gateway_quotes_is_not_passed_on(
    tmp_path: Path, gateway: Gateway, form: str, before: str
) -> None:
    for status, text in (
        (400, {"message": f"{before}{form}", "code": form}),
        (201, {"sid": "SM1", "status": "failed", "error_message": f"{before}{form}"}),
    ):
        gateway.answer = (status, json.dumps(text).encode())
        with pytest.raises(ToolBroke) as caught:
            await send_sms(SMS, sms_scope(tmp_path, gateway))
        output_text = str(caught.value)
        assert form not in output_text
        assert LOGIN[:8] not in output_text
        assert TOKEN[:8] not in output_text


async def test_what_a_gateway_nests_in_its_answer_is_left_out(
    tmp_path: Path, gateway: Gateway
) -> None:
    gateway.answer = (400, json.dumps({"message": {"why": [TOKEN]}, "code": 7}).encode())
    with pytest.raises(ToolBroke, match=r"rejected it \(7\): HTTP 400"):
        await send_sms(SMS, sms_scope(tmp_path, gateway))
