"""The page of what lies where names all that a real run leaves behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "state.md").read_text()


def named(folder: str) -> set[str]:
    """The names on the page, with the parts in capitals as patterns."""
    (block,) = re.findall(rf"```text\n{re.escape(folder)}/\n(.*?)```", PAGE, re.DOTALL)
    return {name for line in block.splitlines() for name in line.split()[0].strip("/").split("/")}


def is_named(name: str, names: set[str]) -> bool:
    patterns = (re.sub(r"[A-Z][A-Z-]*", "@", each) for each in names)
    return any(re.fullmatch(re.escape(each).replace("@", ".+"), name) for each in patterns)


def on_the_workspaces_page() -> set[str]:
    """What a workspace's folder may hold, as the table there has it."""
    section = (DOCS / "workspaces.md").read_text().split("## Where things are")[1]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name.strip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def test_every_file_of_a_run_is_on_the_page(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    subprocess.run(
        [str(Path(sys.executable).with_name("podium")), "demo", "--keep", str(project)],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PODIUM_HOME": str(home)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    (workspace,) = (home / "state" / "workspaces").glob("ws_*")
    assert {each.name for each in workspace.iterdir()} <= on_the_workspaces_page()
    for folder, names in ((project / ".podium", named(".podium")), (home, named("$PODIUM_HOME"))):
        everything = (path for path in folder.rglob("*") if workspace not in path.parents)
        found = [path.name for path in everything if path.name != ".gitignore"]
        assert found
        assert [name for name in found if not is_named(name, names)] == []
