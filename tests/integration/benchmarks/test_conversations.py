"""The benchmark of conversations: what counts as right, as a question, and as done without being asked for."""

from __future__ import annotations

from pathlib import Path

import yaml

from benchmarks.conversations.__main__ import figures, groups
from benchmarks.conversations.corpus import DEVELOPMENT, load_corpus
from benchmarks.conversations.runner import play
from benchmarks.conversations.scoring import Verdict

_LEAD = {"key": "lead.sarah", "kind": "lead", "name": "Sarah Nguyen", "phone": "+61491570156", "suburb": "Clayton", "stage": "won"}  # fmt: skip
_NEW = "new lead: Vera Lundgren 0491 573 087 in Bentleigh"
_CREATE = {"tool": "leads.create", "arguments": {"name": "Vera Lundgren", "phone": "+61491573087", "suburb": "Bentleigh"}}  # fmt: skip
_OTHER = {**_CREATE, "arguments": {**_CREATE["arguments"], "suburb": "Kew"}}  # type: ignore[dict-item]


def _written(folder: Path, *expectations: tuple[str, dict[str, object]]) -> Path:
    sessions = [
        {
            "id": f"m{number}", "packs": ["roofing"], "world": "office", "records": [],
            "turns": [{"text": text, "kinds": ["phone"], "expect": expect}],
        }
        for number, (text, expect) in enumerate(expectations, 1)
    ]  # fmt: skip
    document = {
        "now": "2026-11-19T09:00+11:00",
        "worlds": {"office": [_LEAD]},
        "sessions": sessions,
    }
    file = folder / "corpus.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


async def test_every_kind_of_mistake_has_a_verdict(tmp_path: Path) -> None:
    file = _written(
        tmp_path,
        (_NEW, {"calls": [_CREATE]}),
        (_NEW, {"ask": "Which suburb?", "acceptable": [{"calls": [_CREATE]}]}),
        (_NEW, {"calls": [_OTHER]}),
        (_NEW, {"refuse": "nobody may"}),
        ("list new leads", {"refuse": "nobody may"}),
        ("new lead: Vera 0491 573 087", {"calls": [_CREATE]}),
        ("void all invoices", {"calls": [_CREATE]}),
        (_NEW, {"calls": [_CREATE], "not_used": ["in Bentleigh"]}),
    )
    scores = await play(load_corpus(file), tmp_path / "offices")
    assert [score.verdict for score in scores] == [
        Verdict.RIGHT, Verdict.RIGHT, Verdict.ACTS, Verdict.ACTS, Verdict.HARMLESS, Verdict.ASKED,
        Verdict.REFUSED, Verdict.HARMLESS,
    ]  # fmt: skip
    assert scores[6].by_directive
    assert figures(scores)["wrong and acts"] == 2
    assert [len(members) for members in groups(scores).values()] == [8, 8, 8]


def test_the_development_half_is_complete() -> None:
    corpus = load_corpus(DEVELOPMENT)
    assert sum(len(session.turns) for session in corpus.sessions) == 306
    assert all(session.records for session in corpus.sessions if session.world == "office")
