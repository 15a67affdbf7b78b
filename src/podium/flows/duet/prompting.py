"""What the two sides of a duet are told. A turn's id stands in these words in pieces only."""

from __future__ import annotations

from podium.domain.messages import SECTIONS, TAG, Awaited, Message, Side, block_of

NUDGE = "If you are finished, emit the tagged block now."


def primer(side: Side, *, on_screen: bool) -> str:
    """What a side is told once, when its conversation begins. `on_screen`: its words are read off a screen."""
    part = _PLANNER if side == "PLANNER" else _EXECUTER
    return "\n\n".join((part, _form_of(_OWN_TYPE[side], on_screen), _MANNERS))


def task_words(text: str, awaited: Awaited, *, on_screen: bool) -> str:
    """A person's task, for the planner."""
    return "\n\n".join(
        (
            f"TASK_ID={awaited.task}",
            f"What the user asks for:\n{text}",
            f"Plan it for EXECUTER and emit exactly one `plan` block. {_id_line(awaited)}",
            _form_of("plan", on_screen),
        )
    )


def plan_words(plan: Message, awaited: Awaited, *, on_screen: bool) -> str:
    """A plan, for the executer."""
    return "\n\n".join(
        (
            f"PLANNER sends you this plan for task {awaited.task}:",
            block_of(plan),
            "Carry it out. Then emit one `result` block for PLANNER: what was done, what was found, what is open. "
            f"{_id_line(awaited)}",
            _form_of("result", on_screen),
        )
    )


def result_words(result: Message, awaited: Awaited, *, on_screen: bool, may_go_on: bool) -> str:
    """A result, for the planner: it reports to the user, or plans the next round."""
    closing = (
        "write a short final report for the user as a `report` block"
        if on_screen
        else "write a short final report for the user, as plain words and without any POLI block"
    )
    choice = (
        f"If the task is done, or cannot be done, {closing}. If EXECUTER has to do more, emit one new `plan` block "
        "instead, and nothing else."
        if may_go_on
        else f"No further round is left: {closing}. Say plainly what is not done."
    )
    forms = [*(["report"] if on_screen else []), *(["plan"] if may_go_on else [])]
    return "\n\n".join(
        (
            f"EXECUTER answers to task {awaited.task}:",
            block_of(result),
            f"{choice} {_id_line(awaited)}",
            *(_form_of(each, on_screen) for each in forms),
        )
    )


def answer_words(said: str, awaited: Awaited, *, on_screen: bool) -> str:
    """What a person said to a blocker."""
    wanted = awaited.types[0]
    return "\n\n".join(
        (
            f"The user answers to what blocked you in task {awaited.task}:",
            said or "Go on as you think best.",
            f"Go on, and emit one `{wanted}` block when you are finished. {_id_line(awaited)}",
            _form_of(wanted, on_screen),
        )
    )


def nudge_words(why: str, awaited: Awaited, *, on_screen: bool) -> str:
    """A reminder after a turn that brought no message."""
    wanted = awaited.types[0]
    return "\n\n".join(
        (
            f"Your turn ended without the `{wanted}` block of task {awaited.task}: {why}.",
            f"{NUDGE} {_id_line(awaited)}",
            _form_of(wanted, on_screen),
        )
    )


def _id_line(awaited: Awaited) -> str:
    """Names the id so that no copy of these words holds it."""
    half = len(awaited.nonce) // 2
    one, other = awaited.nonce[:half], awaited.nonce[half:]
    return f'The block\'s id is made of these pieces:\nID = "{awaited.task}" + "-" + "{one}" + "{other}"'


def _form_of(kind: str, on_screen: bool) -> str:
    section = SECTIONS[kind]
    header = f'[[{TAG} {{"to":"{_TO[kind]}","type":"{kind}","id":"<ID>"}}]]'
    block = f"{header}\n<{section}>\n…\n</{section}>\n[[/{TAG}]]"
    if not on_screen:
        return block
    return f"Put the whole block into a code fence, so that nothing in it is rendered:\n```text\n{block}\n```"


_TO = {"plan": "EXECUTER", "result": "PLANNER", "report": "USER"}
_OWN_TYPE: dict[Side, str] = {"PLANNER": "plan", "EXECUTER": "result"}

_PLANNER = (
    "You are PLANNER. You work with EXECUTER, another agent, through messages that a program carries between you. "
    "You get tasks of a user, think them through and plan them step by step; EXECUTER does the work. "
    "When a plan is ready, emit one tagged block, in which <ID> is the id that the task's own message names:"
)
_EXECUTER = (
    "You are EXECUTER. You work with PLANNER, another agent, through messages that a program carries between you. "
    "You get plans and carry them out. When you are finished, emit one tagged block, in which <ID> is the id that "
    "the plan's own message names:"
)
_MANNERS = (
    "Tags stand on lines of their own, to the letter. You may tell of progress meanwhile by blocks of type `status`, and "
    "when only the user can help, emit a block of type `blocker` for USER that says what you need, both with the same id. "
    "After the final block say nothing more and wait for the next message. Now answer with the word READY and wait."
)
