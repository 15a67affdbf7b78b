"""What an agent is told about the form of its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pydantic import BaseModel

from podium.agents.contract.not_an_answer import excerpt, on_one_line
from podium.agents.contract.wanted import NONCE_KEY

# The nonce stands in this sentence, and in the prompt's own examples of an answer; `read_payload` knows an
# echo of those by the words that lead to them.
_NONCE = 'Beside the keys of the schema the object has the key "{key}" with the value "{nonce}".\n'

_FORM = """\
# The form of your answer
End your reply with one JSON object that fits this JSON Schema:
{schema}
{nonce}Write it once, complete, as plain JSON on lines of its own, and write nothing after it."""


def form_of_answer(contract: type[BaseModel], nonce: str | None) -> str:
    """Short words on what the reply must end with."""
    schema = json.dumps(contract.model_json_schema(), ensure_ascii=False)
    said = _NONCE.format(key=NONCE_KEY, nonce=nonce) if nonce else ""
    return _FORM.format(schema=schema, nonce=said)


def with_form(prompt: str, contract: type[BaseModel], nonce: str | None) -> str:
    return f"{prompt.rstrip()}\n\n{form_of_answer(contract, nonce)}\n"


def with_nonce(prompt: str, nonce: str | None, slot: str) -> str:
    """Fill the slots of the prompt's examples. Without a nonce the examples have no such key."""
    if not slot:
        return prompt
    if nonce:
        return prompt.replace(slot, nonce)
    member = rf'"{NONCE_KEY}"\s*:\s*"{re.escape(slot)}"'
    return re.sub(rf",\s*{member}|{member}\s*,?\s*", "", prompt)


def once_more(problem: str, said: str, untold: Sequence[str] = ()) -> str:
    """Asks for the answer again, quoting what is wrong and the end of what came."""
    refusals = "".join(f"\nNot done in your last turn: {on_one_line(each, 500)}" for each in untold)
    quoted = "\n".join(f"> {line}" for line in excerpt(said).splitlines())
    return (
        f"Your last reply could not be used. {problem}\n"
        f"It ended with:\n{quoted or '> (nothing)'}\n"
        f"What is done is done: do not do the work again, only give the answer in the right form.{refusals}"
    )
