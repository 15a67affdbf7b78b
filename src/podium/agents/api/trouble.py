"""What went wrong between Podium and a provider, as an error of the tree, and whether to ask again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from pydantic_ai import exceptions as said
from pydantic_ai.messages import ModelResponse

from podium.agents.api.choosing import Choice, Key
from podium.agents.api.waiting import time_to_ask_again
from podium.agents.headless.ending import plain_words, trouble_of_status
from podium.domain.errors import (
    AgentRefused,
    AgentRejected,
    AgentUnavailable,
    ContextOverflow,
    PodiumError,
)
from podium.domain.model import Json

OVERLOADED = 529
SERVER_FAULTS = frozenset({500, 502, 503, 504, OVERLOADED})


@dataclass(frozen=True)
class Trouble:
    """A request that brought no answer."""

    error: PodiumError
    passing: bool = False
    """Worth sending again: it never arrived, or the provider itself broke or was full."""
    retry_at: datetime | None = None
    """When the provider wants to be asked again."""
    wants_wait: bool = False
    """True: without a time to wait for it is not sent again."""
    rejected: bool = False
    """The provider finds the request itself wrong."""
    billed: bool = False
    """Tokens may have been used that nobody told of."""


def trouble_of(error: Exception, choice: Choice, key: Key, now: datetime) -> Trouble:
    """Read what the library raised. The key is taken out of the words."""
    words = key.scrub(_words(error))
    match error:
        case said.ModelContextWindowExceededError():
            what = f"the conversation is too long for agent {choice.agent!r}"
            return Trouble(ContextOverflow(_with(what, words)))
        case said.ContentFilterError():
            return Trouble(AgentRefused(_with(f"agent {choice.agent!r} refused", words)))
        case said.ModelAPIError():
            return _of_api(error, words, choice, key, now)
        case said.UserError():
            return Trouble(
                AgentRejected(_with(f"agent {choice.agent!r} cannot be asked so", words)),
                rejected=True,
            )
        case said.UnexpectedModelBehavior():
            what = f"agent {choice.agent!r} cannot make sense of its model's answer"
            return Trouble(AgentUnavailable(_with(what, words)), billed=True)
    # Whatever a library trips over in what it was sent is the sender's fault.
    what = f"agent {choice.agent!r} cannot read its model's answer ({type(error).__name__})"
    return Trouble(AgentUnavailable(_with(what, words)), billed=True)


def _of_api(
    error: said.ModelAPIError, words: str, choice: Choice, key: Key, now: datetime
) -> Trouble:
    status = _status(error)
    retry_at = time_to_ask_again(error, words, now)
    tree = trouble_of_status(
        choice.agent,
        status,
        words,
        login_hint=key.words or choice.login_hint,
        now=now,
        retry_at=retry_at,
        address=choice.base_url,
    )
    limited = status == 429
    unreached = isinstance(error, said.ModelConnectionError) and error.phase in ("connect", "pool")
    return Trouble(
        tree,
        passing=not isinstance(error, said.ModelQuotaExceededError)
        and (limited or unreached or status in SERVER_FAULTS),
        retry_at=retry_at,
        wants_wait=limited,
        rejected=isinstance(tree, AgentRejected),
        billed=error.in_stream or (status is None and not unreached),
    )


def _status(error: said.ModelAPIError) -> int | None:
    """The status that says who must act, which is not always the one on the wire."""
    if isinstance(error, said.ModelQuotaExceededError | said.ModelRateLimitError):
        return 429
    if isinstance(error, said.ModelAuthenticationError):
        return 401  # Gemini calls a key it does not know an invalid argument
    return error.status_code if isinstance(error, said.ModelHTTPError) else None


def _words(error: BaseException) -> str:
    """What the provider said; where it said nothing, what the line said."""
    if isinstance(error, said.ModelHTTPError):
        return _message(error.body) or f"HTTP {error.status_code}"
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _message(body: Json) -> str:
    """The message in an error's body, which every provider wraps in its own way."""
    for _ in range(3):
        if isinstance(body, list) and body:
            body = body[0]
        if not isinstance(body, dict):
            break
        found = body.get("message")
        if isinstance(found, str) and found:
            return found
        body = body.get("error")
    return body if isinstance(body, str) else ""


def _with(what: str, words: str) -> str:
    plain = plain_words(words)
    return f"{what}: {plain}" if plain else what


def trouble_in(response: ModelResponse, choice: Choice, key: Key) -> PodiumError | None:
    """What is wrong with an answer that came without an error. None: it is whole."""
    details = response.provider_details or {}
    spoken = response.text or details.get("refusal") or details.get("block_reason") or ""
    words = key.scrub(str(spoken))
    if response.finish_reason == "content_filter":
        return AgentRefused(_with(f"agent {choice.agent!r} refused", words))
    if response.finish_reason == "error":
        return AgentUnavailable(_with(f"agent {choice.agent!r} broke off its answer", words))
    # The library takes a chat that was cut for one that is over; only the provider's own word counts.
    if response.state != "complete" or "finish_reason" not in details:
        return AgentUnavailable(f"agent {choice.agent!r} was cut off before its answer was over")
    return None
