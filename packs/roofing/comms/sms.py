"""Text messages over a gateway that speaks Twilio's HTTP interface."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from podium.core.errors import ToolBroke

from ..exchange import Answer, AnswerLost, Line, NotReached, Request, converse, exchange, safe_url
from .hiding import Hide, hiding
from .maybe import MaybeSent

if TYPE_CHECKING:
    from podium.tools.packs import PackScope

DEFAULT_URL = "https://api.twilio.com"
MAX_CHARACTERS = 1600
"""Twilio's limit for one message."""

_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SENDER = re.compile(r"\+[1-9][0-9]{6,14}|[A-Za-z0-9 ]{1,11}|MG[0-9a-fA-F]{32}")
_UNSENT = ("failed", "undelivered", "canceled")


@dataclass(frozen=True)
class Sms:
    """Text message to send. `to` is written as +61400123456."""

    to: str
    text: str


@dataclass(frozen=True)
class SentSms:
    """The gateway has taken the message."""

    sid: str
    status: str
    """The gateway's word, such as `queued`."""
    segments: int | None
    usd: float | None
    """What it cost; None while the gateway does not say, or says it in another currency."""


async def send_sms(sms: Sms, scope: PackScope) -> SentSms:
    """Hand the message to the gateway. On return the gateway has said that it took it.

    Raises `MaybeSent` when its answer did not come or cannot be read, `ToolBroke` when the message
    certainly was not taken.
    """
    request = _request(sms, scope)
    hide = hiding(_needed(scope, "ROOFING_SMS_TOKEN"), _needed(scope, "ROOFING_SMS_ACCOUNT"))

    def talk(line: Line) -> SentSms:
        try:
            answer = exchange(request, line)
        except NotReached as error:
            raise ToolBroke(f"the text message was not sent: {error}; try again") from None
        except AnswerLost as error:
            raise _maybe(str(error), sms) from None
        return _judged(answer, sms, hide)

    # Ends before the call does, so that what is said of it is known and not guessed.
    return await converse(talk, max(1.0, scope.timeout_seconds * 0.8))


def _request(sms: Sms, scope: PackScope) -> Request:
    account, token, sender = (
        _needed(scope, name)
        for name in ("ROOFING_SMS_ACCOUNT", "ROOFING_SMS_TOKEN", "ROOFING_SMS_FROM")
    )
    if not _ACCOUNT.fullmatch(account):
        raise ToolBroke("ROOFING_SMS_ACCOUNT must be letters and digits; correct it")
    if not _SENDER.fullmatch(sender):
        raise ToolBroke("ROOFING_SMS_FROM must be a number such as +61400123456 or a short name")
    _check(sms)
    parts = safe_url("ROOFING_SMS_URL", scope.settings.get("ROOFING_SMS_URL") or DEFAULT_URL)
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    login = base64.b64encode(f"{account}:{token}".encode()).decode()
    return Request(
        "POST",
        f"{base}/2010-04-01/Accounts/{account}/Messages.json",
        {
            "Authorization": f"Basic {login}",
            "Content-Type": "application/x-www-form-urlencoded",
            "Accept": "application/json",
            "Idempotency-Key": _header(scope.key),
        },
        urlencode({"To": sms.to, **_from(sender), "Body": sms.text}).encode(),
        most_bytes=1_000_000,
    )


def _from(sender: str) -> dict[str, str]:
    """Twilio has senders and pools of senders."""
    return {"MessagingServiceSid" if sender.startswith("MG") else "From": sender}


def _check(sms: Sms) -> None:
    if not _PHONE.fullmatch(sms.to):
        raise ToolBroke(f"{sms.to!r:.40} is not a phone number such as +61400123456; correct it")
    if not sms.text.strip():
        raise ToolBroke("the text message is empty; say what to send")
    if len(sms.text) > MAX_CHARACTERS:
        raise ToolBroke(
            f"the text message has {len(sms.text)} characters, the limit is {MAX_CHARACTERS}; shorten it"
        )
    if "\0" in sms.text or any("\ud800" <= item <= "\udfff" for item in sms.text):
        raise ToolBroke("the text message contains a character that cannot be sent; remove it")


def _judged(answer: Answer, sms: Sms, hide: Hide) -> SentSms:
    output = _object(answer, hide)
    if answer.status >= 500 or 300 <= answer.status < 400:
        raise _maybe(f"the gateway answered with HTTP {answer.status}", sms)
    if answer.status >= 400:
        raise ToolBroke(f"the text message was not sent: {_refusal(answer.status, output)}")
    sid, status = output.get("sid"), output.get("status")
    if not isinstance(sid, str) or not isinstance(status, str):
        raise _maybe("the gateway's answer cannot be read", sms)
    if status in _UNSENT:
        reason = str(output.get("error_message") or output.get("error_code") or "no reason given")[
            :300
        ]
        raise ToolBroke(f"the text message was not sent: the gateway says {status} ({reason})")
    return SentSms(sid[:64], status[:32], _whole(output.get("num_segments")), _dollars(output))


def _refusal(status: int, payload: dict[str, Any]) -> str:
    if status in (401, 403):
        return (
            "the gateway does not accept the login; check ROOFING_SMS_ACCOUNT and ROOFING_SMS_TOKEN"
        )
    if status == 429:
        return "the gateway limits the rate of requests; try again in a minute"
    words = str(payload.get("message") or f"HTTP {status}")[:300]
    code = str(payload.get("code") or "")[:20]
    return f"the gateway rejected it{f' ({code})' if code else ''}: {words}"


def _maybe(reason: str, sms: Sms) -> MaybeSent:
    return MaybeSent("the text message", reason, f"a message to {sms.to}")


def _object(answer: Answer, hide: Hide) -> dict[str, Any]:
    """Return the top level of the answer. A gateway may quote the login that it was given."""
    try:
        payload = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    found = payload.items() if isinstance(payload, dict) else ()
    plain = {name: value for name, value in found if not isinstance(value, dict | list)}
    return {name: hide(value) if isinstance(value, str) else value for name, value in plain.items()}


def _whole(given: Any) -> int | None:
    text = str(given)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else None


def _dollars(payload: dict[str, Any]) -> float | None:
    """Twilio writes what it takes from the account as a negative amount."""
    if str(payload.get("price_unit") or "USD").upper() != "USD":
        return None
    try:
        price = abs(float(str(payload.get("price"))))
    except ValueError:
        return None
    return price if price < 1000 else None


def _needed(scope: PackScope, name: str) -> str:
    value = scope.settings.get(name, "").strip()
    if not value:
        raise ToolBroke(f"no text message can be sent: set {name}")
    return value


def _header(key: str) -> str:
    """Keys of calls are plain, but a header must be, whatever comes."""
    return re.sub(r"[^\x21-\x7e]", "_", key)[:255]
