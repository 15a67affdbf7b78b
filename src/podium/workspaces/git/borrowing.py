"""A fresh git directory that borrows a workspace's objects and has nothing else of it."""

from __future__ import annotations

from pathlib import Path

from podium.domain.workspaces import WorkspaceRecord
from podium.platform import make_private_folder


def make_borrower(folder: Path, record: WorkspaceRecord, tip: str) -> None:
    """Make it in an empty folder, with the workspace's branch at `tip` as its only ref."""
    for inner in ("objects/info", "refs"):
        make_private_folder(folder / inner)
    sha256 = len(tip) == 64
    version = "1\n[extensions]\n\tobjectformat = sha256" if sha256 else "0"
    (folder / "config").write_text(f"[core]\n\trepositoryformatversion = {version}\n")
    (folder / "HEAD").write_text(f"ref: {record.branch}\n")
    (folder / "packed-refs").write_text(f"{tip} {record.branch}\n")
    private, users = Path(record.private, "git/objects"), Path(record.git_dir, "objects")
    (folder / "objects/info/alternates").write_text(f"{private}\n{users}\n")
