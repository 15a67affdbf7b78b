"""Trusted project files by digest, stored in the user's state."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from podium.config.folders import write_whole


class TrustBook:
    """Remembers the digest under which each project's `podium.yaml` was trusted.

    One small file per project, so that two people trusting two projects never undo each other.
    """

    def __init__(self, user_state: Path) -> None:
        self._folder = user_state / "trust"

    def trusts(self, file: Path, digest: str) -> bool:
        """Tell whether exactly this content of this file is trusted. Any edit ends it."""
        try:
            page = json.loads(self.page(file).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(page, dict) and page.get("digest") == digest

    def trust(self, file: Path, digest: str) -> None:
        """Trust the file with this content, and no other. On return it is on disk."""
        page = json.dumps({"file": str(file.resolve()), "digest": digest})
        write_whole(self.page(file), page + "\n", mode=0o600)

    def forget(self, file: Path) -> bool:
        """Trust it no more. False when it was not trusted anyway."""
        page = self.page(file)
        existed = page.exists()
        page.unlink(missing_ok=True)
        return existed

    def page(self, file: Path) -> Path:
        """File that notes under which digest a file is trusted. It need not exist."""
        name = hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"
