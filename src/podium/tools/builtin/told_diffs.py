"""Diffs and refused edits, as a result may tell them."""

from __future__ import annotations

from podium.domain.gating import Outcome
from podium.domain.model import Json
from podium.tools.edits import Candidate, EditRefused
from podium.tools.scope import ToolScope

LONGEST_DIFF = 12_000
_LONGEST_SHOWN = 160


def told_diff(scope: ToolScope, diff: str, most: int = LONGEST_DIFF) -> str:
    """Cleaned before it is cut: half a secret would pass the redactor."""
    return _cut(scope.clean(diff), most)


def refusal(refused: EditRefused, scope: ToolScope, of: str) -> Outcome:
    """The words and, as data, the places that come nearest."""
    shown = [_shown(each, scope) for each in refused.candidates]
    places = "".join(f"\nline {each['line']}: {each['text']}{_why(each)}" for each in shown)
    return Outcome(
        ok=False,
        error=f"{of} was refused, and nothing was changed: {scope.clean(refused.words)}{places}",
        result={"refused": str(refused.reason), "edit": refused.number, "candidates": shown},
    )


def _shown(candidate: Candidate, scope: ToolScope) -> dict[str, Json]:
    text = _cut(scope.clean(candidate.text), _LONGEST_SHOWN)
    return {"line": candidate.line, "text": text, "differs": candidate.differs}


def _why(shown: dict[str, Json]) -> str:
    return f"  ← {shown['differs']}" if shown["differs"] else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n[cut: {len(text)} characters in all]"
