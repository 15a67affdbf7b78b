"""From a phone call to a review, in plain sentences, on a real database, with real mail and text messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from podium.app.app import open_podium
from podium.app.receipts import verify_receipts
from podium.config.configuration import load_configuration
from podium.jobs.operator import Operator
from podium.jobs.operator.composition import OperatorSetup, build_operator
from podium.jobs.operator.models import OperatorAnswer
from tests.integration.packs.roofing.sms_gateway import ACCOUNT, TOKEN, Gateway, sms_gateway
from tests.integration.packs.roofing.smtp_server import SmtpServer, serving

PACKET = {
    "version": "inspection_packet_v1",
    "site": {"address": "12 Smith St", "suburb": "Clayton"},
    "inspected_on": "2026-11-12",
    "inspector": "Brendan",
    "roof_type": "tile",
    "photos": [
        {"file_name": "ridge.jpg", "content_base64": "/9j/4AAQSkZJRg==", "caption": "ridge caps"},
        {"file_name": "valley.jpg", "content_base64": "/9j/4AAQSkZJRgAB", "caption": "valley"},
    ],
    "measurements": [{"label": "ridge length", "value": 18.5, "unit": "m"}],
    "defects": [{"label": "loose ridge caps", "severity": "high", "photo_refs": ["ridge.jpg"]}],
}


@dataclass
class Talk:
    """Messages sent to the operator, and the ids that resulted from them."""

    operator: Operator
    ids: dict[str, str] = field(default_factory=dict)
    tools: list[str] = field(default_factory=list)

    async def say(self, text: str, **context: Any) -> OperatorAnswer:
        answer = await self.operator.process(
            text.format(**self.ids), "execute", context or None, True
        )
        assert answer.status == "succeeded", (text, answer.status, answer.reason)
        for result in answer.results:
            self.tools.append(result.tool)
            found = {k: v for k, v in result.fields.items() if k.endswith("_id")}
            self.ids |= {name.removesuffix("_id"): str(value) for name, value in found.items()}
        return answer


async def test_a_lead_becomes_a_paid_job_with_a_review_from_plain_sentences(tmp_path: Path) -> None:
    with sms_gateway() as gateway:
        async with (
            serving(SmtpServer()) as mail,
            open_podium(*_project(tmp_path, mail, gateway)) as podium,
        ):
            talk = Talk(
                await build_operator(podium, OperatorSetup(pack="roofing", classifier="embedded"))
            )
            await _from_lead_to_review(talk)
            verdict = await verify_receipts(await podium.store(), await podium.verifier())
    assert verdict.sound
    assert verdict.receipts == len(talk.tools)
    assert [tool for tool in talk.tools if tool.startswith(("media", "inspection"))] == [
        "media.create_asset",
        "media.create_asset",
        "inspection.create",
        "inspection.add_items",
        "inspection.generate_scope_summary",
        "inspection.submit",
    ]
    assert [message.recipients for message in mail.received] == [["sarah@example.com"]] * 2
    assert gateway.asked[0]["To"] == "+61400123456"


async def _from_lead_to_review(talk: Talk) -> None:
    await talk.say("new lead: Sarah O'Brien 0400 123 456 sarah@example.com in Clayton, 12 Smith St")
    await talk.say(
        "create inspection with packet data",
        inspection_packet={**PACKET, "lead_id": talk.ids["lead"]},
    )
    await talk.say("submit inspection {inspection}")
    await talk.say("create a quote for lead {lead}")
    await talk.say("add a line to quote {quote}: re-point ridge caps $1,850")
    await talk.say("finalize quote {quote} and email it")
    await talk.say("text 0400 123 456 saying the quote is in your inbox")
    await talk.say("quote {quote} was accepted")
    await talk.say("create a job from quote {quote} starting 3 December")
    await talk.say("start job {job}")
    await talk.say("mark job {job} as complete")
    await talk.say("invoice job {job}")
    paid = await talk.say("record a payment of $1850 on invoice {invoice} by card")
    assert paid.results[0].fields["status"] == "paid"
    await talk.say("ask for a review for job {job}")


async def test_a_message_whose_fate_nobody_knows_is_in_doubt_and_not_sent_again(
    tmp_path: Path,
) -> None:
    with sms_gateway() as gateway:
        gateway.hang_up = True
        async with open_podium(*_project(tmp_path, SmtpServer(), gateway)) as podium:
            operator = await build_operator(
                podium, OperatorSetup(pack="roofing", classifier="embedded")
            )
            words = "text 0400 123 456 saying we are running late"
            answer = await operator.process(words, "execute", None, True)
    assert (answer.status, answer.exit_code) == ("in_doubt", 3)
    assert [result.status for result in answer.results] == ["in_doubt"]
    assert len(gateway.asked) == 1
    assert "podium resume" in answer.next_actions[-1]


async def test_bad_packet_is_refused_whole_with_every_fault_named(tmp_path: Path) -> None:
    packet = {**PACKET, "roof_type": "glass", "defects": [{"label": "", "severity": "awful"}]}
    environ = _environ(tmp_path)
    (tmp_path / "project").mkdir()
    configuration = load_configuration(environ, project=tmp_path / "project")
    async with open_podium(configuration, environ) as podium:
        operator = await build_operator(
            podium, OperatorSetup(pack="roofing", classifier="embedded")
        )
        answer = await operator.process(
            "create inspection with packet data",
            "execute",
            {"inspection_packet": packet, "lead_id": "lead_1"},
            True,
        )
    assert answer.exit_code == 4
    for place in ("/roof_type", "/defects/0/severity", "/defects/0/label"):
        assert f"context inspection_packet{place}" in answer.reason
    assert not (tmp_path / "project" / ".podium").exists()


def _environ(folder: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PODIUM_HOME": str(folder / "home")}


def _project(folder: Path, mail: SmtpServer, gateway: Gateway) -> tuple[Any, dict[str, str]]:
    (folder / "project").mkdir()
    environ = {
        **_environ(folder),
        "PODIUM_USER": "ann",
        "ROOFING_SMTP_HOST": "127.0.0.1",
        "ROOFING_SMTP_PORT": str(mail.port),
        "ROOFING_SMTP_TLS": "none",
        "ROOFING_SMTP_FROM": "office@example.com",
        "ROOFING_SMS_URL": gateway.url,
        "ROOFING_SMS_ACCOUNT": ACCOUNT,
        "ROOFING_SMS_TOKEN": TOKEN,
        "ROOFING_SMS_FROM": "+61480000000",
        "ROOFING_REVIEW_URL": "https://example.com/review",
    }
    return load_configuration(environ, project=folder / "project"), environ
