"""The example on the room's page runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import podium.testing

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


async def test_the_example_on_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(PAGE), "exec"), names)
    (example,) = (made for name, made in names.items() if name.startswith("test_"))
    await example()
    assert "assert " in code


def test_every_public_name_is_on_the_page() -> None:
    page = PAGE.read_text()
    missing = [name for name in podium.testing.__all__ if name not in page]
    assert missing == []
