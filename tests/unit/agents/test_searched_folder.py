"""Folder in which a search by a pattern really looks."""

from __future__ import annotations

import pytest

from podium.agents.headless.own_tools import searched_folder
from podium.core.model import Json


@pytest.mark.parametrize(
    ("path", "pattern", "folder"),
    [
        (None, "**/*.py", "."),
        ("src", "*.py", "src"),
        ("src", "a/b*.py", "src"),
        (None, "/etc/pass*", "/etc"),
        ("src", "/etc/passwd", "/etc"),
        (None, "/*", "/"),
        ("src", "../../*", "src/../.."),
        ("src", "*/../../x", "/"),
        ("src", None, "src"),
        (None, ["odd"], "."),
    ],
)
def test_a_pattern_that_leads_elsewhere_is_judged_there(
    path: Json, pattern: Json, folder: str
) -> None:
    assert searched_folder(path, pattern) == folder
