"""Questions about values left over, shared, below zero or not asked for, and none about what only looks like it."""

from __future__ import annotations

import pytest

from podium.jobs.operator.bench.cases import NOW
from podium.jobs.operator.judgement.caution import look_again
from podium.jobs.operator.models import Intent, Message, Reading, ToolIntent
from tests.unit.operator.judgement.caution_harness import again, question, roofing, tool_intent
from tests.unit.operator.judgement.dental_clinic import PACK as DENTAL
from tests.unit.operator.judgement.dental_clinic import read

PHONE = "+61400123456"


def test_a_reading_that_acts_on_nothing_is_left_as_it_is() -> None:
    for intent in (Intent.CLARIFY, Intent.REFUSE):
        reading = Reading(intent=intent, question="Which?", calls=(tool_intent("leads.archive"),))
        message = Message(text="maybe archive lead abc123", now=NOW)
        assert look_again(reading, message, roofing(), ()) is reading


def test_doubtful_reading_has_no_requests_and_one_question() -> None:
    reading = again("archive abc123 and abc124", tool_intent("leads.archive", lead_id="abc123"))
    assert reading.intent is Intent.CLARIFY
    assert reading.calls == ()
    assert reading.candidates == ("leads.archive",)
    assert reading.question == "What about abc124?"
    assert reading.confidence <= 0.5


@pytest.mark.parametrize(
    ("text", "only", "rest"),
    [
        ("assign abc123 to Dave and abc124 to Mike", tool_intent("leads.assign", lead_id="abc123", assignee="Dave"), "abc124"),
        ("new lead Ann 0400111222 in Clayton, and one for Bob 0400333444 in Berwick",
         tool_intent("leads.create", name="Ann", phone="+61400111222", suburb="Clayton"), "0400333444"),
        ("record $100 on INV-9 and $200 on INV-10",
         tool_intent("invoice.record_payment", invoice_id="INV-9", amount=100), "$200 and INV-10"),
        ("sms 0400123456, 0400123457: we are late", tool_intent("sms.send", to=PHONE, text="we are late"), "0400123457"),
        ("text 0400123456 hello and 0400123457 bye",
         tool_intent("sms.send", to="+61400123457", text="0400123456 hello bye"), "0400123456"),
        ("email a@example.com and b@example.com subject Hi body Hello",
         tool_intent("email.send", to="a@example.com", subject="Hi", body="Hello"), "b@example.com"),
        ('add a note to lead abc123 "called" and a task "call back"',
         tool_intent("os.create_note", text="called", lead_id="abc123"), '"call back"'),
        ("quote lead abc123 $5000 for reroofing", tool_intent("quote.create", lead_id="abc123"), "$5000"),
        ("finalize quote Q-9 on Friday", tool_intent("quote.finalize", quote_id="Q-9"), "Friday"),
        ("book an inspection for abc123 tomorrow at 25:99",
         tool_intent("inspection.schedule", lead_id="abc123", date="2026-11-17"), "25:99"),
        ("note on abc123: hot", tool_intent("os.create_note", text="hot"), "abc123"),
    ],
)  # fmt: skip
def test_text_no_request_took_is_asked_about(text: str, only: ToolIntent, rest: str) -> None:
    assert question(text, only) == f"What about {rest}?"


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("mark lead abc123 as won. Yes, abc123.", [tool_intent("leads.set_stage", lead_id="abc123", stage="won")]),
        ("text 0400123456: call 0400999888 about Q-88 on Friday at 9, it is $500",
         [tool_intent("sms.send", to=PHONE, text="call 0400999888 about Q-88 on Friday at 9, it is $500")]),
        ("add a note to lead abc123: paid  $500\ton Q-88",
         [tool_intent("os.create_note", lead_id="abc123", text="paid $500 on Q-88")]),
        ("revenue from 2026-01-01 to 2026-03-31",
         [tool_intent("os.revenue_report", **{"from": "2026-01-01", "to": "2026-03-31"})]),
        ("new lead Ann 0400123456, 5 Hill Rd Clayton 3168",
         [tool_intent("leads.create", name="Ann", phone=PHONE, suburb="Clayton", address="5 Hill Rd Clayton 3168")]),
        ("we finished job J-77 yesterday at 3pm", [tool_intent("job.complete", job_id="J-77")]),
        ("move the inspection for lead abc123 from Monday to Tuesday",
         [tool_intent("inspection.schedule", lead_id="abc123", date="2026-11-17")]),
        ("FINALIZE QUOTE q-88", [tool_intent("quote.finalize", quote_id="Q-88")]),
        ('search notes for "ridge capping"', [tool_intent("os.search_notes", query="ridge capping")]),
    ],
)  # fmt: skip
def test_values_inside_of_texts_and_harmless_repeats_are_not_left_over(
    text: str, intent: list[ToolIntent]
) -> None:
    assert question(text, *intent) == ""


@pytest.mark.parametrize("item", ["each", "ea", "apiece"])
def test_price_per_item_is_asked_about_when_no_quantity_was_taken(item: str) -> None:
    text = f"add a line to quote Q-88: replace 12 ridge caps at $85 {item}"
    line = {"quote_id": "Q-88", "description": "replace 12 ridge caps", "unit_price": 85}
    assert question(text, tool_intent("quote.add_line", **line)).startswith("How many: 12?")
    assert question(text, tool_intent("quote.add_line", **line, quantity=12)) == ""
    alone = "add a line to quote Q-88: ridge caps at $85 each"
    assert (
        question(alone, tool_intent("quote.add_line", **{**line, "description": "ridge caps"}))
        == ""
    )


def test_several_things_that_became_one_request_are_asked_about() -> None:
    title = "call Bob, order tiles"
    assert "several tasks" in question(
        f"create tasks: {title}", tool_intent("os.create_task", title=title)
    )
    assert question(f"create a task: {title}", tool_intent("os.create_task", title=title)) == ""


def test_value_mentioned_once_is_not_used_twice_when_there_is_another() -> None:
    both = [
        tool_intent("leads.update", lead_id=item, phone="+61411222333")
        for item in ("abc123", "abc124")
    ]
    text = "update lead abc123 phone 0411222333 and lead abc124 phone 0411222444"
    assert question(text, *both) == "Which of them gets +61411222333, and which 0411222444?"
    won = [
        tool_intent("leads.set_stage", lead_id=item, stage="won") for item in ("abc123", "abc124")
    ]
    text = "set lead abc123 to won and lead abc124 to lost"
    assert question(text, *won) == "Which of them gets won, and which lost?"
    assert question("set leads abc123 and abc124 to won", *won) == ""


def test_one_of_two_is_not_both() -> None:
    both = [tool_intent("leads.archive", lead_id=text) for text in ("abc123", "abc124")]
    assert "abc123 or abc124" in question("archive lead abc123 or abc124", *both)
    assert question("archive leads abc123 and abc124", *both) == ""
    dave = tool_intent("leads.assign", lead_id="abc123", assignee="Dave")
    assert "Dave or Mike" in question("assign lead abc123 to Dave or Mike", dave)
    note = tool_intent("os.create_note", text="Dave or Mike will call")
    assert question("note: Dave or Mike will call", note) == ""


def test_what_is_undone_in_the_same_breath_is_asked_about() -> None:
    ends = (
        tool_intent("leads.restore", lead_id="abc123"),
        tool_intent("leads.archive", lead_id="abc123"),
    )
    assert "undoes the other" in question("restore lead abc123 and archive it", *ends)
    others = (
        tool_intent("leads.restore", lead_id="abc123"),
        tool_intent("leads.archive", lead_id="abc124"),
    )
    assert question("restore lead abc123 and archive lead abc124", *others) == ""


@pytest.mark.parametrize(
    "sum_", ["minus 500 dollars", "-$500", "-500", "negative $500", "$1e9", "$0.001"]
)
def test_a_sum_that_is_none_is_asked_about(sum_: str) -> None:
    billed = tool_intent("invoice.create", job_id="J-77", amount=500)
    assert question(f"invoice job J-77 for {sum_}", billed) != ""


def test_a_dash_before_a_sum_is_no_minus() -> None:
    line = tool_intent(
        "quote.add_line", quote_id="Q-9", description="ridge capping", unit_price=500
    )
    assert question("add a line to quote Q-9: ridge capping - $500", line) == ""
    note = tool_intent("os.create_note", text="it was -5 degrees")
    assert question("note: it was -5 degrees", note) == ""


@pytest.mark.parametrize(
    ("text", "intent", "unasked"),
    [
        ("archive invoice INV-9", [tool_intent("invoice.void", invoice_id="INV-9", reason="archive")], "invoice.void"),
        ("invoice J-77", [tool_intent("email.send_invoice", invoice_id="J-77")], "email.send_invoice"),
        ("finalize quote Q-9 today",
         [tool_intent("quote.finalize", quote_id="Q-9"), tool_intent("quote.accept", quote_id="Q-9")], "quote.accept"),
        ("complete job J-77 and invoice it", [tool_intent("job.close_out", job_id="J-77")], "email.send_invoice"),
    ],
)  # fmt: skip
def test_an_act_that_needs_an_approval_and_no_word_asks_for_is_asked_about(
    text: str, intent: list[ToolIntent], unasked: str
) -> None:
    assert f"should {unasked} be done" in question(text, *intent)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("void invoice INV-9 because duplicate", tool_intent("invoice.void", invoice_id="INV-9", reason="duplicate")),
        ("viod invoice INV-9 because duplicate", tool_intent("invoice.void", invoice_id="INV-9", reason="duplicate")),
        ("invoice.void INV-9 because duplicate", tool_intent("invoice.void", invoice_id="INV-9", reason="duplicate")),
        ("job J-77 is off, no money", tool_intent("job.cancel", job_id="J-77", reason="no money")),
        ("sms 0400123456: running late", tool_intent("sms.send", to=PHONE, text="running late")),
        ("close out job J-77", tool_intent("job.close_out", job_id="J-77")),
        ("complete job J-77, invoice it and email the invoice", tool_intent("job.close_out", job_id="J-77")),
        ("trash snapshot snap_11", tool_intent("os.remove_snapshot", snapshot_id="snap_11")),
    ],
)  # fmt: skip
def test_what_the_registry_has_words_for_is_asked_for(text: str, meant: ToolIntent) -> None:
    assert question(text, meant) == ""


def test_a_text_that_is_the_request_itself_is_no_text() -> None:
    text = "I want to make a note"
    assert question(text, tool_intent("os.create_note", text=text)) == "What is the text?"


def test_any_pack_is_looked_at_in_the_same_way() -> None:
    void = tool_intent("bill.void", bill_id="B-9")
    assert question("void bill B-9 and B-10", void, pack=DENTAL) == "What about B-10?"
    assert "bill.void" in question("archive bill B-9", void, pack=DENTAL)
    assert question("void bill B-9", void, pack=DENTAL) == ""


def test_the_embedded_classifier_looks_again() -> None:
    assert read("void bill B-9").intent is Intent.EXECUTE
    assert "Is it decided?" in read("maybe void bill B-9").question


def test_a_message_of_hostile_length_is_looked_at_all_the_same() -> None:
    text = "archive lead abc123 " + "note: 'ne maybe \"tasks: archived - on " * 500
    assert again(text, tool_intent("leads.archive", lead_id="abc123")).intent is Intent.CLARIFY
