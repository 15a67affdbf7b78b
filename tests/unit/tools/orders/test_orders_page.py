from __future__ import annotations

import re
from pathlib import Path

from podium.jobs.sense.orders.order_tools import order_tools, sense_tools
from podium.jobs.sense.orders.work_order import OP_TOOLS

PAGE = Path(__file__).parents[4] / "docs/tools.md"


def test_the_page_lists_every_tool_of_work_orders() -> None:
    rows = re.findall(
        r"^\| (\w+|–) \| `(\w+)` (.*?) \| (T\d) \| (.*) \| (`\w+`|–) \|$",
        PAGE.read_text(),
        re.MULTILINE,
    )
    operations = {tool: op for op, tool in OP_TOOLS.items()}

    assert rows == [
        (
            operations.get(tool.spec.name, "–"),
            tool.spec.name,
            ", ".join(tool.spec.input_schema["properties"]),
            str(tool.spec.tier),
            ", ".join(tool.spec.receipt_fields),
            f"`{tool.spec.undo}`" if tool.spec.undo else "–",
        )
        for tool in (*order_tools(), *sense_tools("inbox", "candidates"))
    ]


def test_all_of_them_are_repeatable() -> None:
    assert all(tool.spec.idempotent for tool in (*order_tools(), *sense_tools("a", "b")))
