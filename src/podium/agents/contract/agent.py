"""`ContractedAgent`: instructs any agent about the form of its reply, and holds it to the contract of its turn."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import Callable, Sequence

from pydantic import BaseModel

from podium.agents.contract.json_objects import check_value, quoted
from podium.agents.contract.messages import bounded_answer
from podium.agents.contract.payload import read_payload
from podium.agents.contract.reply_schema import (
    NONCE_KEY,
    NotAnAnswer,
    check_any_key,
    check_contract,
    contract_keys,
    excerpt,
    on_one_line,
    stored_form,
    validated,
)
from podium.agents.contract.reply_text import bounded
from podium.core.decisions import Usage
from podium.core.errors import BadInput, PodiumError, ReplyInvalid
from podium.core.model import Json, whole_text
from podium.core.turns import AwaitedMessage, Reply, Turn, TurnLimits
from podium.ports import Agent

_FORM = """\
## Your answer

End your reply with one JSON object in a ```json block and write nothing after it. It must match this JSON Schema:
{schema}"""
_ENDS_WITH_JSON = re.compile(
    r"End with exactly one JSON object(?P<choice>, one of these)?,? and nothing after it"
)
"""The sentence by which prompts with examples ask for the answer."""
_JSON_BLOCK = re.compile(r"^```json\n(?:(?!```).*\n)+```$", re.MULTILINE)
_NEW_NONCE = f"The value of `{NONCE_KEY}` has changed"
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
        return [_plain(subschema) for subschema in schema]
    if not isinstance(schema, dict):
        return schema
    plain: dict[str, Json] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            plain[key] = {name: _plain(subschema) for name, subschema in value.items()}
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


def once_more(problem: str, text: str, untold: Sequence[str] = ()) -> str:
    """Asks for the answer again, quoting what is wrong and the end of what came."""
    refusals = "".join(
        f"\nNot done in your last turn: {on_one_line(refusal, 500)}" for refusal in untold
    )
    quoted = "\n".join(f"> {line}" for line in excerpt(text).splitlines())
    return (
        f"Your last reply could not be used. {problem}\n"
        f"It ended with:\n{quoted or '> (nothing)'}\n"
        f"The work itself is done: do not repeat it, only give the answer in the right form.{refusals}"
    )


LEAST_SECONDS = 1.0
"""With less than this left of a turn's time, nothing is asked again."""


def random_nonce() -> str:
    return secrets.token_hex(4)


class ContractedAgent:
    """Asks the inner agent for the form of answer that the turn wants, reads it, and asks once more.

    A turn without a contract passes through. Replies are always cut to a length that can be kept.
    """

    def __init__(
        self,
        inner: Agent,
        *,
        new_nonce: Callable[[], str] | None = random_nonce,
        redact: Callable[[str], str] = str,
    ) -> None:
        """`new_nonce` gives each asking its nonce. None asks for none, as agents need that play a script.

        `redact` takes the secrets out of a prompt: what is quoted in it may hold some.
        """
        self._inner = inner
        self._new_nonce = new_nonce
        self._redact = redact

    @property
    def name(self) -> str:
        return self._inner.name

    async def ask(self, turn: Turn) -> Reply:
        """As the port has it; `ReplyInvalid` when the second answer is none either, with both turns' usage.

        `BadInput` for a contract that no JSON object can answer, before anything is asked.
        """
        is_news = bool(turn.news) and turn.session is not None
        first_prompt = self._redact(turn.prompt)
        text = self._redact(turn.news) if is_news else first_prompt
        turn = turn.model_copy(update={"prompt": text, "news": ""})
        if turn.contract is None:
            return _short(await self._inner.ask(turn), turn.awaits)
        check_contract(turn.contract)
        began = asyncio.get_running_loop().time()
        nonce = self._nonce()
        prompt = _asked(turn, turn.contract, nonce, first_prompt if is_news else "")
        native = natively(with_nonce(turn.prompt, None, turn.nonce_slot))
        asked = {"prompt": prompt, "native_prompt": native}
        first = await self._inner.ask(turn.model_copy(update=asked))
        try:
            return await _answer(first, turn.contract, nonce, prompt)
        except ReplyInvalid as problem:
            took = max(first.seconds, asyncio.get_running_loop().time() - began)
            limits = _left(turn.limits, first.usage, took)
            if limits is None:
                raise _spent(problem, first) from None
            again = turn.model_copy(update={"limits": limits})
            return await self._ask_again(again, turn.contract, first, problem)

    async def _ask_again(
        self, turn: Turn, contract: type[BaseModel], first: Reply, problem: ReplyInvalid
    ) -> Reply:
        """The same turn with other words, in the same conversation where there is one."""
        nonce = self._nonce()
        text = self._redact(once_more(str(problem), first.text, first.untold))
        prompt = with_form(text, contract, nonce, is_new_nonce=True)
        if first.session is None:
            # Whether the conversation has kept the first asking is not known then.
            own = with_nonce(turn.prompt, nonce, turn.nonce_slot)
            prompt = f"{own.rstrip()}\n\n{prompt}"
        again = {
            "prompt": prompt,
            "session": first.session or turn.session,
            "asking": turn.asking + 1,
        }
        asked = turn.model_copy(update=again)
        try:
            second = await self._inner.ask(asked)
        except (PodiumError, asyncio.CancelledError) as error:
            used: Usage = getattr(error, "usage", None) or Usage(complete=False)
            vars(error)["usage"] = first.usage.plus(used)
            raise
        both = _together(first, second)
        try:
            return await _answer(both, contract, nonce, prompt)
        except ReplyInvalid as error:
            error.usage = both.usage
            raise

    def _nonce(self) -> str | None:
        return self._new_nonce() if self._new_nonce else None


def _asked(turn: Turn, contract: type[BaseModel], nonce: str | None, first_prompt: str) -> str:
    """The prompt with one form of answer in it: that of its own examples, else the contract's schema.

    With the `first_prompt` of a conversation that goes on, the examples are its.
    """
    own = with_nonce(turn.prompt, nonce, turn.nonce_slot)
    shows_form = bool(turn.nonce_slot) and turn.nonce_slot in turn.prompt
    if shows_form:
        return own
    same = with_examples(own, first_prompt, nonce, turn.nonce_slot) if first_prompt else ""
    return same or with_form(own, contract, nonce, is_new_nonce=bool(first_prompt))


async def _answer(reply: Reply, contract: type[BaseModel], nonce: str | None, prompt: str) -> Reply:
    """The reply with its payload. One that waits for an approval is not over, and is given as it is.

    So is one that a limit ended: nobody may be asked again then.
    """
    if reply.waiting_approvals or (reply.stopped is not None and reply.found == "none"):
        return _short(reply)
    if reply.found == "native":
        payload, how, ignored = _native(reply, contract), "native", ""
    else:
        # In a thread: a hostile reply can take the parser a second, and other agents share the loop.
        read = await asyncio.to_thread(
            read_payload, reply.text, contract, nonce=nonce, prompt=prompt
        )
        payload, how, ignored = read.payload, read.how, read.ignored
    try:
        stored = stored_form(payload)
    except BadInput as error:
        error.usage = reply.usage
        raise
    warnings = reply.warnings
    if ignored:
        warnings = (*warnings, f"text after the JSON was ignored: {quoted(ignored[:200], 200)}")
    return _short(reply.model_copy(update={"payload": stored, "found": how, "warnings": warnings}))


def _native(reply: Reply, contract: type[BaseModel]) -> BaseModel:
    """Check the payload of the medium's own schema: some only promise to follow it."""
    try:
        check_value(reply.payload)
        payload = reply.payload
        if isinstance(payload, dict):
            # A prompt that asks again names the nonce; a schema that is closed may have kept it out, or not.
            payload = {key: value for key, value in payload.items() if key != NONCE_KEY}
            if payload:
                check_any_key(contract_keys(contract), payload)
        return validated(contract, payload)
    except (ValueError, TypeError) as error:
        raise NotAnAnswer("malformed", f"The JSON object is not valid: {error}") from None


def _left(limits: TurnLimits, used: Usage, seconds: float) -> TurnLimits | None:
    """Return what is left of the turn's limits for asking again; None when one is used up."""
    tokens = used.input_tokens + used.output_tokens
    left = limits.model_copy(
        update={
            "seconds": None if limits.seconds is None else limits.seconds - seconds,
            "tokens": None if limits.tokens is None else limits.tokens - tokens,
            "usd": None if limits.usd is None else limits.usd - used.usd,
            "turns": None if limits.turns is None else limits.turns - used.turns,
        }
    )
    enough = left.seconds is None or left.seconds >= LEAST_SECONDS
    return (
        left
        if enough and all(_some(amount) for amount in (left.tokens, left.usd, left.turns))
        else None
    )


def _some(left: float | None) -> bool:
    return left is None or left > 0


def _spent(problem: ReplyInvalid, reply: Reply) -> ReplyInvalid:
    error = ReplyInvalid(f"{problem} The turn's limits do not allow another try.")
    error.usage = reply.usage
    return error


def _together(first: Reply, second: Reply) -> Reply:
    return second.model_copy(
        update={
            "usage": first.usage.plus(second.usage),
            "seconds": first.seconds + second.seconds,
            "session": second.session or first.session,
            "warnings": (*first.warnings, *second.warnings),
        }
    )


def _short(reply: Reply, awaits: AwaitedMessage | None = None) -> Reply:
    whole = whole_text(reply.text)
    try:
        text = bounded(whole) if awaits is None else bounded_answer(whole, awaits)
    except ReplyInvalid as problem:
        problem.usage = reply.usage
        raise
    return reply if text == reply.text else reply.model_copy(update={"text": text})
