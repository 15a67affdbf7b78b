"""The examples on the room's page run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "sandbox.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
async def test_an_example_on_the_page_runs(example: str) -> None:
    code = compile(example, str(PAGE), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    done = eval(code, {})
    if done is not None:
        await done


def test_the_page_has_examples() -> None:
    assert len(EXAMPLES) == 2
