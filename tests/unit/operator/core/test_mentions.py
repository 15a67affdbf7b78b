"""Records that a message names in the words of people, typing errors and all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.operator.messages import JOB, LEAD
from tests.unit.operator.office import open_office


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("archive sarah nguyen", "leads.archive", {"lead_id": LEAD}),
        ("archive sara nguyens lead", "leads.archive", {"lead_id": LEAD}),
        ("complete sarah's job", "job.complete", {"job_id": JOB}),
    ],
)
async def test_a_name_leads_to_its_record_and_what_belongs_to_it(
    tmp_path: Path, text: str, tool: str, arguments: dict[str, str]
) -> None:
    async with open_office(tmp_path) as office:
        answer = await office.operator.process(text, "plan")
        assert answer.plan is not None, (answer.status, answer.next_actions)
        (step,) = answer.plan.steps
        assert (step.tool, step.arguments) == (tool, arguments)
        assert LEAD in answer.plan.summary or JOB in answer.plan.summary


async def test_what_is_so_already_is_asked_about_and_not_done_again(tmp_path: Path) -> None:
    async with open_office(tmp_path) as office:
        await office.operator.process(f"archive lead {LEAD}", "execute")
        answer = await office.operator.process("archive sarah nguyen", "execute")
        assert answer.status == "clarify"
        assert "has stage archived already" in " ".join(answer.next_actions)
