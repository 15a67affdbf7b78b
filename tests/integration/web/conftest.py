"""Shared fixtures of the page tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser

from tests.integration.web.browser import chromium


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The session's browser: whoever comes in by it has cookies and storage of their own."""
    async with chromium() as opened:
        yield opened
