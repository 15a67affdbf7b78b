"""The check of commits for secrets: what of a scan is refused, and what only looks like one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from podium.domain.errors import HARMLESS_REMEDY, SecretsCommitted
from podium.domain.workspaces import KNOWN_SECRET, Sighting
from podium.workspaces.git.commit_scan import MAX_BYTES, Find, scan_commits
from podium.workspaces.git.history import History

_MAX_NAMED = 12
_TEST_DATA = re.compile(
    r"(^|/)(__)?(tests?|testing|testdata|test_data|fixtures?|mocks?|specs?|examples?|cassettes)(__)?/"
    r"|(^|/)(test_[^/]*|conftest\.py|[^/]*[._-](test|tests|spec)\.[^/]+)$",
    re.IGNORECASE,
)
"""Where what only looks like a secret is often meant to."""
_PATTERN = "pattern"
"""What the project's own patterns find goes by."""


async def refuse_secrets(
    history: History,
    branch: str,
    new: Mapping[str, Sequence[str]],
    secrets_in: Find,
    since: str = "",
) -> tuple[str, ...]:
    """Scan the new commits and the branch's name. Gives what looks like a secret where test data lies.

    Raises `SecretsCommitted` for the value of any secret that Podium knows, for what looks like one elsewhere,
    and for so much that not all of it was scanned.
    """
    if names := secrets_in(branch):
        place = f"the name of the branch ({', '.join(map(_in_words, names))})"
        raise _refused([place], known=any(map(_is_value, names)))
    changes = await history.changes(list(new))
    scan = await scan_commits(history, new, changes, secrets_in, since)
    sightings = [each for each in scan.found if not _is_an_address(each)]
    refused = [each for each in sightings if not _may_be_meant(each)]
    if refused:
        known_first = sorted(refused, key=_is_known, reverse=True)
        places = list(dict.fromkeys(map(_place, known_first)))
        raise _refused(places, known=_is_known(known_first[0]))
    if not scan.whole:
        raise SecretsCommitted(
            f"what was committed is more than can be scanned for secrets: over {MAX_BYTES // 1_000_000} MB, or a "
            "thousand places that look like secrets",
            "commit without what was built, downloaded or generated; what has to be so large, a person commits to "
            "the base branch",
        )
    return tuple(dict.fromkeys(map(_place, sightings)))


def _refused(places: Sequence[str], *, known: bool) -> SecretsCommitted:
    more = f" and {len(places) - _MAX_NAMED} more" if len(places) > _MAX_NAMED else ""
    harmless = f" ({HARMLESS_REMEDY})" if known else ""
    return SecretsCommitted(
        f"a secret was committed: {'; '.join(places[:_MAX_NAMED])}{more}{harmless}",
        "read the secret from the environment instead, then commit anew",
    )


def _is_known(sighting: Sighting) -> bool:
    return any(map(_is_value, sighting.what))


def _is_value(what: str) -> bool:
    return what.startswith(KNOWN_SECRET)


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
    if _is_value(what):
        return f"the value of {what.removeprefix(KNOWN_SECRET)}"
    return f"looks like a {what}"
