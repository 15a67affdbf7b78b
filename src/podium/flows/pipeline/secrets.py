"""Secrets that an agent wrote into files or messages: found before they are on a branch that leaves the workspace."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podium.domain.errors import AgentMustAct
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
_PATTERN = "pattern"
"""What the project's own patterns find goes by."""
_TAKEN_BACK = "Your commits were taken back and your files lie uncommitted"


class SecretWritten(AgentMustAct):
    """Commits hold a secret, or more than can be looked through. The message names where, and never the secret."""


async def refuse_secrets(desk: Desk) -> tuple[str, ...]:
    """Look through what is about to come back. Gives what looks like a secret where test data lies.

    Raises `SecretWritten` for the value of any secret that Podium knows, for what looks like one elsewhere, and
    for so much that not all of it was seen.
    """
    seen = await desk.trip.workspace.look_through(desk.kit.secrets_in)
    found = [each for each in seen.found if not _is_an_address(each)]
    refused = [each for each in found if not _may_be_meant(each)]
    if refused:
        raise SecretWritten(_finding(sorted(refused, key=_is_known, reverse=True)))
    if not seen.whole:
        raise SecretWritten(
            "what you committed is more than can be looked through for secrets: over 64 MB, or a thousand places "
            f"that look like secrets. {_TAKEN_BACK}: commit without what was built, downloaded or generated. What "
            "has to be so large, a person commits to the base branch"
        )
    return tuple(dict.fromkeys(_place(each) for each in found))


def _is_known(sighting: Sighting) -> bool:
    return any(each.startswith(KNOWN_SECRET) for each in sighting.what)


def _is_an_address(sighting: Sighting) -> bool:
    """Patterns may fit names and addresses, and every commit has some in its head."""
    return not sighting.path and not sighting.line and set(sighting.what) == {_PATTERN}


def _may_be_meant(sighting: Sighting) -> bool:
    return not _is_known(sighting) and bool(_TEST_DATA.search(sighting.path))


def _place(sighting: Sighting) -> str:
    where = "a commit's message" if sighting.line else "a commit's author, head or file name"
    if sighting.path:
        where = f"{sighting.path}:{sighting.line}"
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
        f"a secret was committed: {'; '.join(places[:_MOST_TOLD])}{more}. {_TAKEN_BACK}: read the secret from the "
        "environment instead, then commit anew"
    )
