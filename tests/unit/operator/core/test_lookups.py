"""Lookups that a model plans for a record nobody gave the id of are done, and nothing else is."""

from __future__ import annotations

from pathlib import Path

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.jobs.operator.testing import sure
from tests.unit.operator.messages import LEAD
from tests.unit.operator.office import open_office

WORDS = "archive the lead of Sarah Nguyen"
ARCHIVE: tuple[str, dict[str, Json]] = ("leads.archive", {})
FIND: tuple[str, dict[str, Json]] = ("leads.find", {"query": "Sarah Nguyen"})


async def test_a_lookup_is_done_and_the_person_is_asked_with_its_result(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        answer = await office.misled(sure(FIND, ARCHIVE), WORDS).process(WORDS, "execute")
        assert (answer.status, answer.exit_code) == ("succeeded", 3)
        assert [result.tool for result in answer.results] == ["leads.find"]
        assert LEAD in str(answer.results[0].fields)
        assert answer.classification is not None
        assert answer.classification.reasoning == (
            "Looks up lead_id with leads.find first; nothing else is done yet"
        )
        assert answer.next_actions[0] == (
            "Then send the whole message again, with the answer: Which lead? Give its id."
        )
        assert "leads.archive" not in office.performed()


async def test_looking_at_the_plan_reports_the_lookup_alone(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        answer = await office.misled(sure(FIND, ARCHIVE), WORDS).process(WORDS, "plan")
        assert answer.plan is not None
        assert (answer.status, answer.plan.tool_sequence) == ("planned", ("leads.find",))
        assert answer.plan.estimated_risk < Tier.T2
        assert not answer.plan.requires_approval


async def test_what_is_no_plain_lookup_is_not_done_ahead(tmp_path: Path) -> None:
    other = ("leads.find", {"query": "Eve"})
    note = ("os.create_note", {"text": "Sarah Nguyen"})
    lacking: tuple[str, dict[str, Json]] = ("leads.find", {})
    async with open_office(tmp_path) as office:
        before = office.performed()
        for first in (other, note, lacking):
            answer = await office.misled(sure(first, ARCHIVE), WORDS).process(WORDS, "execute")
            assert (answer.status, answer.exit_code) == ("clarify", 3), first
        assert office.performed() == before
