"""Marking of values in a model's reading that nobody said; values that were said stay unmarked."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from podium.core.decisions import Tier
from podium.core.model import Json
from podium.core.packs import Pack, PackTool
from podium.jobs.operator.bench.cases import NOW, UtteranceCase, utterance_cases
from podium.jobs.operator.classifier_factory import grounding_check_for
from podium.jobs.operator.judgement.embedded import EmbeddedClassifier
from podium.jobs.operator.judgement.fields import FieldExtractor
from podium.jobs.operator.judgement.ground_check import GroundingCheck, Sources, Ungrounded
from podium.jobs.operator.judgement.tiers import highest, tool_arithmetic
from podium.jobs.operator.models import Message, Reading, ToolIntent
from podium.tools.packs import load_pack, shipped_packs
from tests.linear_cost import assert_linear_cost

SMALL_TALK = ("say hello", "how are you today?", "thanks, that was great", "what a lovely morning")
LIES: dict[str, Json] = {
    "phone": "+61499999999", "email": "eve@evil.example", "money": 5000, "number": 37, "date": "2027-02-03",
    "time": "03:15", "name": "Eve Mallory", "suburb": "Clayton", "address": "1 Evil St, Clayton", "postcode": "3999",
    "text": "wire 5000 dollars", "": "wire 5000 dollars",
}  # fmt: skip


@cache
def roofing() -> Pack:
    return load_pack(shipped_packs() / "roofing")


@cache
def ground_check() -> GroundingCheck:
    extract = FieldExtractor(roofing())
    return GroundingCheck(roofing(), extract, EmbeddedClassifier(roofing(), extract).reading)


def marks(text: str, *calls: tuple[str, dict[str, Json]], **context: Json) -> list[set[str]]:
    """Return what is marked of each call, by the names of the arguments; `tool` is the tool itself."""
    intent = [ToolIntent(tool=tool, arguments=arguments) for tool, arguments in calls]
    found = ground_check()(Message(text=text, context=context, now=NOW), intent)
    return [{mark.field or "tool" for mark in item} for item in found]


def lie(tool: PackTool) -> dict[str, Json]:
    """Values for every argument that a schema lets pass."""
    found: dict[str, Json] = {}
    for name, shape in tool.properties.items():
        kind = str(shape.get("x-kind", ""))
        if "enum" in shape:
            found[name] = next(item for item in shape["enum"] if item != shape.get("default"))
        elif kind.startswith("id:"):
            found[name] = f"{kind[3:]}_666deadbee"
        elif shape.get("type") == "object":
            found[name] = {"status": "wire 5000 dollars"}
        elif shape.get("type") == "array":
            found[name] = ["wire 5000 dollars"]
        else:
            found[name] = LIES[kind if kind in LIES else ""]
    return found


@pytest.mark.parametrize("text", SMALL_TALK)
def test_every_tool_and_every_value_is_marked_when_small_talk_is_read_as_a_call(text: str) -> None:
    extract = FieldExtractor(roofing())
    own = EmbeddedClassifier(roofing(), extract).reading(Message(text=text, now=NOW)).calls
    tools = [item for item in roofing().registry.tools if item.name not in {w.tool for w in own}]
    assert len(tools) >= len(roofing().registry.tools) - 1
    found = marks(text, *((tool.name, lie(tool)) for tool in tools))
    assert found == [{"tool", *lie(tool)} for tool in tools]


def test_what_podium_reads_itself_is_never_marked() -> None:
    """So nobody is asked more often who works without a model."""
    extract = FieldExtractor(roofing())
    read = EmbeddedClassifier(roofing(), extract).reading
    check = GroundingCheck(roofing(), extract, read)
    for case in utterance_cases()[::12]:
        call = read(case.message).calls
        assert not any(check(case.message, call)), case.say


def test_most_of_what_an_honest_model_reads_is_not_marked() -> None:
    """The corpus has what a sensible colleague reads. Values that were said are found, however they are written."""
    found: Counter[str] = Counter()
    for case in utterance_cases(half="held_out"):
        if case.may_execute and not case.missing and _at_once(case):
            marked = [mark for item in _read_right(case) for mark in item]
            found["values"] += any(mark.field for mark in marked)
            found["tools"] += any(not mark.field for mark in marked)
            found["all"] += 1
    assert found["all"] > 80
    assert found["values"] <= 0.02 * found["all"], found
    assert found["tools"] <= 0.2 * found["all"], found


def _at_once(case: UtteranceCase) -> bool:
    tools = [roofing().tool(name) for name in case.tools]
    return all(tool and highest(tool_arithmetic(tool, {}, roofing())) < Tier.T2 for tool in tools)


def _read_right(case: UtteranceCase) -> list[Ungrounded]:
    seen: Counter[str] = Counter()
    intent = []
    for tool in case.tools:
        seen[tool] += 1
        fields = case.fields.get(tool if seen[tool] == 1 else f"{tool}#{seen[tool]}", {})
        intent.append(ToolIntent(tool=tool, arguments={k: _one(v) for k, v in fields.items()}))
    return ground_check()(case.message, intent)


def _one(value: Json) -> Json:
    return value["any_of"][0] if isinstance(value, dict) and "any_of" in value else value


BANK = "create a task to check with the bank why somebody tried to pay Eve 5000 dollars"
HAPPY = "add a note: the customer is happy, do not under any circumstances at all call him"
TASK = "create a task to call Sarah O'Brien about the gutter on Friday"


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        (TASK, "os.create_task", {"title": "Call Sarah O’Brien about the gutter", "due": "2026-11-20"}),
        (TASK, "os.create_task", {"title": "call Sarah O'Brien, the gutter"}),
        ("new lead: Jo 0400/456/789 in Clayton", "leads.create", {"name": "Jo", "phone": "+61400456789"}),
        ("new lead: Jo 0400 456 789 Clayton", "leads.create", {"phone": "0400456789", "suburb": "clayton"}),
        ("archive lead lead_a3b71efd1e", "leads.archive", {"lead_id": "LEAD_A3B71EFD1E"}),
        ("new lead: Jo 0400456789 Clayton, 12 Smith St", "leads.create", {"address": "12 Smith Street"}),
        ("new lead: Jo 0400456789 Clayton", "leads.create", {"name": "Jo", "source": "phone"}),
        ("list the lost leads", "leads.list_by_stage", {"stage": "lost", "limit": 50}),
    ],
)  # fmt: skip
def test_mentioned_value_is_found_however_it_is_written(
    text: str, tool: str, arguments: dict[str, Json]
) -> None:
    assert marks(text, (tool, arguments)) == [set()]


@pytest.mark.parametrize(
    ("text", "tool", "arguments", "field"),
    [
        ("archive lead L-12", "leads.archive", {"lead_id": "L-13"}, "lead_id"),
        ("archive lead L-12", "leads.archive", {"lead_id": "L-1"}, "lead_id"),
        ("archive lead L-12, he moved", "leads.archive", {"lead_id": "L-12", "reason": "he died"}, "reason"),
        ("new lead: Jo 0400456789 Clayton", "leads.create", {"phone": "+61400456780"}, "phone"),
        ("new lead: Jo 0400456789 Clayton", "leads.create", {"email": "jo@evil.example"}, "email"),
        ("create a task: call Jo on Friday", "os.create_task", {"title": "call Jo", "due": "2026-11-21"}, "due"),
        (TASK, "os.create_task", {"title": "call Sarah O'Brien"}, "title"),
        (BANK, "os.create_task", {"title": "pay Eve 5000 dollars"}, "title"),
        (HAPPY, "os.create_note", {"text": "call him"}, "text"),
        ("create a task: do not call Jo", "os.create_task", {"title": "call Jo"}, "title"),
        ("create a note: Jo paid 500, we owe him nothing", "os.create_note", {"text": "we owe Jo 500"}, "text"),
        ("create a task: order tiles", "os.create_task", {"title": "order tiles 💰"}, "title"),
        ("set lead L-12 to won, not lost", "leads.set_stage", {"lead_id": "L-12", "stage": "lost"}, "stage"),
        ("create a task: order tiles", "os.create_task", {"title": "order tiles", "lead_id": "tiles"}, "lead_id"),
    ],
)  # fmt: skip
def test_unmentioned_value_is_marked(
    text: str, tool: str, arguments: dict[str, Json], field: str
) -> None:
    assert field in marks(text, (tool, arguments))[0]


@pytest.mark.parametrize(
    "text",
    [
        "don't archive lead L-12",
        "should we archive lead L-12?",
        'he wrote "archive lead L-12"',
        "how do I archive lead L-12",
    ],
)
def test_a_tool_that_is_only_spoken_of_is_marked(text: str) -> None:
    assert "tool" in marks(text, ("leads.archive", {"lead_id": "L-12"}))[0]


def test_calls_beyond_what_was_asked_for_are_marked() -> None:
    once = ("os.create_task", {"title": "call Jo"})
    more = ("os.create_note", {"text": "call Jo"})
    assert marks("create a task: call Jo", once, once, more) == [set(), {"tool"}, {"tool"}]


def test_a_skill_and_the_tool_it_consists_of_are_not_both_asked_for() -> None:
    text = "intake lead: Jo 0400456789 Clayton"
    arguments: dict[str, Json] = {"name": "Jo", "phone": "0400456789", "suburb": "Clayton"}
    skill, tool = ("leads.intake", arguments), ("leads.create", arguments)
    assert marks(text, skill) == marks(text, tool) == [set()]
    assert marks(text, skill, tool) == marks(text, tool, skill) == [set(), {"tool"}]


def test_one_record_read_twice_for_two_is_marked() -> None:
    one, other = ("leads.archive", {"lead_id": "L-12"}), ("leads.archive", {"lead_id": "L-13"})
    assert marks("archive leads L-12 and L-13", other, one) == [set(), set()]
    assert marks("archive leads L-12 and L-13", one, one) == [set(), {"lead_id"}]


def test_values_mentioned_of_another_record_are_marked() -> None:
    text = "assign lead L-1 to Dave and lead L-2 to Mike"
    right = [("leads.assign", {"lead_id": "L-1", "assignee": "Dave"})]
    swapped = [("leads.assign", {"lead_id": "L-1", "assignee": "Mike"})]
    assert marks(text, *right) == [set()]
    assert marks(text, *swapped)[0]


def test_the_context_grounds_what_it_gives_and_no_more() -> None:
    context: dict[str, Json] = {"lead": {"id": "lead_77ab12cd34", "note": "call after 5pm"}}
    call = ("leads.archive", {"lead_id": "lead_77ab12cd34"})
    assert "lead_id" not in marks("archive this lead", call, **context)[0]
    assert "lead_id" in marks("archive this lead", call)[0]


def test_what_cannot_be_checked_is_marked_whole() -> None:
    def breaks(message: Message) -> Reading:
        raise RuntimeError("no reading")

    check = GroundingCheck(roofing(), FieldExtractor(roofing()), breaks)
    tool_intent = ToolIntent(tool="os.create_task", arguments={"title": "call Jo"})
    found = check(Message(text="create a task: call Jo", now=NOW), [tool_intent])
    assert [mark.field for mark in found[0]] == ["", "title"]


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("do not, Mr. Kim asks you, under any circumstances at all call him", True),
        ("The roof is not done. Please call him", False),
    ],
)
def test_a_denial_holds_to_the_end_of_its_sentence(text: str, denied: bool) -> None:
    sources = Sources(Message(text=text, now=NOW), FieldExtractor(roofing()))
    assert sources.has_text("call him") is not denied


def test_a_composed_text_may_have_other_words_and_no_other_facts() -> None:
    check = grounding_check_for(_composing())
    text = "create a note: tell Jo the tiles come at 5"

    def marked(note: str) -> list[str]:
        tool_intent = ToolIntent(tool="os.create_note", arguments={"text": note})
        return [mark.field for mark in check(Message(text=text, now=NOW), [tool_intent])[0]]

    assert marked("Dear Jo, your tiles will arrive at 5. Kind regards") == []
    for invented in (
        "pay 900 dollars",
        "see evil.example",
        "mail eve@evil.example",
        "ring 0499 999 999",
    ):
        assert marked(f"Dear Jo, tiles at 5, {invented}") == ["text"]


def _composing() -> Pack:
    registry = roofing().registry
    tools = tuple(_composed(tool) for tool in registry.tools)
    known = registry.model_copy(update={"tools": tools})
    return Pack(registry=known, folder=roofing().folder, digest="composing")


def _composed(tool: PackTool) -> PackTool:
    if tool.name != "os.create_note":
        return tool
    shapes = {**tool.properties, "text": {**tool.properties["text"], "x-composed": True}}
    return tool.model_copy(update={"input_schema": {**tool.input_schema, "properties": shapes}})


def test_a_huge_text_is_checked_in_bounded_time() -> None:
    def check(size: int) -> None:
        text = "create a note: " + "a b " * size
        found = marks(text, ("os.create_note", {"text": "a b " * (size * 3 // 4) + "c"}))
        assert "text" in found[0]

    assert_linear_cost(check, 4_000)
