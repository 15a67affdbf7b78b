"""A session carries what was said, created and shown: pronouns, places in lists, answers, corrections, `same for`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from podium.app.app import Podium, open_podium
from podium.config.configuration import load_configuration
from podium.core.decisions import ApprovalStatus
from podium.core.errors import BadInput, NotPossibleNow
from podium.core.model import Json
from podium.core.work import Run, RunStatus
from podium.jobs.operator.composition import OperatorSetup, build_conversation
from podium.jobs.operator.models import OperatorAnswer
from podium.jobs.operator.session import (
    MAX_AGE,
    MAX_BYTES,
    MAX_SESSIONS,
    MAX_TURNS,
    Session,
    SessionTurn,
    StoredSession,
    forget_sessions,
    list_sessions,
)
from podium.jobs.operator.submission import answer_chat, ask
from tests.unit.operator.core.test_references import OTHER_TONY, TONY, TONYS_QUOTE, busy_office
from tests.unit.operator.messages import INVOICE, LEAD, QUOTE


@dataclass
class Conversation:
    """One person's messages, each to an operator of its own."""

    podium: Podium
    person: str = "ann"
    name: str = "office"
    pack: str | tuple[str, ...] = "roofing"

    @property
    def memory(self) -> StoredSession:
        return StoredSession(self.podium, self.person, self.name)

    async def say(self, text: str, mode: str = "plan", **context: Json) -> OperatorAnswer:
        setup = OperatorSetup(self.pack, classifier="embedded", user=self.person)
        talk = await build_conversation(self.podium, setup, self.memory)
        return await talk.process(text, mode, context or None)

    async def session(self) -> Session:
        return await self.memory.load()


def call(answer: OperatorAnswer) -> tuple[str, dict[str, Any]]:
    """The one call of a plan."""
    assert answer.plan is not None, (answer.status, answer.classification, answer.reason)
    (step,) = answer.plan.steps
    return step.tool, step.arguments


SMS = {"to": "+61400123456", "lead_id": LEAD}


@pytest.mark.parametrize(
    ("before", "then", "tool", "arguments"),
    [
        ("create a quote for Sarah", "text her that we're late", "sms.send", {**SMS, "text": "we're late"}),
        ("send Sarah her invoice", "mark that as paid", "invoice.record_payment", {"invoice_id": INVOICE, "amount": 900}),
        ("finalise Tony's quote", "decline it", "quote.decline", {"quote_id": TONYS_QUOTE}),
        ("finalise Tony's quote", "text him that it is final", "sms.send", {"to": "+61409333118", "lead_id": TONY}),
        ("create a quote for Sarah", "same for Tony Mancini", "quote.create", {"lead_id": OTHER_TONY}),
        ("book an inspection for Sarah next Thursday at 10am", "do the same for Tony Kostas", "inspection.schedule",
         {"lead_id": TONY, "time": "10:00"}),
        ("text Sarah that the tiles arrived", "same for Tony Kostas", "sms.send",
         {"to": "+61409333118", "lead_id": TONY, "text": "the tiles arrived"}),
        (f"create a quote for lead {LEAD}", "same for Tony Kostas", "quote.create", {"lead_id": TONY}),
        ("archive Tony", "the second one", "leads.archive", {}),
        ("archive Tony", "Mancini", "leads.archive", {"lead_id": OTHER_TONY}),
        ("book an inspection for Sarah tomorrow", "no, at 2pm", "inspection.schedule", {"lead_id": LEAD, "time": "14:00"}),
        ("create a quote for Sarah", "no, Tony Kostas", "quote.create", {"lead_id": TONY}),
        ("new lead: Eve Adams 0400 123 999", "Rowville", "leads.create", {"suburb": "Rowville", "name": "Eve Adams"}),
        ("create a quote", "Sarah", "quote.create", {"lead_id": LEAD}),
        ("assign Sarah's lead to Dave", "no, Mike", "leads.assign", {"assignee": "Mike", "lead_id": LEAD}),
        ("text Sarah that we are late", "no, say we are early", "sms.send", {**SMS, "text": "we are early"}),
        ("archive the lead of Sarah", "never mind", "", {}),
    ],
)  # fmt: skip
async def test_message_is_read_after_the_one_before(
    tmp_path: Path, before: str, then: str, tool: str, arguments: dict[str, Json]
) -> None:
    async with busy_office(tmp_path) as office:
        talk = Conversation(office.podium)
        first = await talk.say(before)
        answer = await talk.say(then)
    if not tool:
        assert answer.status == "cancelled"
        return
    planned, given = call(answer)
    if then == "the second one":
        arguments = {"lead_id": first.options[1].id}
    assert planned == tool
    assert {name: given.get(name) for name in arguments} == arguments


async def test_day_is_corrected_and_the_time_stays(tmp_path: Path) -> None:
    async with busy_office(tmp_path) as office:
        talk = Conversation(office.podium)
        _, thursday = call(await talk.say("book an inspection for Sarah next Thursday at 10am"))
        answer = await talk.say("no, next Friday")
        _, friday = call(answer)
    assert friday["date"] > thursday["date"]
    assert (friday["time"], friday["lead_id"]) == ("10:00", LEAD)
    assert answer.message == "book an inspection for Sarah next Thursday at 10am / no, next Friday"


async def test_place_in_a_list_that_was_shown(tmp_path: Path) -> None:
    async with busy_office(tmp_path) as office:
        talk = Conversation(office.podium)
        shown = await talk.say("list draft quotes", "execute")
        ids = [row["id"] for row in shown.results[0].fields["quotes"]]
        assert set(ids) == {QUOTE, TONYS_QUOTE}
        assert call(await talk.say("finalise the second one")) == (
            "quote.finalize",
            {"quote_id": ids[1]},
        )


async def test_corrected_plan_takes_the_place_of_the_one_that_waits(tmp_path: Path) -> None:
    async with busy_office(tmp_path) as office:
        talk = Conversation(office.podium)
        wrong = await talk.say("create a quote for Sarah", "execute")
        right = await talk.say("no, Tony Kostas", "execute")
        assert (wrong.status, right.status) == ("awaiting_approval", "awaiting_approval")
        store = await office.podium.store()
        old = await store.read(lambda view: view.approval(wrong.action_id or ""))
        run = await store.read(lambda view: view.run(wrong.run_id or ""))
        assert old is not None
        assert run is not None
        assert old.status is ApprovalStatus.REJECTED
        assert old.edited_into == right.run_id
        assert run.status in (RunStatus.FAILED, RunStatus.CANCELLED)
        done = await talk.say("approve", "execute")
        assert done.results[0].fields["lead_id"] == TONY
        late = await talk.say("no, Sarah", "execute")
        assert late.status == "clarify"
        assert [receipt.tool for receipt in await office.receipts()].count("quote.create") == 1


async def test_what_nobody_spoke_of_is_asked_for(tmp_path: Path) -> None:
    async with busy_office(tmp_path) as office:
        talk = Conversation(office.podium)
        for text in ("text him that we're late", "finalise it", "the second one", "approve"):
            assert (await talk.say(text)).status in ("clarify", "refused"), text
        await talk.say("finalise Tony's quote")
        # Another name is not the record that was spoken of.
        unknown = await talk.say("finalise Bob's quote")
        assert unknown.classification is not None
        assert unknown.classification.question.startswith("No quote matches 'bob'")


async def test_sessions_of_two_people_and_of_two_names_share_nothing(tmp_path: Path) -> None:
    async with busy_office(tmp_path) as office:
        await Conversation(office.podium).say("finalise Tony's quote")
        for other in (
            Conversation(office.podium, "bob"),
            Conversation(office.podium, "ann", "home"),
        ):
            assert (await other.session()).turns == ()
            assert (await other.say("decline it")).status == "clarify"
        store = await office.podium.store()
        assert len(await store.read(lambda view: list_sessions(view, "ann"))) == 2
        assert await store.write(lambda tx: forget_sessions(tx, "bob", "")) == 1
        assert len(await store.read(lambda view: list_sessions(view, "ann"))) == 2


async def test_messages_at_the_same_time_are_answered_or_refused(
    tmp_path: Path,
) -> None:
    async with busy_office(tmp_path) as office:
        talk = Conversation(office.podium)
        answers = await asyncio.gather(
            *(
                talk.say(f"new lead: Eve Adams 0400 123 99{n} in Rowville", "execute")
                for n in range(4)
            ),
            return_exceptions=True,
        )
        made = [answer for answer in answers if isinstance(answer, OperatorAnswer)]
        refused = [answer for answer in answers if isinstance(answer, NotPossibleNow)]
        assert len(made) + len(refused) == 4
        session = await talk.session()
        created = {turn.run_id for turn in session.turns}
        assert created == {answer.run_id for answer in made}
        receipts = [receipt.tool for receipt in await office.receipts()]
        assert receipts.count("leads.create") == len(made) >= 1


async def test_session_is_bounded_in_turns_bytes_age_and_number(tmp_path: Path) -> None:
    async with busy_office(tmp_path) as office:
        talk, now = Conversation(office.podium), office.podium.clock.now()
        session = await talk.session()
        for number in range(MAX_TURNS + 5):
            turn = SessionTurn(at=now, text=f"message {number}", full_text=f"message {number}")
            longer = session.with_turn(turn)
            await talk.memory.keep(session, longer)
            session = await talk.session()
        assert [turn.text for turn in session.turns][-1] == f"message {MAX_TURNS + 4}"
        assert len(session.turns) == MAX_TURNS
        large = SessionTurn(at=now, text="x" * 20_000, full_text="y" * 20_000)
        for _ in range(3):
            session = session.with_turn(large)
        assert (
            sum(len(turn.text + turn.full_text) for turn in session.bounded(now).turns) <= MAX_BYTES
        )
        assert session.bounded(now).turns
        assert session.bounded(now + MAX_AGE + timedelta(seconds=1)).turns == ()
        for number in range(MAX_SESSIONS + 3):
            await Conversation(office.podium, name=f"s{number}").say("system status")
        store = await office.podium.store()
        assert len(await store.read(lambda view: list_sessions(view, "ann"))) == MAX_SESSIONS


async def test_chat_and_console_continue_a_session_of_their_person(tmp_path: Path) -> None:
    async with busy_office(tmp_path) as office:
        podium = office.podium
        asked = await answer_chat(podium, "archive Tony", "ann")
        assert "1. " in asked
        assert "2. " in asked
        assert (await answer_chat(podium, "the first", "bob")).startswith("Refused")
        assert "Enqueued" in await answer_chat(podium, "the first", "ann")
        await ask(
            podium,
            "finalise Tony's quote",
            mode="plan",
            pack="roofing",
            by="ann",
            session="console",
        )
        again = await ask(
            podium, "decline it", mode="plan", pack="roofing", by="ann", session="console"
        )
        assert call(again) == ("quote.decline", {"quote_id": TONYS_QUOTE})
        strange = await ask(
            podium,
            "decline it",
            mode="plan",
            pack="roofing",
            by="ann",
            session="console",
            provenance=("mail",),
        )
        assert strange.status == "clarify"


async def test_runs_of_podium_itself_are_named_by_their_task(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PODIUM_HOME": str(tmp_path / "home"), "PODIUM_USER": "ann"}
    async with open_podium(load_configuration(environ, project=tmp_path), environ) as podium:
        store, now = await podium.store(), podium.clock.now()
        discount, invoices = (
            Run(id=podium.ids.new("run"), flow="pipeline", task=task, created_at=now, queue="q")
            for task in ("fix the discount test", "add a field to invoices")
        )
        await store.write(lambda tx: [tx.add_run(run) for run in (discount, invoices)])
        talk = Conversation(podium, pack="podium")
        shown = await talk.say("show the discount run", "execute")
        assert shown.results[0].fields["run_id"] == discount.id
        assert call(await talk.say("cancel it")) == ("runs.cancel", {"run_id": discount.id})
        assert call(await talk.say("cancel the run about invoices"))[1] == {"run_id": invoices.id}
        both = Conversation(podium, name="both", pack=("podium", "roofing"))
        await both.say("show the discount run")
        assert call(await both.say("cancel it")) == ("runs.cancel", {"run_id": discount.id})
        assert call(await both.say("new lead: Eve 0400 123 999 in Rowville"))[0] == "leads.create"
        unknown = await talk.say("cancel the banana run")
        assert unknown.status == "clarify"


async def test_session_without_a_folder_is_made_and_a_bad_name_is_refused(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "PODIUM_HOME": str(tmp_path / "home"), "PODIUM_USER": "ann"}
    async with open_podium(load_configuration(environ, project=tmp_path), environ) as podium:
        with pytest.raises(BadInput, match=r"session name '\.\./up' is not valid"):
            StoredSession(podium, "ann", "../up")
        talk = Conversation(podium)
        assert (await talk.session()).turns == ()
        assert not (tmp_path / ".podium").exists()
        await talk.say("new lead: Sarah 0400123456")
        assert (tmp_path / ".podium").exists()
        assert call(await talk.say("Clayton"))[1]["suburb"] == "Clayton"
