"""Tutorials and how-to guides: every command runs, in the order of the page, and prints what the page shows.

A block in `console` is run line by line: `$ command`, then lines that its output must contain in this order, `…` for anything.
A command ends with 0 unless a comment says otherwise: `# exits with 3`. A block with `title="FILE"` is written to that file.
`RUN` and `APPROVAL` stand for the newest run and the newest approval that waits, `LEAD`, `ORDER` and
`BRANCH` for the last of that kind that was printed. Blocks in `sh` are not run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.docs.test_examples import ROOT, Block, all_blocks

PAGES = sorted((ROOT / "docs/tutorials").glob("*.md")) + sorted((ROOT / "docs/how-to").glob("*.md"))


@pytest.mark.soak
@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_commands_of_the_page_run_and_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    session = Session(tmp_path)
    try:
        for block in all_blocks([page]):
            if block.title:
                session.write(block)
            elif block.language == "console":
                for command, expected in commands(block):
                    session.run(command, expected)
    finally:
        session.close()


def commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command of the block with the lines below it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        count = next(n for n, line in enumerate(lines, 1) if not line.endswith("\\"))
        yield "\n".join(lines[:count]), lines[count:]


PRINTED = {
    "LEAD": r"lead_[0-9a-f]{8,}",
    "ORDER": r"WO-[A-Z0-9-]+-[0-9a-f]{8}",
    "BRANCH": r"task/[a-z0-9-]+-[0-9a-f]{6}",
}
"""Placeholder → what its value looks like in the output."""


class Session:
    """One shell's worth of commands: the folder and the variables carry over."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        home = folder / "home"
        self.folder.mkdir()
        home.mkdir()
        (home / ".gitconfig").write_text(
            "[user]\nname = Ann\nemail = ann@example.org\n[init]\ndefaultBranch = main\n"
        )
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = {
            "HOME": str(home),
            "PATH": path,
            "LANG": "C.UTF-8",
            "TMUX_TMPDIR": str(folder),
            "TERM": "xterm-256color",
        }
        self.variables = folder / "variables"
        self.printed = ""

    def write(self, block: Block) -> None:
        file = self.folder / block.title.replace("~", self.env["HOME"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)

    def run(self, command: str, expected: list[str]) -> None:
        code = int(m[1]) if (m := re.search(r"# exits with (\d+)", command)) else 0
        command = re.sub(
            r"(?<![\w-])(RUN|APPROVAL|LEAD|ORDER|BRANCH)(?![\w.-])", self._newest, command
        )
        script = f"{command}\nstatus=$?; pwd > {self.variables}; exit $status\n"
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=500,
            check=False,
        )
        self.printed += ended.stdout
        assert ended.returncode == code, f"$ {command}\n{ended.stdout}"
        self.folder = Path(self.variables.read_text().strip())
        pattern = ".*?".join(_pattern(line) for line in expected if line.strip())
        assert re.search(pattern, ended.stdout, re.DOTALL), f"$ {command}\n{ended.stdout}"

    def close(self) -> None:
        """End the tmux servers that the page started."""
        for socket in self.folder.parent.rglob("tmux-*/*"):
            if socket.is_socket():
                command = ["tmux", "-S", str(socket), "kill-server"]
                subprocess.run(command, env=self.env, check=False, capture_output=True)

    def _newest(self, placeholder: re.Match[str]) -> str:
        if (pattern := PRINTED.get(placeholder[1])) is not None:
            return str(re.findall(pattern, self.printed)[-1])
        name = {"RUN": "runs", "APPROVAL": "approvals"}[placeholder[1]]
        text = subprocess.check_output(
            ["podium", name, "--json"], cwd=self.folder, env=self.env, text=True
        )
        return str(json.loads(text)[name][0]["id"])


def _pattern(line: str) -> str:
    """The line as a regular expression: `…` is anything, blanks are as many as there are."""
    parts = (part.split() for part in line.split("…"))
    return ".*?".join(r"\s+".join(map(re.escape, words)) for words in parts)
