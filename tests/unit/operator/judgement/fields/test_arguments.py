"""Arguments of a tool from a clause and the context."""

from __future__ import annotations

from typing import Any

import pytest

from podium.core.packs import Skill, SkillStep
from podium.jobs.operator.models import Message
from tests.unit.operator.judgement.fields.bike_workshop import EXTRACTOR, NOW, kind, read

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("riders.add", "new rider: Sarah 0400123456 in Clayton", {"name": "Sarah", "phone": "+61400123456", "suburb": "Clayton"}),
    ("riders.add", "new rider bob lang 0411 000 222 st kilda", {"name": "Bob Lang", "phone": "+61411000222", "suburb": "St Kilda"}),
    ("riders.add", "sign up tim in clayton 0411 000 222", {"phone": "+61411000222", "suburb": "Clayton"}),
    ("riders.add", "NEW RIDER SARAH JONES 0400 123 456 CLAYTON", {"name": "Sarah Jones", "phone": "+61400123456", "suburb": "Clayton"}),
    ("riders.add", "new rider Sarah, remarks: rides to work, e-mail s@example.com", {"name": "Sarah", "remarks": "rides to work", "email": "s@example.com"}),
    ("riders.find", "look up rider Henderson", {"query": "Henderson"}),
    ("riders.find", "find the rider called Maria Kostas", {"query": "Maria Kostas"}),
    ("riders.find", "who do we have in Northcote?", {"suburb": "Northcote"}),
    ("riders.find", "whose number is 0400 123 456?", {"phone": "+61400123456"}),
    ("repair.book", "book rider K-7 in on Friday week at half past two with Ben", {"rider_id": "K-7", "date": "2026-11-27", "time": "14:30", "mechanic": "Ben"}),
    ("repair.book", "book a service for rider K-7 tomorrow, express", {"rider_id": "K-7", "date": "2026-11-17", "express": True}),
    ("repair.book", "book a service for rider K-7 tomorrow, not express", {"rider_id": "K-7", "date": "2026-11-17", "express": False}),
    ("repair.book", "service for Sarah on 2026-12-01T10:30", {"date": "2026-12-01", "time": "10:30"}),
    ("repair.book", "rain on Friday, move rider K-7 to next Wednesday", {"rider_id": "K-7", "date": "2026-11-25"}),
    ("repair.pickup", "repair R-12 is picked up tomorrow at 3pm", {"repair_id": "R-12", "at": "2026-11-17T15:00:00+11:00"}),
    ("repair.pickup", "repair R-12 is picked up tomorrow", {"repair_id": "R-12"}),
    ("repair.list", "show the last 5 repairs being repaired", {"stage": "on_stand", "limit": 5}),
    ("repair.list", "list repairs on stand", {"stage": "on_stand"}),
    ("repair.list", "all finished repairs", {"stage": "ready"}),
    ("repair.list", "list waitng repairs", {"stage": "waiting"}),
    ("repair.list", "list all repairs", {"stage": "all"}),
    ("repair.list", "list 500 repairs", {}),
    ("repair.move", "move ticket R-12 from waiting to ready", {"repair_id": "R-12", "stage": "ready"}),
    ("repair.hand_over", "give repair R-12 to Michelle", {"repair_id": "R-12", "assignee": "Michelle"}),
    ("repair.hand_over", "Nadia will look after repair R-12", {"repair_id": "R-12", "assignee": "Nadia"}),
    ("repair.hand_over", "hand over repair R-12", {"repair_id": "R-12"}),
    ("bill.pay", "record a payment of 500 on bill B-9 by card", {"bill_id": "B-9", "amount": 500, "method": "card"}),
    ("bill.pay", "bill B-9 got paid $1,210.50 cash", {"bill_id": "B-9", "amount": 1210.5, "method": "cash"}),
    ("bill.pay", "record a payment of -$50 on bill B-9", {"bill_id": "B-9"}),
    ("bill.pay", "bill B-9 is paid for 3 hours", {"bill_id": "B-9"}),
    ("bill.pay", "take a payment of 10% on bill B-9", {"bill_id": "B-9"}),
    ("bill.pay", "bill B-9 is paid by transfer, 1200", {"bill_id": "B-9", "amount": 1200, "method": "transfer"}),
    ("bill.pay", "bill B-9 was paid 5 grand", {"bill_id": "B-9", "amount": 5000}),
    ("repair.hand_over", "give repair R-12 to dave", {"repair_id": "R-12", "assignee": "Dave"}),
    ("repair.hand_over", "give repair R-12 to the team", {"repair_id": "R-12"}),
    ("repair.book", "book rider K-7 for Thursday the 26th at 10:30", {"rider_id": "K-7", "date": "2026-11-26", "time": "10:30"}),
    ("repair.book", "book Sarah in tomorrow, rider K-7", {"rider_id": "K-7", "date": "2026-11-17"}),
    ("bill.takings", "takings last month", {"from": "2026-10-01", "to": "2026-10-31"}),
    ("bill.takings", "takings from 1 October to 15 October", {"from": "2026-10-01", "to": "2026-10-15"}),
    ("bill.takings", "takings since 3 March", {"from": "2026-03-03"}),
    ("bill.takings", "takings until yesterday", {"to": "2026-11-15"}),
    ("bill.takings", "takings from July to September", {"from": "2026-07-01", "to": "2026-09-30"}),
    ("bill.takings", "takings", {}),
    ("bill.pay", "bill B-9 two thousand five hundred dollars", {"bill_id": "B-9", "amount": 2500}),
    ("bill.pay", "bill B-9 - paid - $8,900", {"bill_id": "B-9", "amount": 8900}),
    ("bill.pay", "she paid bill B-9 with 1,500 cash", {"bill_id": "B-9", "amount": 1500, "method": "cash"}),
    ("bill.pay", "they paid 80 for bill B-9, no cash", {"bill_id": "B-9", "amount": 80}),
    ("bill.pay", "pay repair-9 $80", {"amount": 80}),
    ("repair.scrap", "scrap RID-9", {}),
    ("repair.scrap", "scrap BILL-9", {}),
    ("riders.add", "phone: 0400 000 111, name: peter, suburb: carlton", {"name": "Peter", "phone": "+61400000111", "suburb": "Carlton"}),
    ("riders.find", "do we have a rider for Mrs Papas in Carlton?", {"query": "Mrs Papas", "suburb": "Carlton"}),
    ("repair.book", "move rider K-7 to Wed 25th at 11am", {"rider_id": "K-7", "date": "2026-11-25", "time": "11:00"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "clause", "arguments"), CASES)
def test_arguments_are_what_a_colleague_would_fill_in(
    tool: str, clause: str, arguments: dict[str, Any]
) -> None:
    assert read(tool, clause) == arguments


TEXTS: list[tuple[str, str, dict[str, Any]]] = [
    ("desk.errand", "errand: call John tomorrow", {"title": "call John", "due": "2026-11-17"}),
    ("desk.errand", "create an errand to call John", {"title": "call John"}),
    ("desk.errand", "remind me to order tubes by end of month", {"title": "order tubes", "due": "2026-11-30"}),
    ("desk.errand", "by Friday, an errand for Ben: order the chains on Monday", {"title": "order the chains on Monday", "due": "2026-11-20", "assignee": "Ben"}),
    ("desk.errand", 'errand "measure the fork on Friday" for rider K-7', {"title": "measure the fork on Friday", "rider_id": "K-7"}),
    ("desk.errand", "errand: call rider K-7", {"title": "call rider K-7", "rider_id": "K-7"}),
    ("desk.errand", "errand: ring the supplier for rider K-7", {"title": "ring the supplier", "rider_id": "K-7"}),
    ("desk.errand", "someone needs to pick up the glue by 2027-02-11, make an errand", {"title": "pick up the glue", "due": "2027-02-11"}),
    ("desk.errand", "remind me to ring Jo on Friday about the fork", {"title": "ring Jo on Friday about the fork", "due": "2026-11-20"}),
    ("desk.errand", "remind me about the barbecue on Saturday", {"title": "the barbecue", "due": "2026-11-21"}),
    ("desk.errand", "errand: order glue by COB Friday", {"title": "order glue", "due": "2026-11-20"}),
    ("desk.errand", "create an errand", {}),
    ("desk.errand", "errand order spokes", {"title": "order spokes"}),
    ("desk.memo", "write down that the lathe is broken", {"text": "the lathe is broken"}),
    ("desk.memo", "memo for rider K-7: prefers mornings, pays $50 deposits", {"text": "prefers mornings, pays $50 deposits", "rider_id": "K-7"}),
    ("desk.memo", "memo: the code is 4417", {"text": "the code is 4417"}),
    ("desk.search", "search for gate code in the memos", {"query": "gate code"}),
    ("desk.search", "search memos for 'cancel all'", {"query": "cancel all"}),
    ("desk.search", "find the memo about the gate code?", {"query": "gate code"}),
    ("desk.sms", "text 0400 123 456: don't forget, we start at 7 tomorrow!", {"to": "+61400123456", "text": "don't forget, we start at 7 tomorrow!"}),
    ("desk.sms", 'text 0400 123 456 saying "See you on Monday, Hussein 🚲."', {"to": "+61400123456", "text": "See you on Monday, Hussein 🚲."}),
    ("desk.sms", "text 0400 123 456 saying ring me on 0411 222 333", {"to": "+61400123456", "text": "ring me on 0411 222 333"}),
    ("desk.sms", "text 0400 123 456 we'll be there at 8", {"to": "+61400123456", "text": "we'll be there at 8"}),
    ("desk.sms", "send 0400 123 456 a text: running late, sorry!", {"to": "+61400123456", "text": "running late, sorry!"}),
    ("desk.sms", "text 0400 123 456 running late", {"to": "+61400123456", "text": "running late"}),
    ("desk.sms", "saying 'thanks for today', text 0455 111 222", {"to": "+61455111222", "text": "thanks for today"}),
    ("desk.sms", "send a text saying ring me on 0411 222 333", {"text": "ring me on 0411 222 333"}),
    ("desk.sms", "send a text to 0400 123 456", {"to": "+61400123456"}),
    ("desk.mail", 'email zoe@example.com, subject "Fork", saying "It is in stock."', {"to": "zoe@example.com", "subject": "Fork", "body": "It is in stock."}),
    ("desk.mail", "email zoe@example.com about the fork saying it came in today", {"to": "zoe@example.com", "subject": "the fork", "body": "it came in today"}),
    ("desk.mail", "email zoe@example.com subject: New fork body: It came in.", {"to": "zoe@example.com", "subject": "New fork", "body": "It came in."}),
    ("desk.mail", "drop zoe@example.com an email", {"to": "zoe@example.com"}),
    ("repair.add_part", "put 3 tubes at $12 each on ticket R-12", {"repair_id": "R-12", "part": "tubes", "price": 12, "quantity": 3}),
    ("repair.add_part", "add part to repair R-12: brake cable, $8.50", {"repair_id": "R-12", "part": "brake cable", "price": 8.5}),
    ("repair.scrap", "scrap repair R-12 because the frame is cracked", {"repair_id": "R-12", "reason": "the frame is cracked"}),
    ("repair.scrap", "scrap repair R-12, reason: nobody came for it", {"repair_id": "R-12", "reason": "nobody came for it"}),
    ("repair.scrap", "scrap repair R-12, it was a duplicate", {"repair_id": "R-12", "reason": "it was a duplicate"}),
    ("repair.scrap", "scrap repair R-12 duplicate", {"repair_id": "R-12", "reason": "duplicate"}),
    ("repair.scrap", "scrap repair R-12 wrong customer", {"repair_id": "R-12", "reason": "wrong customer"}),
    ("repair.scrap", "scrap repair R-12 on Friday", {"repair_id": "R-12"}),
    ("repair.scrap", "scrap the repair because of rust", {"reason": "rust"}),
    ("repair.scrap", "scrap repair R-12, thanks", {"repair_id": "R-12"}),
    ("repair.scrap", "please scrap repair R-12", {"repair_id": "R-12"}),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "clause", "arguments"), TEXTS)
def test_free_text_is_what_was_meant_to_be_written(
    tool: str, clause: str, arguments: dict[str, Any]
) -> None:
    assert read(tool, clause) == arguments


def test_the_context_wins_over_the_words() -> None:
    assert read("repair.move", "move repair R-12 to ready", repair_id="R-99") == {
        "repair_id": "R-99",
        "stage": "ready",
    }


def test_text_in_the_context_is_read_as_words_are() -> None:
    arguments = read("bill.pay", "record it", bill_id="B-9", amount="$1,250")
    assert arguments == {"bill_id": "B-9", "amount": 1250}
    assert read("riders.find", "look", phone="0400 123 456") == {"phone": "+61400123456"}


@pytest.mark.parametrize("amount", ["lots", -5, None, [], {"usd": 5}])
def test_no_words_stand_in_for_a_context_value_that_does_not_fit(amount: Any) -> None:
    assert read("bill.pay", "record a payment of $500 on bill B-9", amount=amount) == {
        "bill_id": "B-9"
    }


def test_entries_of_the_context_that_are_no_arguments_stay_out() -> None:
    assert read("repair.scrap", "scrap repair R-12 duplicate", colour="red") == {
        "repair_id": "R-12",
        "reason": "duplicate",
    }


def test_a_skills_own_schema_is_filled_like_a_tools() -> None:
    skill = Skill(
        name="riders.welcome",
        description="Sign up and book",
        input_schema={
            "type": "object",
            "properties": {"name": kind("name"), "date": kind("date")},
            "required": ["name"],
        },
        steps=(SkillStep(id="add", tool="riders.add"),),
    )
    message = Message(text="welcome Sarah tomorrow", now=NOW)
    assert EXTRACTOR.arguments("welcome Sarah tomorrow", skill, message) == {
        "name": "Sarah",
        "date": "2026-11-17",
    }


def test_a_value_that_the_schema_refuses_is_left_out() -> None:
    assert read("repair.list", "show 0 repairs") == {}
    assert read("riders.add", "ring +12 3456") == {}
