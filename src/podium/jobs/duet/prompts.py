"""Prompts for both sides of a duet. No block in them carries the id of the turn.

Where replies are read off a screen the id is split, so that nothing a screen echoes contains it.
"""

from __future__ import annotations

from podium.core.turns import SECTIONS, TAG, AwaitedMessage, MessageBlock, Side, section_of

NUDGE = "If you are finished, emit the tagged block now."


def primer(side: Side, *, on_screen: bool) -> str:
    """Build the first prompt of a program, before any task. `on_screen`: its output is read off a screen."""
    form = _form_of(_OWN_TYPE[side], on_screen)
    asked = "When you are finished, emit one tagged block, in which <ID> is the id that the message to you names:"
    return "\n\n".join((role_prompt(side), f"{asked}\n{form}", _MANNERS, _READY))


def role_prompt(side: Side, *, has_tools: bool = True) -> str:
    """Describe the role of a side, and its permissions."""
    part, acts, has_none = _PARTS[side]
    return f"{part}\n\n{f'{acts} {_APPROVALS}' if has_tools else has_none}"


def first_prompt(side: Side, prompt: str, *, has_tools: bool) -> str:
    """Build the first prompt of a conversation without primer."""
    return "\n\n".join((role_prompt(side, has_tools=has_tools), _MANNERS, prompt))


def task_prompt(text: str, awaited: AwaitedMessage, *, on_screen: bool) -> str:
    """Build the planner's prompt for a task."""
    return "\n\n".join(
        (
            f"The user's request:\n{text}",
            "Plan it for EXECUTER and emit exactly one `plan` block: the steps, and how to verify that they are done. "
            'If EXECUTER has nothing to do, emit a block with "to":"USER","type":"report" and <REPORT> instead.',
            _id_line(awaited, on_screen),
            _form_of("plan", on_screen),
        )
    )


def plan_prompt(plan: MessageBlock, awaited: AwaitedMessage, *, on_screen: bool) -> str:
    """Build the executer's prompt for a plan."""
    return "\n\n".join(
        (
            "PLANNER sends you this plan:",
            section_of(plan),
            "Carry it out. Then emit one `result` block for PLANNER: what was done, what was found, what is open.",
            _id_line(awaited, on_screen),
            _form_of("result", on_screen),
        )
    )


def result_prompt(
    result: MessageBlock, awaited: AwaitedMessage, *, on_screen: bool, may_go_on: bool
) -> str:
    """Build the planner's prompt for a result: it reports to the user, or plans the next round."""
    report = (
        "write a short final report for the user as a `report` block"
        if on_screen
        else "write a short final report for the user, as plain text and without any POLI block"
    )
    block_id = _id_line(
        awaited, on_screen, "your block" if on_screen or may_go_on else "a `blocker` block"
    )
    report_form = (block_id, _form_of("report", on_screen)) if on_screen else ()
    parts = ["EXECUTER sends you this result:", section_of(result)]
    if may_go_on:
        parts += [f"If the task is done, or cannot be done, {report}.", *report_form]
        parts.append(
            "Only if EXECUTER must do more, emit one new `plan` block instead, and nothing else."
        )
        parts += [*(() if on_screen else (block_id,)), _form_of("plan", on_screen)]
    else:
        parts.append(f"This was the last round: {report}. State clearly what is not done.")
        parts += report_form or (block_id,)
    return "\n\n".join(parts)


def answer_prompt(answer: str, awaited: AwaitedMessage, *, on_screen: bool) -> str:
    """Build the prompt with a person's answer to a blocker."""
    message_type = awaited.types[0]
    return "\n\n".join(
        (
            "The user answers your `blocker` block:",
            answer or "Continue as you think best.",
            f"Continue, and emit one `{message_type}` block when you are finished.",
            _id_line(awaited, on_screen),
            _form_of(message_type, on_screen),
        )
    )


def continue_prompt(awaited: AwaitedMessage, *, on_screen: bool) -> str:
    """Build the prompt that continues a turn after an approval. Its id stays the same."""
    ends = " or ".join(f"`{kind}`" for kind in awaited.types)
    return "\n\n".join(
        (
            f"Your assignment is unchanged: continue where you stopped, and end with its {ends} block. The id stays the same.",
            _id_line(awaited, on_screen),
        )
    )


def nudge_prompt(why: str, awaited: AwaitedMessage, *, on_screen: bool) -> str:
    """Build the reminder after a turn without a message."""
    message_type = awaited.types[0]
    return "\n\n".join(
        (
            f"Your turn ended without the `{message_type}` block: {why}.",
            NUDGE,
            _id_line(awaited, on_screen),
            _form_of(message_type, on_screen),
        )
    )


def _id_line(awaited: AwaitedMessage, on_screen: bool, whose: str = "your block") -> str:
    """Name the id that the answer must have."""
    if not on_screen:
        return f'The id of {whose}:\nID = "{awaited.id}"'
    half = len(awaited.nonce) // 2
    one, other = awaited.nonce[:half], awaited.nonce[half:]
    return (
        f'The id of {whose} is these two pieces, joined:\nID = "{awaited.task}-{one}" + "{other}"'
    )


def _form_of(kind: str, on_screen: bool) -> str:
    section = SECTIONS[kind]
    header = f'[[{TAG} {{"to":"{_TO[kind]}","type":"{kind}","id":"<ID>"}}]]'
    block = f"{header}\n<{section}>\n…\n</{section}>\n[[/{TAG}]]"
    if not on_screen:
        return block
    return f"Put the whole block into a code fence, so that nothing in it is rendered:\n```text\n{block}\n```"


def _short_form(kind: str) -> str:
    return f'[[{TAG} {{"to":"USER","type":"{kind}","id":"<ID>"}}]]\n…\n[[/{TAG}]]'


_TO = {"plan": "EXECUTER", "result": "PLANNER", "report": "USER"}
_OWN_TYPE: dict[Side, str] = {"PLANNER": "plan", "EXECUTER": "result"}

_CARRIED = "A program passes messages between you."
_PARTS: dict[Side, tuple[str, str, str]] = {
    "PLANNER": (
        f"You are PLANNER. You plan what a user asks for; EXECUTER, another agent, carries your plans out. {_CARRIED}",
        "You may read files and run commands that change nothing, so that the plan is right. Change nothing yourself, "
        "even if your tools would allow it: put every change into the plan.",
        "You have no tools: put everything that has to be inspected or changed into the plan.",
    ),
    "EXECUTER": (
        f"You are EXECUTER. You carry out the plans of PLANNER, another agent. {_CARRIED}",
        "You may read and change files and run commands, as the plan requires.",
        "You have no tools: say in your result what you could not do.",
    ),
}
"""Role of each side; its permissions with tools; its instructions without any."""
_APPROVALS = (
    "A call that deletes or overwrites files may have to wait for a person: avoid unnecessary ones, for example run tests "
    "without caches. If a call waits for a person's approval, end the turn without a final block; you will be told the "
    "outcome."
)
_MANNERS = f"""\
Write tags exactly as shown, each on a line of its own. Every new assignment names a new id; use that id, and no other, in \
your blocks. You may report progress in the meantime, in the same way:
{_short_form("status")}
When only the user can help, say what you need and end the turn:
{_short_form("blocker")}
After the final block say nothing more and wait for the next message."""
_READY = "Now answer with the word READY and wait."
