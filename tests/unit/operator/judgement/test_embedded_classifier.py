"""The embedded classifier on a registry it has never seen: a dentist's desk."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.jobs.operator.models import Intent, Message, Urgency
from podium.jobs.operator.ports import Classifier
from tests.soaking import examples
from tests.unit.operator.judgement.dental_clinic import CLASSIFIER, NOW, PACK, read, tools


@pytest.mark.parametrize(
    ("message_of", "meant"),
    [
        ("new patient Anna Berg 0400 111 222", "patient.register"),
        ("sign up Tom Hale as a patient, 0400 333 444", "patient.register"),
        ("look up patient Anna Berg", "patient.find"),
        ("discharge patient P-12", "patient.discharge"),
        ("book patient P-12 in for Friday", "visit.book"),
        ("schedule a check-up for patient P-12 on 3 December", "visit.book"),
        ("call off appointment V-3", "visit.cancel"),
        ("visit V-3 is finished", "visit.complete"),
        ("show today's appointments", "visit.list"),
        ("which visits were missed?", "visit.list"),
        ("upcoming appointments", "visit.list"),
        ("bill visit V-3", "bill.create"),
        ("void bill B-9", "bill.void"),
        ("whats owed on bill B-9?", "bill.show"),
        ("who owes us?", "bill.list"),
        ("text 0400 111 222 that we run late", "desk.message"),
        ("memo: order gloves", "desk.memo"),
        ("remember that the drill is broken", "desk.memo"),
        ("could you please cancel visit V-3? thank you so much", "visit.cancel"),
        ("wrap up visit V-3", "visit.wrap_up"),
        ("all visits of today", "visit.list"),
        ("morning all, could someone cancel visit V-3?", "visit.cancel"),
        ("don't forget to cancel visit V-3", "visit.cancel"),
    ],
)
def test_a_registry_it_has_never_seen_is_understood(message_of: str, meant: str) -> None:
    assert tools(message_of) == [meant]


@pytest.mark.parametrize(
    ("message_of", "meant"),
    [
        ("nwe patinet Anna Berg 0400 111 222", "patient.register"),
        ("cancle vist V-3", "visit.cancel"),
        ("shcedule a chekc-up for patient P-12 tomorrow", "visit.book"),
        ("CANCEL VISIT V-3", "visit.cancel"),
        ("ｃａｎｃｅｌ visit V-3", "visit.cancel"),
        ("can\u200bcel visit V-3", "visit.cancel"),
    ],
)
def test_typing_errors_and_odd_characters_do_not_matter(message_of: str, meant: str) -> None:
    assert tools(message_of) == [meant]


def test_several_requests_come_in_the_order_given() -> None:
    message_of = "cancel visit V-3 and text 0400 111 222 saying sorry; then show the unpaid bills"
    assert tools(message_of) == ["visit.cancel", "desk.message", "bill.list"]
    assert tools("show today's visits and the unpaid bills") == ["visit.list", "bill.list"]


def test_skill_represents_the_combination_of_its_tools() -> None:
    reading = read("complete visit V-3 and bill it")
    assert [tool_intent.tool for tool_intent in reading.calls] == ["visit.wrap_up"]
    assert reading.calls[0].arguments == {"visit_id": "V-3"}


def test_a_skill_is_not_taken_when_part_of_it_is_forbidden() -> None:
    assert tools("complete visit V-3 but don't bill it") == ["visit.complete"]


def test_it_means_the_thing_of_the_clause_before() -> None:
    reading = read("complete visit V-3, then cancel it")
    assert [tool_intent.arguments for tool_intent in reading.calls] == [{"visit_id": "V-3"}] * 2


def test_several_ids_are_as_many_requests() -> None:
    reading = read("cancel visits V-3, V-4 and V-5")
    assert [tool_intent.arguments["visit_id"] for tool_intent in reading.calls] == [
        "V-3",
        "V-4",
        "V-5",
    ]
    assert {tool_intent.tool for tool_intent in reading.calls} == {"visit.cancel"}


def test_what_is_written_down_is_not_done() -> None:
    assert tools("memo: void bill B-9 and cancel visit V-3") == ["desk.memo"]
    assert tools('text 0400 111 222 "void bill B-9"') == ["desk.message"]


def test_the_name_of_a_tool_in_a_text_is_text() -> None:
    assert tools("memo: bill.void B-9 is slow") == ["desk.memo"]
    assert tools("text 0400 111 222 saying bill.void B-9") == ["desk.message"]


def test_two_names_of_tools_in_one_breath_are_asked_back() -> None:
    reading = read("bill.void B-9 visit.cancel V-3")
    assert reading.intent is Intent.CLARIFY
    assert reading.candidates == ("bill.void", "visit.cancel")


def test_him_is_the_one_before_and_somebody_else_is_not() -> None:
    first = "new patient Anna Berg 0400 111 222 and text "
    assert read(first + "her saying welcome").calls[1].arguments["phone"] == "+61400111222"
    assert "phone" not in read(first + "Bob Stone saying welcome").calls[1].arguments


def test_more_parts_than_anybody_can_check_are_refused() -> None:
    many = "; ".join(f"cancel visit V-{number}" for number in range(100))
    assert read(many).intent is Intent.REFUSE


@pytest.mark.parametrize(
    "message_of",
    [
        "don't void bill B-9",
        "dont void bill B-9",
        "do not under any circumstances void bill B-9",
        "please never discharge patient P-12",
        "no need to cancel visit V-3",
        "hold off on cancelling visit V-3",
        "I don't think we should void bill B-9",
        "void bill B-9. Actually no, don't.",
        "void bill B-9, but don't do it yet",
        "visit V-3 isn't finished",
        "nobody should void bill B-9",
        "leave bill B-9 alone, don't void it",
        "it would be wrong to void bill B-9",
        "forget about cancelling visit V-3",
        "void bill B-9 not B-10",
    ],
)
def test_what_is_forbidden_in_the_message_is_not_done(message_of: str) -> None:
    assert read(message_of).intent is not Intent.EXECUTE


def test_a_denial_in_the_words_of_the_registry_is_no_ban() -> None:
    assert tools("bill B-9 should never have gone out") == ["bill.void"]
    assert tools("bill B-9 should have gone out") == []


@pytest.mark.parametrize(
    "message_of",
    [
        "how do I void a bill?",
        "how can we cancel visit V-3",
        "should I cancel visit V-3?",
        "what happens if I void bill B-9?",
        "what does bill.void do?",
        "is it possible to discharge patient P-12?",
        "did somebody void bill B-9?",
        "void bill B-9?",
        "can I discharge patient P-12?",
        "can bills be voided?",
        "can I get into trouble for voiding bill B-9?",
        "who decides whether bill B-9 is voided?",
    ],
)
def test_a_question_about_an_act_is_no_request(message_of: str) -> None:
    assert read(message_of).intent is not Intent.EXECUTE


@pytest.mark.parametrize(
    "message_of",
    [
        "if she calls cancel visit V-3",
        "unless they pay, void bill B-9",
        "imagine you voided bill B-9",
        "when the doctor is back discharge patient P-12",
        "the doctor said to void bill B-9",
        "the letter says: cancel visit V-3",
        'he wrote "void bill B-9"',
    ],
)
def test_suppositions_conditions_and_reports_are_no_requests(message_of: str) -> None:
    assert read(message_of).intent is not Intent.EXECUTE


@pytest.mark.parametrize(
    "message_of", ["order a pizza", "what is the weather", "play music", "hello", "?!"]
)
def test_what_no_tool_does_is_refused(message_of: str) -> None:
    assert read(message_of).intent is Intent.REFUSE


def test_a_tool_named_by_itself_is_exact_and_one_that_is_not_there_is_refused() -> None:
    assert tools("bill.void B-9") == ["bill.void"]
    assert read("bill.void B-9").calls[0].arguments == {"bill_id": "B-9"}
    refused = read("bill.explode B-9")
    assert refused.intent is Intent.REFUSE
    assert "bill.explode" in refused.reasoning
    assert read("run teeth.pull P-12").intent is Intent.REFUSE


def test_an_address_on_the_web_is_no_tool() -> None:
    assert tools("memo: look at dentist.example.com") == ["desk.memo"]


@pytest.mark.parametrize(
    "message_of", ["deal with patient P-12", "cancel it", "do something about bill B-9"]
)
def test_words_that_leave_the_act_open_are_asked_back(message_of: str) -> None:
    reading = read(message_of)
    assert reading.intent is Intent.CLARIFY
    assert reading.question.endswith("?")
    assert 1 <= len(reading.candidates) <= 3
    assert all(name in reading.question for name in reading.candidates)


def test_one_part_that_fits_no_tool_holds_up_the_whole() -> None:
    reading = read("cancel visit V-3 and order a pizza")
    assert reading.intent is Intent.CLARIFY
    assert "order a pizza" in reading.reasoning


def test_no_part_is_left_out_in_silence() -> None:
    message_of = "cancel visit V-3 and let 0400 111 222 know by text that it is off"
    assert tools(message_of) in ([], ["visit.cancel", "desk.message"])


def test_values_given_by_the_context_count_as_mentioned() -> None:
    assert tools("cancel it", visit_id="V-3") == ["visit.cancel"]


def test_domain_is_that_of_the_first_request() -> None:
    assert read("void bill B-9").domain == "billing"
    assert read("cancel visit V-3 and text 0400 111 222 saying sorry").domain == "visit"


@pytest.mark.parametrize(
    ("message_of", "urgency"),
    [
        ("cancel visit V-3", Urgency.NORMAL),
        ("urgent: cancel visit V-3", Urgency.HIGH),
        ("cancel visit V-3 asap", Urgency.HIGH),
        ("emergency, book patient P-12 today", Urgency.CRITICAL),
        ("cancel visit V-3, not urgent", Urgency.LOW),
        ("cancel visit V-3 whenever you get a chance", Urgency.LOW),
    ],
)
def test_urgency_is_read_from_the_words(message_of: str, urgency: Urgency) -> None:
    assert read(message_of).urgency is urgency


def test_courtesy_and_urgency_are_no_bans() -> None:
    assert tools("cancel visit V-3, not urgent, if you don't mind") == ["visit.cancel"]


async def test_it_is_a_classifier_and_reads_the_same_in_the_same_way() -> None:
    classifier: Classifier = CLASSIFIER
    message = Message(text="void bill B-9 and text 0400 111 222 saying done", now=NOW)
    assert classifier.name == "embedded"
    assert await classifier.read(message) == await classifier.read(message)


_PIECES = (
    "void cancel don't not bill visit patient B-9 V-3 P-12 and then ; . ? : , \" ' to that it all if how"
    " \u200b \u202e 🦷 ： ０４００ 0400111222 bill.void a.b @ $ -- 'DROP memo text book ' \n \t \x00 \ud83d"
)
_OUTPUT = st.lists(st.sampled_from(_PIECES.split(" ")), max_size=40).map(" ".join)


@given(st.one_of(st.text(max_size=200), _OUTPUT))
@settings(max_examples=examples(300), deadline=None)
def test_any_message_yields_a_reading_that_names_tools_of_the_pack(text: str) -> None:
    reading = CLASSIFIER.reading(Message.model_construct(text=text, context={}, now=NOW))
    known = {tool.name for tool in PACK.registry.tools} | {
        skill.name for skill in PACK.registry.skills
    }
    assert {tool_intent.tool for tool_intent in reading.calls} | set(reading.candidates) <= known
    assert bool(reading.calls) == (reading.intent is Intent.EXECUTE)
    assert bool(reading.question) == (reading.intent is Intent.CLARIFY)


@given(st.sampled_from(["void bill B-9", "discharge patient P-12", "cancel visit V-3"]), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_no_ban_in_front_of_an_act_lets_it_through(act: str, data: st.DataObject) -> None:
    before = data.draw(st.sampled_from(["", "please ", "hey, ", "and ", "ok so "]))
    ban = data.draw(
        st.sampled_from(["don't ", "do not ", "never ", "DON’T ", "dont ever ", "do nto "])
    )
    behind = data.draw(st.sampled_from(["", " please", "!", ", thanks", " today"]))
    assert read(before + ban + act + behind).intent is not Intent.EXECUTE
