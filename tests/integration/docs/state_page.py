"""The page of what lies where, to be held against what a real run leaves behind."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "state.md").read_text()


def named(folder: str) -> set[str]:
    """The names on the page, with the parts in capitals as patterns."""
    (block,) = re.findall(rf"```text\n{re.escape(folder)}/\n(.*?)```", PAGE, re.DOTALL)
    return {name for line in block.splitlines() for name in line.split()[0].strip("/").split("/")}


def is_named(name: str, names: set[str]) -> bool:
    patterns = (re.sub(r"[A-Z][A-Z-]*", "@", item) for item in names)
    return any(re.fullmatch(re.escape(pattern).replace("@", ".+"), name) for pattern in patterns)


def on_the_workspaces_page() -> set[str]:
    """Return the names that a workspace's folder may contain, according to the table on that page."""
    section = (DOCS / "workspaces.md").read_text().split("## Where things are")[1]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return {name.strip("/") for cell in cells for name in re.findall(r"`([^`]+)`", cell)}


def unnamed(project: Path, home: Path) -> list[str]:
    """Return the names that a run left in the project's and the user's folders and that the page does not list."""
    (workspace,) = (home / "state" / "workspaces").glob("ws_*")
    names = {path.name for path in workspace.iterdir()} - on_the_workspaces_page()
    return sorted(
        names.union(
            *(
                _unnamed_below(folder, workspace, named(title))
                for folder, title in ((project / ".podium", ".podium"), (home, "$PODIUM_HOME"))
            )
        )
    )


def _unnamed_below(folder: Path, workspace: Path, names: set[str]) -> set[str]:
    everything = (path for path in folder.rglob("*") if workspace not in path.parents)
    found = {path.name for path in everything if path.name != ".gitignore"}
    assert found, f"nothing was left in {folder}"
    return {name for name in found if not is_named(name, names)}
