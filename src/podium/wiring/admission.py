"""What a process must show before it hosts runs of a database that it shares: the repository and the key."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from podium.domain.errors import StoreUnusable, ToolMissing

if TYPE_CHECKING:
    from podium.wiring.podium import Podium

KEPT_AS = "repository"
"""The name in the table `meta` under which the project's first commits are kept."""

SHORT = 10
MOST_ROOTS = 50


async def admit(podium: Podium, url: str) -> None:
    """Make sure that this checkout and this key are those of the database's other hosts.

    The first one decides which these are. Raises a `StoreUnusable` that says what to do.
    """
    _refuse_missing_key(podium)
    found = await first_commits(podium)
    if found:
        _refuse_other(url, await asyncio.to_thread(_kept, url), found)
    store = await podium.store()
    await store.write(lambda tx: tx.must_be_able_to_seal())
    if found:
        # Whoever was quicker than this process decided.
        _refuse_other(url, await asyncio.to_thread(_keep, url, found), found)


async def first_commits(podium: Podium) -> tuple[str, ...]:
    """The commits that the checkout's history begins with, sorted; none where that cannot be known."""
    from podium.workspaces.git.git import GitFailed

    git, project = podium.repository_git, str(podium.folders.project)
    try:
        # The history of a shallow clone begins wherever it was cut.
        if await git.text("rev-parse", "--is-shallow-repository", cwd=project) != "false":
            return ()
        roots = await git.text("rev-list", "--max-parents=0", "HEAD", cwd=project)
    except (GitFailed, ToolMissing):
        return ()
    return tuple(sorted(roots.split())[:MOST_ROOTS])


def _refuse_missing_key(podium: Podium) -> None:
    """A key that was named and then made by itself would be another one on every host."""
    key = podium.named_receipt_key
    if key is not None and not key.exists():
        raise StoreUnusable(
            str(key),
            "PODIUM_RECEIPT_KEY names a key for receipts that is not there",
            "copy it from another host of this project; for the first one, make it with "
            "`head -c 32 /dev/urandom > FILE`",
        )


def _kept(url: str) -> tuple[str, ...]:
    """The first commits of the repository that this database belongs to; none yet: empty."""
    from podium.journal.postgres import connect, explained

    with explained(url):
        connection = connect(url)
        try:
            row = connection.execute(
                "SELECT value FROM meta WHERE name = :name", {"name": KEPT_AS}
            ).fetchone()
        finally:
            connection.close()
    return tuple(str(row[0]).split()) if row is not None else ()


def _keep(url: str, found: tuple[str, ...]) -> tuple[str, ...]:
    """Keep these unless others were kept before, and give those that are."""
    from podium.journal.postgres import connect, explained

    with explained(url):
        connection = connect(url)
        try:
            connection.execute(
                "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
                {"name": KEPT_AS, "value": " ".join(found)},
            )
        finally:
            connection.close()
    return _kept(url)


def _refuse_other(url: str, kept: tuple[str, ...], found: tuple[str, ...]) -> None:
    # One in common is enough: branches that merged another history have several.
    if not kept or set(kept) & set(found):
        return
    from podium.journal.postgres import name_of

    raise StoreUnusable(
        name_of(url),
        f"it belongs to another project, whose repository begins with commit {kept[0][:SHORT]}; this "
        f"checkout begins with {found[0][:SHORT]}",
        "one database is one project: name this one's own in PODIUM_DATABASE_URL, or work in a clone of "
        "that repository",
    )
