"""The documentation as a site: it builds without a warning, and its pages and search need nothing from elsewhere."""

from __future__ import annotations

import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.docs.test_examples import ROOT
from tests.integration.web.browser import chromium, needs_browser, picture

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs", reason="`make docs` installs MkDocs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_generated_pages_are_in_the_site(site: Path) -> None:
    for name in ("reference/settings.html", "reference/commands.html", "reference/events.html"):
        assert (site / name).is_file(), name
    assert (site / "podium.schema.json").is_file()


@needs_browser
async def test_search_finds_a_setting_and_no_page_asks_another_host(site: Path) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    requested: list[str] = []
    try:
        async with chromium() as browser:
            page = await browser.new_page()
            page.on("request", lambda request: requested.append(request.url))
            await page.goto(f"{address}/reference/settings.html")
            await page.fill("input.md-search__input", "temporary_mb")
            results = page.locator(".md-search-result__item a")
            await results.first.wait_for()
            addresses = [await result.get_attribute("href") for result in await results.all()]
            assert any("reference/settings.html" in (href or "") for href in addresses), addresses
            await picture(page, "documentation-search")
            for name in ("index.html", "explanation/architecture.html", "tutorials/pipeline.html"):
                await page.goto(f"{address}/{name}")
    finally:
        server.shutdown()
        server.server_close()
    assert [url for url in requested if not url.startswith((address, "blob:", "data:"))] == []
