"""The pictures of the README: `make pictures` makes them from a real demo and a real console."""

from __future__ import annotations

import asyncio
import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from podium.core.decisions import Tier
from podium.core.model import Json

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
DEMO = FOLDER / "demo.svg"
CONSOLE = FOLDER / "console.png"
MAX_BYTES = 200_000
"""Of both together."""

COLUMNS = 118
GAP = "⋮"
CUT = "…"
_SAMPLE_FOLDER = re.compile(r"/\S*/podium-demo-\w+")
_VARIABLE = (
    (re.compile(r"\d\d:\d\d:\d\d"), "TIME"),
    (re.compile(r"/\S*/(shop|sample)/"), "PROJECT/"),
    (re.compile(r"(?<![0-9a-z])[0-9a-f]{6,}(?![0-9a-z])"), "ID"),
    (re.compile(r"\$[\d.]+"), "USD"),
    (re.compile(r"\b[\d.]+ s\b"), "SECONDS"),
    (re.compile(r"(kill -9) \d+"), r"\1 PID"),
    (re.compile(r"\d+ (\+ \d+ tokens|verified)"), r"N \1"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
)
_ONLY_WHEN_NOT_KEPT = " (deleted with the sample; keep it with `podium demo --keep DIR`)"


def crop(output: str) -> list[str]:
    """The lines of a demo's output to show: its command, from the kill to the pull request, its end."""
    output = _SAMPLE_FOLDER.sub("/tmp/demo", output).replace(_ONLY_WHEN_NOT_KEPT, f" {CUT}")
    lines = output.splitlines()
    run = _first(lines, "  $ podium run")
    kill = _first(lines, "  $ kill -9")
    delivered = _first(lines, "[", "Pipeline success!")
    facts = _first(lines, "checks on ")
    shown = [lines[run], GAP, *lines[kill : delivered + 1], GAP, *lines[facts:]]
    return [line if len(line) <= COLUMNS else line[: COLUMNS - 1] + CUT for line in shown]


def _first(lines: list[str], start: str, within: str = "") -> int:
    return next(i for i, line in enumerate(lines) if line.startswith(start) and within in line)


def draw(lines: list[str]) -> str:
    """An SVG of a terminal with these lines: no fonts from elsewhere, the same bytes each time."""
    terminal = Console(record=True, width=COLUMNS, file=io.StringIO())
    for line in lines:
        style = "bold #58a6ff" if line.startswith("  $ ") else "dim" if line == GAP else ""
        terminal.print(Text(line, style=style), no_wrap=True, crop=True)
    own_fonts = re.sub(r"\s*@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    return terminal.export_svg(title="podium demo", code_format=own_fonts, unique_id="demo")


def drawn_lines(svg: str) -> list[str]:
    """The lines of text in a picture that `draw` made, without its title."""
    rows: dict[float, str] = {}
    for element in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text"):
        if "clip-path" in element.attrib:
            row = float(element.attrib["y"])
            rows[row] = rows.get(row, "") + (element.text or "").replace("\xa0", " ")
    return [rows[row].rstrip() for row in sorted(rows)]


def not_printed(drawn: list[str], output: str) -> list[str]:
    """Lines of the picture that a demo's output does not have, in this order; times, ids and costs may differ."""
    printed = [_normal(line) for line in output.splitlines()]
    missing = []
    for line in drawn:
        matches = (i for i, other in enumerate(printed) if _is_shown_by(_normal(line), other))
        if line in ("", GAP):
            continue
        if (match := next(matches, None)) is None:
            missing.append(line)
        else:
            del printed[: match + 1]
    return missing


def _is_shown_by(drawn: str, printed: str) -> bool:
    # The end of a line that was cut may be half an id: it is not compared.
    return drawn == printed or (drawn.endswith(CUT) and printed.startswith(drawn[:-12]))


def _normal(line: str) -> str:
    for pattern, word in _VARIABLE:
        line = pattern.sub(word, line)
    return line.replace(_ONLY_WHEN_NOT_KEPT, "").rstrip()


def demo_output() -> str:
    """Run `podium demo` once."""
    podium = Path(sys.executable).with_name("podium")
    done = subprocess.run([podium, "demo"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


EDIT: dict[str, Json] = {
    "path": "src/totals.py",
    "find": "def total(items):\n    return sum(items)\n",
    "replace": "def total(items):\n    # Prices are in cents.\n    return sum(items) / 100\n",
}


async def photograph_console() -> None:
    """Write the top of the console's inbox, with two calls that wait for a person."""
    # Late: the test of the demo's picture needs no browser.
    from tests.integration.web.browser import chromium, visitor
    from tests.integration.web.console_harness import console
    from tests.integration.web.pending_items import add_approval, add_run

    with tempfile.TemporaryDirectory() as folder:
        async with console(Path(folder)) as served, chromium() as browser:
            run = await add_run(served.podium, "Show totals in dollars")
            await add_approval(served.podium, run, "replace_in_file", EDIT, tier=Tier.T2)
            push = {"command": "git push origin task/show-totals"}
            await add_approval(served.podium, run, "run_command", push, tier=Tier.T3, reason="it leaves the machine")  # fmt: skip
            async with visitor(browser, served) as page:
                await page.goto("/")
                await page.screenshot(path=CONSOLE, caret="initial")


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    DEMO.write_text(draw(crop(demo_output())))
    asyncio.run(photograph_console())
    size = DEMO.stat().st_size + CONSOLE.stat().st_size
    print(f"{DEMO.name}, {CONSOLE.name}: {size} bytes together, at most {MAX_BYTES}")
    sys.exit(size > MAX_BYTES)


if __name__ == "__main__":
    main()
