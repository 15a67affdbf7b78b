"""What an agent is told about the form of its answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pydantic import BaseModel

from podium.agents.contract.not_an_answer import excerpt, on_one_line
from podium.agents.contract.wanted import NONCE_KEY
from podium.domain.model import Json

_FORM = """\
## Your answer

End your reply with one JSON object in a ```json block and write nothing after it. It fits this JSON Schema:
{schema}"""
_ENDS_WITH_JSON = re.compile(
    r"End with exactly one JSON object(?P<choice>, one of these)?,? and nothing after it"
)
"""How prompts with examples ask for the answer."""
_JSON_BLOCK = re.compile(r"^```json\n(?:(?!```).*\n)+```$", re.MULTILINE)
_NEW_NONCE = f"The value of `{NONCE_KEY}` is a new one"
_UNNEEDED = ("title", "description")


def with_form(
    prompt: str, contract: type[BaseModel], nonce: str | None, *, is_new_nonce: bool = False
) -> str:
    """The prompt, and behind it what the reply must end with. `is_new_nonce`: an earlier prompt named another."""
    schema = json.dumps(_with_nonce_key(_plain(contract.model_json_schema()), nonce))
    new = f"\n{_NEW_NONCE}." if is_new_nonce and nonce else ""
    return f"{prompt.rstrip()}\n\n{_FORM.format(schema=schema)}{new}\n"


def with_examples(news: str, prompt: str, nonce: str | None, slot: str) -> str:
    """The news of a conversation, and behind it the answer's form as its first prompt has shown it, with a new nonce.

    Empty: the prompt shows no example in a code block of its own.
    """
    examples = [block for block in _JSON_BLOCK.findall(prompt) if slot and slot in block]
    if not examples:
        return ""
    choice = ", one of these," if len(examples) > 1 else ""
    new = f". {_NEW_NONCE}" if nonce else ""
    form = with_nonce("\n\n".join(examples), nonce, slot)
    ends = f"End with exactly one JSON object{choice} and nothing after it{new}:"
    return f"{news.rstrip()}\n\n{ends}\n\n{form}\n"


def _plain(schema: Json) -> Json:
    """The schema without what only programs and their authors read."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Json] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            plain[key] = {name: _plain(each) for name, each in value.items()}
        elif not (key in _UNNEEDED and isinstance(value, str)):
            plain[key] = value if key in ("const", "enum", "default") else _plain(value)
    return plain


def _with_nonce_key(schema: Json, nonce: str | None) -> Json:
    """The schema of the object that is asked for, which carries the turn's nonce."""
    if nonce is None or not isinstance(schema, dict):
        return schema
    if "properties" not in schema:
        return {
            "allOf": [schema],
            "properties": {NONCE_KEY: {"const": nonce}},
            "required": [NONCE_KEY],
        }
    properties = {**schema["properties"], NONCE_KEY: {"const": nonce}}
    required = [*schema.get("required", ()), NONCE_KEY]
    return {**schema, "properties": properties, "required": required}


def with_nonce(prompt: str, nonce: str | None, slot: str) -> str:
    """Fill the slots of the prompt's examples. Without a nonce the examples have no such key."""
    if not slot:
        return prompt
    if nonce:
        return prompt.replace(slot, nonce)
    member = rf'"{NONCE_KEY}"\s*:\s*"{re.escape(slot)}"'
    return re.sub(rf",\s*{member}|{member}\s*,?\s*", "", prompt)


def natively(prompt: str) -> str:
    """The prompt for a medium with a schema of its own, which may be a tool: its last words on the answer's form say so."""
    matches = list(_ENDS_WITH_JSON.finditer(prompt))
    if not matches:
        return prompt
    last = matches[-1]
    like = "one of these" if last["choice"] else "this"
    form = f"Give your answer once, at the end, as your structured output, filled in like {like}"
    return f"{prompt[: last.start()]}{form}{prompt[last.end() :]}"


def once_more(problem: str, said: str, untold: Sequence[str] = ()) -> str:
    """Asks for the answer again, quoting what is wrong and the end of what came."""
    refusals = "".join(f"\nNot done in your last turn: {on_one_line(each, 500)}" for each in untold)
    quoted = "\n".join(f"> {line}" for line in excerpt(said).splitlines())
    return (
        f"Your last reply could not be used. {problem}\n"
        f"It ended with:\n{quoted or '> (nothing)'}\n"
        f"What is done is done: do not do the work again, only give the answer in the right form.{refusals}"
    )
