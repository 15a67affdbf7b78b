"""Table for people of the attacks that get through each layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.integration.attacks.attack import GROUPS, Attack
from tests.integration.attacks.cases import ATTACKS
from tests.integration.attacks.layouts import LAYOUTS
from tests.integration.attacks.trial import Outcome
from tests.integration.attacks.users import outcomes

_AT_ONCE = 2
_Found = dict[tuple[str, str], dict[str, Outcome]]
"""Outcomes by user and layout, each by attack."""


def table(users: Sequence[str]) -> str:
    """Run everything and write it down. This takes minutes."""
    columns = [(user, layout.name) for user in users for layout in LAYOUTS]
    with ThreadPoolExecutor(_AT_ONCE) as workers:
        found: _Found = dict(zip(columns, workers.map(_column, columns), strict=True))
    return "\n".join([*_counts(users, found), "", *_item(users[0], found)])


def _column(column: tuple[str, str]) -> dict[str, Outcome]:
    ran = outcomes(*column, [attack.id for attack in ATTACKS])
    return {outcome.attack: outcome for outcome in ran}


def _counts(users: Sequence[str], found: _Found) -> Iterator[str]:
    yield "| got through | of | " + " | ".join(layout.name for layout in LAYOUTS) + " |"
    yield "|---|---|" + "---|" * len(LAYOUTS)
    for user in users:
        for group, title in GROUPS.items():
            members = [attack for attack in ATTACKS if attack.group == group]
            yield _count_row(
                f"{title}, as {_named(user)}", members, [found[user, one.name] for one in LAYOUTS]
            )
        yield _count_row(
            f"**all, as {_named(user)}**", ATTACKS, [found[user, one.name] for one in LAYOUTS]
        )


def _count_row(title: str, attacks: Sequence[Attack], columns: Sequence[dict[str, Outcome]]) -> str:
    counts = [sum(bool(column[attack.id].through) for attack in attacks) for column in columns]
    return f"| {title} | {len(attacks)} | " + " | ".join(map(str, counts)) + " |"


def _named(user: str) -> str:
    return "root" if user == "root" else "an ordinary user"


def _item(user: str, found: _Found) -> Iterator[str]:
    yield "| id | attack | " + " | ".join(layout.name for layout in LAYOUTS) + " |"
    yield "|---|---|" + "---|" * len(LAYOUTS)
    for attack in ATTACKS:
        marks = [_mark(found[user, layout.name][attack.id]) for layout in LAYOUTS]
        yield f"| {attack.id} | {attack.title.replace('|', '/')} | " + " | ".join(marks) + " |"


def _mark(outcome: Outcome) -> str:
    return "–" if outcome.skipped else "**X**" if outcome.through else "·"
