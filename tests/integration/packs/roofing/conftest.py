"""Servers on loopback that take the roofing office's messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.integration.packs.roofing.sms_gateway import Gateway, sms_gateway
from tests.integration.packs.roofing.smtp_server import SmtpServer, serving


@pytest.fixture
async def server() -> AsyncIterator[SmtpServer]:
    async with serving(SmtpServer()) as running:
        yield running


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    with sms_gateway() as running:
        yield running
