"""`python -m tests.integration.attacks`: run attacks and say what got through. See docs/attacks.md."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict

from tests.integration.attacks.attack import GROUPS, Attack
from tests.integration.attacks.cases import ATTACKS
from tests.integration.attacks.layouts import LAYOUTS
from tests.integration.attacks.runner import run_attacks
from tests.integration.attacks.table import table
from tests.integration.attacks.trial import Outcome
from tests.integration.attacks.users import place, users_here


def main() -> int:
    options = _options()
    if options.table:
        print(table(users_here()))
        return 0
    chosen = _chosen(options.group, options.only)
    found = run_attacks(chosen, options.layout, options.place, together=options.together)
    return asyncio.run(_run(chosen, found, as_json=options.json))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.integration.attacks", description=__doc__
    )
    parser.add_argument("--layout", choices=[layout.name for layout in LAYOUTS], default="default")
    parser.add_argument("--group", choices=list(GROUPS), help="attacks of one group")
    parser.add_argument("--only", default="", help="attacks by their ids, with commas between them")
    parser.add_argument("--place", default=place(), help="the folder in which the arena is built")
    parser.add_argument(
        "--together", type=int, default=1, help="so many attacks without a commit in one arena"
    )
    parser.add_argument("--json", action="store_true", help="an object for each attack")
    parser.add_argument(
        "--table", action="store_true", help="all attacks in all layouts, as Markdown"
    )
    return parser.parse_args()


def _chosen(group: str | None, only: str) -> list[Attack]:
    ids = set(only.split(",")) if only else {attack.id for attack in ATTACKS}
    return [attack for attack in ATTACKS if attack.id in ids and group in (None, attack.group)]


async def _run(attacks: Sequence[Attack], found: AsyncIterator[Outcome], *, as_json: bool) -> int:
    count = 0
    titles = {attack.id: attack.title for attack in attacks}
    async for outcome in found:
        count += bool(outcome.through)
        if as_json:
            print(json.dumps(asdict(outcome)), flush=True)
        else:
            print(_line(outcome, titles[outcome.attack]), flush=True)
    if not as_json:
        print(f"{count} of {len(attacks)} through")
    return 0


def _line(outcome: Outcome, title: str) -> str:
    mark = "THROUGH" if outcome.through else "skipped" if outcome.skipped else "held"
    why = "; ".join(outcome.through) or outcome.skipped
    return f"{outcome.attack} {mark:8} {title}{': ' + why if why else ''}"


if __name__ == "__main__":
    sys.exit(main())
