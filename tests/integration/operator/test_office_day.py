"""An office day as one conversation: from a phone call to a review without an id, killed twice on the way."""

from __future__ import annotations

import asyncio
import re
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.app.app import Podium, open_podium
from podium.app.receipts import verify_receipts
from podium.core.model import Json
from podium.jobs.operator.composition import OperatorSetup, build_conversation
from podium.jobs.operator.models import OperatorAnswer
from podium.jobs.operator.session import Session, StoredSession
from tests.integration.operator.test_revenue_flow import PACKET, _project
from tests.integration.packs.roofing.sms_gateway import sms_gateway
from tests.integration.packs.roofing.smtp_server import SmtpServer, serving

PROGRAM = "tests.integration.operator.talk_program"
ID = re.compile(r"\b[a-z]+_[0-9a-f]{8,}\b")


@dataclass
class Day:
    """A conversation in the session `day`. Each message is answered by an operator of its own."""

    podium: Podium
    environ: dict[str, str]
    said: list[str] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)

    async def say(self, text: str, **context: Json) -> OperatorAnswer:
        self.said.append(text)
        setup = OperatorSetup("roofing", classifier="embedded")
        talk = await build_conversation(self.podium, setup, self.memory)
        answer = await talk.process(text, "execute", context or None)
        self.tools += [result.tool for result in answer.results if result.status == "completed"]
        return answer

    async def done(self, text: str, **context: Json) -> dict[str, Any]:
        """Say it, approve the plan if it waits, and give the last receipt's fields."""
        answer = await self.say(text, **context)
        if answer.status == "awaiting_approval":
            answer = await self.say("approve")
        assert answer.status == "succeeded", (
            text,
            answer.status,
            answer.reason,
            answer.classification,
        )
        return answer.results[-1].fields

    async def killed(self, text: str, point: str) -> None:
        """Say it in a process that is killed at a point of it."""
        self.said.append(text)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", PROGRAM, str(self.podium.folders.project), "day", point, text,
            env=self.environ,
        )  # fmt: skip
        assert await process.wait() == -signal.SIGKILL

    @property
    def memory(self) -> StoredSession:
        return StoredSession(self.podium, self.podium.settings.user, "day")

    async def session(self) -> Session:
        return await self.memory.load()


async def test_the_office_day_is_one_conversation_without_an_id_and_outlives_two_kills(
    tmp_path: Path,
) -> None:
    with sms_gateway() as gateway:
        mail = SmtpServer()
        async with serving(mail):
            configuration, environ = _project(tmp_path, mail, gateway)
            async with open_podium(configuration, environ) as podium:
                day = Day(podium, {**environ, "PYTHONPATH": str(Path(__file__).parents[3])})
                await _from_lead_to_review(day)
                verdict = await verify_receipts(await podium.store(), await podium.verifier())
    assert verdict.sound
    assert verdict.receipts == len(day.tools) + 1  # whose answer was killed
    assert not [text for text in day.said if ID.search(text)]
    assert [message.recipients for message in mail.received] == [["sarah@example.com"]] * 2
    assert [sent["To"] for sent in gateway.asked] == ["+61400123456"]


async def _from_lead_to_review(day: Day) -> None:
    asked = await day.say("new lead: Sarah O'Brien 0400 123 456 sarah@example.com, 12 Smith St")
    assert asked.classification is not None
    assert asked.classification.missing_evidence == ("suburb",)
    lead = (await day.done("Clayton"))["lead_id"]
    # Killed when the inspection is booked and nothing of it is in the session yet.
    await day.killed("book an inspection for her next Thursday at 10am", "remembering")
    assert await day.done("process the inspection packet for Sarah", inspection_packet=PACKET)
    assert (await day.done("submit it"))["status"] == "submitted"
    quote = await day.done("create a quote for her")
    assert quote["lead_id"] == lead
    wrong = await day.say("add a line: re-point ridge caps $1,850")
    right = await day.say("no, $1,900")
    assert right.plan is not None
    assert right.plan.steps[0].arguments["unit_price"] == 1900
    assert (await day.say(f"APPROVE: {wrong.action_id}")).status == "error"
    day.said.pop()
    assert (await day.say("approve")).results[0].fields["total"] == 1900
    await day.done("finalise it and email it to her")
    await day.done("text her that the quote is in her inbox")
    await day.done("she accepted it")
    # Killed when the job's plan is stored, before anybody was asked.
    await day.killed("create a job from it starting 3 December", "started")
    (waiting,) = [turn for turn in (await day.session()).turns if not turn.settled]
    assert (await day.say("approve")).results[0].tool == "job.create"
    assert waiting.tools == ("job.create",)
    await day.done("start it")
    await day.done("mark it complete")
    assert (await day.done("invoice it"))["amount"] == 1900
    paid = await day.done("mark that as paid")
    assert (paid["status"], paid["balance"]) == ("paid", 0)
    await day.done("ask her for a review")
