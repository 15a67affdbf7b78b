"""Secrets that an agent wrote into files or messages: found before they are on a branch that leaves the workspace."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.domain.errors import AgentMustAct
from podium.domain.events import NoteTaken
from podium.domain.workspaces import Sighting
from podium.flows.pipeline.desk import Desk
from podium.flows.pipeline.kit import KNOWN_SECRET

_MOST_TOLD = 12
_TEST_DATA = re.compile(
    r"(^|/)(__)?(tests?|testing|testdata|test_data|fixtures?|mocks?|specs?|examples?|cassettes)(__)?/"
    r"|(^|/)(test_[^/]*|conftest\.py|[^/]*[._-](test|tests|spec)\.[^/]+)$",
    re.IGNORECASE,
)
"""Where what only looks like a secret is often meant to."""


class SecretWritten(AgentMustAct):
    """Commits hold a secret. The message names where, and never the secret."""


async def refuse_secrets(desk: Desk) -> tuple[str, ...]:
    """Look through what is about to come back. Gives what looks like a secret where test data lies.

    Raises `SecretWritten` for the value of any secret that Podium knows, and for what looks like one elsewhere.
    """
    seen = await desk.trip.workspace.look_through(desk.kit.secrets_in)
    if not seen.whole:
        desk.ctx.note(
            NoteTaken(
                text="The change is so large that not all of it was looked through for secrets."
            )
        )
    refused = [each for each in seen.found if not _may_be_meant(each)]
    if refused:
        raise SecretWritten(_finding(refused))
    return tuple(dict.fromkeys(_place(each) for each in seen.found))


def _may_be_meant(sighting: Sighting) -> bool:
    known = any(each.startswith(KNOWN_SECRET) for each in sighting.what)
    return not known and bool(_TEST_DATA.search(sighting.path))


def _place(sighting: Sighting) -> str:
    where = f"{sighting.path}:{sighting.line}" if sighting.path else "a commit's message"
    what = ", ".join(dict.fromkeys(map(_in_words, sighting.what)))
    return f"{where} ({what}, commit {sighting.commit[:12]})"


def _in_words(what: str) -> str:
    if what.startswith(KNOWN_SECRET):
        return f"the value of {what.removeprefix(KNOWN_SECRET)}"
    return f"looks like a {what}"


def _finding(refused: Sequence[Sighting]) -> str:
    places = list(dict.fromkeys(_place(each) for each in refused))
    more = f" and {len(places) - _MOST_TOLD} more" if len(places) > _MOST_TOLD else ""
    return (
        f"a secret was committed: {'; '.join(places[:_MOST_TOLD])}{more}. Your commits were taken back and your files "
        "lie uncommitted: read the secret from the environment instead, then commit anew"
    )
