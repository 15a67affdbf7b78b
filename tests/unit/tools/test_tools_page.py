from __future__ import annotations

import re
from pathlib import Path

from podium.tools import builtin_tools

PAGE = Path(__file__).parents[3] / "docs/tools.md"


def test_the_page_lists_every_tool_with_its_arguments_tier_and_receipt() -> None:
    rows = re.findall(
        r"^\| `(\w+)` ?(.*?) \| (T\d) \| (\w+) \| (.*) \|$", PAGE.read_text(), re.MULTILINE
    )

    assert rows == [
        (
            tool.spec.name,
            ", ".join(tool.spec.input_schema["properties"]),
            str(tool.spec.tier),
            "yes" if tool.spec.idempotent else "no",
            ", ".join(tool.spec.receipt_fields),
        )
        for tool in builtin_tools()
    ]
