"""Hosts allowed to run in a shared database: those with its key, in its repository."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from podium.app.app import Podium
from podium.app.postgres import first_commits
from podium.config.configuration import load_configuration
from podium.core.errors import StoreUnusable
from podium.store import Anchors
from podium.store.postgres_store import PostgresStore


def git(folder: Path, *words: str) -> str:
    named = ("-c", "user.name=ann", "-c", "user.email=ann@localhost", "-c", "protocol.allow=always")
    done = subprocess.run(
        ["git", *named, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def a_repository(folder: Path, words: str = "first") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", words)
    return folder


class Hosts:
    """Hosts of one database: each with a home and a checkout of its own."""

    def __init__(self, folder: Path, url: str, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.key = folder / "shared.key"
        self.key.write_bytes(b"one key for all, 32 bytes long..")
        self._url = url
        self._stack = stack

    def host(self, name: str, project: Path, *, key: Path | None = None) -> Podium:
        home = self.folder / f"home-{name}"
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "PODIUM_HOME": str(home),
            "PODIUM_DATABASE_URL": self._url,
            "PODIUM_RECEIPT_KEY": str(key or self.key),
        }
        podium = Podium(load_configuration(environ, project=project), environ, flows={})
        self._stack.push_async_callback(podium.close)
        return podium

    def clone(self, name: str, source: Path, *words: str) -> Path:
        git(self.folder, "clone", "--quiet", *words, f"file://{source}", name)
        return self.folder / name


@pytest.fixture
async def hosts(tmp_path: Path, postgres_url: str) -> AsyncIterator[Hosts]:
    async with AsyncExitStack() as stack:
        yield Hosts(tmp_path, postgres_url, stack)


async def test_first_process_of_a_project_keeps_receipts_where_the_next_one_looks(
    hosts: Hosts, tmp_path: Path
) -> None:
    app = a_repository(tmp_path / "app")
    store = await hosts.host("a", app).store()
    assert isinstance(store, PostgresStore)
    store.anchors.write("run_1", 1, "seal")
    assert Anchors(hosts.host("a", app).key_dir).runs() == ["run_1"]


async def test_a_clone_with_the_same_key_may_host(hosts: Hosts, tmp_path: Path) -> None:
    app = a_repository(tmp_path / "app")
    first = await hosts.host("a", app).hosting_engine()
    git(app, "commit", "--quiet", "--allow-empty", "-m", "second")
    second = await hosts.host("b", hosts.clone("clone", app)).hosting_engine()
    assert first.worker_id != second.worker_id


async def test_a_host_with_another_key_is_refused_before_it_hosts(
    hosts: Hosts, tmp_path: Path
) -> None:
    app, other = a_repository(tmp_path / "app"), tmp_path / "other.key"
    await hosts.host("a", app).hosting_engine()
    other.write_bytes(b"another key of thirty-two bytes.")
    late = hosts.host("b", hosts.clone("clone", app), key=other)
    with pytest.raises(StoreUnusable, match="sealed with another key; copy the key file"):
        await late.hosting_engine()
    assert not await (await late.engine()).alive()


async def test_a_named_key_that_is_missing_is_not_made_but_asked_for(
    hosts: Hosts, tmp_path: Path
) -> None:
    missing = tmp_path / "missing.key"
    first = hosts.host("a", a_repository(tmp_path / "app"), key=missing)
    with pytest.raises(StoreUnusable, match=r"does not exist; copy it from another host"):
        await first.hosting_engine()
    assert not missing.exists()


async def test_a_checkout_of_another_repository_is_refused_with_both_beginnings(
    hosts: Hosts, tmp_path: Path
) -> None:
    app, strange = a_repository(tmp_path / "app"), a_repository(tmp_path / "strange", "other")
    await hosts.host("a", app).hosting_engine()
    with pytest.raises(StoreUnusable, match="each project needs its own database") as refused:
        await hosts.host("b", strange).hosting_engine()
    assert git(app, "rev-parse", "HEAD")[:10] in str(refused.value)
    assert git(strange, "rev-parse", "HEAD")[:10] in str(refused.value)
    # Refusing decided nothing: the first still may.
    await hosts.host("c", app).hosting_engine()


async def test_a_host_that_was_refused_its_key_does_not_decide_whose_database_it_is(
    hosts: Hosts, tmp_path: Path
) -> None:
    short = tmp_path / "short.key"
    short.write_bytes(b"too short")
    with pytest.raises(StoreUnusable, match="this is not a key"):
        await hosts.host("a", a_repository(tmp_path / "strange", "x"), key=short).hosting_engine()
    await hosts.host("b", a_repository(tmp_path / "app")).hosting_engine()


@pytest.mark.soak
async def test_a_branch_that_merged_another_history_is_the_same_project(
    hosts: Hosts, tmp_path: Path
) -> None:
    app, library = a_repository(tmp_path / "app"), a_repository(tmp_path / "library", "lib")
    clone = hosts.clone("clone", app)
    git(clone, "fetch", "--quiet", str(library), "main")
    git(clone, "merge", "--quiet", "--allow-unrelated-histories", "-m", "both", "FETCH_HEAD")
    merged = hosts.host("a", clone)
    assert len(await first_commits(merged.repository_git, merged.folders.project)) == 2
    await merged.hosting_engine()
    await hosts.host("b", app).hosting_engine()


@pytest.mark.soak
async def test_what_has_no_known_beginning_is_not_compared(hosts: Hosts, tmp_path: Path) -> None:
    app, plain = a_repository(tmp_path / "app"), tmp_path / "plain"
    git(app, "commit", "--quiet", "--allow-empty", "-m", "second")
    plain.mkdir()
    shallow = hosts.clone("shallow", app, "--depth=1")
    podiums = [hosts.host("a", app), hosts.host("b", shallow), hosts.host("c", plain)]
    engines = [await podium.hosting_engine() for podium in podiums]
    assert len({engine.worker_id for engine in engines}) == 3
