"""The glossary: one meaning for each word, and only words that the pages use."""

from __future__ import annotations

import re
from pathlib import Path

GLOSSARY = Path(__file__).parents[3] / "docs" / "glossary.md"


def test_glossary_has_one_meaning_per_word_in_use() -> None:
    rows = re.findall(r"^\| \*\*([^*]+)\*\* \| (.+) \|$", GLOSSARY.read_text(), re.MULTILINE)
    words = [word for word, _ in rows]
    assert words == sorted(set(words))
    assert 40 <= len(words) <= 50
    pages = " ".join(
        page.read_text().lower() for page in GLOSSARY.parent.rglob("*.md") if page != GLOSSARY
    )
    assert [word for word in words if word not in pages] == []
    assert [word for word, text in rows if not text.endswith((".", ".)"))] == []
