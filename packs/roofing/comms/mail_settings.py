"""The settings of the mail server, checked before anybody is talked to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from email.headerregistry import Address
from email.utils import parseaddr
from typing import Literal, get_args

from podium.core.errors import ToolBroke

from ..exchange import is_this_machine

Encryption = Literal["starttls", "ssl", "none"]
_PORTS: dict[Encryption, int] = {"starttls": 587, "ssl": 465, "none": 25}


@dataclass(frozen=True)
class MailSettings:
    """Mail server and sender address."""

    host: str
    port: int
    tls: Encryption
    sender: str
    sender_name: str
    user: str
    password: str = field(repr=False)

    @property
    def domain(self) -> str:
        return self.sender.rpartition("@")[2]


def mail_settings(settings: Mapping[str, str]) -> MailSettings:
    """Raises `ToolBroke` naming the setting that is missing or wrong."""
    host = _needed(settings, "ROOFING_SMTP_HOST")
    tls = _encryption(settings.get("ROOFING_SMTP_TLS") or "starttls")
    user = settings.get("ROOFING_SMTP_USER", "")
    if user and tls == "none" and not is_this_machine(host):
        raise ToolBroke(
            "the mail password would travel unencrypted; set ROOFING_SMTP_TLS to starttls"
        )
    password = settings.get("ROOFING_SMTP_PASSWORD", "")
    if not (user + password).isascii():
        raise ToolBroke(
            "ROOFING_SMTP_USER and ROOFING_SMTP_PASSWORD can contain only ASCII letters, digits and symbols"
        )
    name, sender = _sender(_needed(settings, "ROOFING_SMTP_FROM"))
    return MailSettings(
        host=host,
        port=_port(settings.get("ROOFING_SMTP_PORT") or str(_PORTS[tls])),
        tls=tls,
        sender=sender,
        sender_name=name,
        user=user,
        password=password,
    )


def _needed(settings: Mapping[str, str], name: str) -> str:
    value = settings.get(name, "").strip()
    if not value:
        raise ToolBroke(f"no e-mail can be sent: set {name}")
    return value


def _encryption(given: str) -> Encryption:
    for arg in get_args(Encryption):
        if arg == given.lower():
            return arg  # type: ignore[no-any-return]
    raise ToolBroke(f"ROOFING_SMTP_TLS must be starttls, ssl or none, not {given!r:.40}")


def _port(given: str) -> int:
    if given.isascii() and given.isdigit() and 0 < int(given) < 65536:
        return int(given)
    raise ToolBroke(f"ROOFING_SMTP_PORT must be a number from 1 to 65535, not {given!r:.40}")


def _sender(given: str) -> tuple[str, str]:
    """`Name <address>` or the address alone."""
    name, address = parseaddr(given)
    try:
        domain = Address(name, addr_spec=address).domain
    except ValueError:
        domain = ""
    if not domain or not address.isascii() or not given.isprintable():
        raise ToolBroke("ROOFING_SMTP_FROM must be an e-mail address such as office@example.com")
    return name, address
