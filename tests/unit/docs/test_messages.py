"""The list of messages has texts of every kind, and no statements or vocabulary."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_errors_help_pages_and_prompts_are_listed() -> None:
    spec = importlib.util.spec_from_file_location("messages", ROOT / "scripts" / "messages.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    messages = list(script.messages())
    keys = {message.key for message in messages}
    assert {"BadInput", "NotPossibleNow", "Option", "help runs", "page", "prompt"} <= keys
    assert {message.file.rpartition(".")[2] for message in messages} == {"py", "html", "md"}
    assert not [message for message in messages if "CREATE TABLE" in message.text]
    assert len(messages) == len(set(messages))
