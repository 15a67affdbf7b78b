"""Fences: which are put up around which folders, and what settings make of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.app.confining_launcher import ConfiningLauncher
from podium.config.settings import SandboxSettings
from podium.core.processes import Confinement, Mount, ProcessSpec
from podium.testing import FakeLauncher
from tests.integration.wiring.test_podium import configured


def mounted(fence: Confinement) -> dict[str, bool]:
    return {mount.target: mount.writable for mount in fence.mounts}


async def test_a_plain_folder_may_be_written_but_for_its_history_and_podiums_record(
    tmp_path: Path,
) -> None:
    podium = configured(tmp_path)
    root = podium.folders.project
    (root / ".git").mkdir()
    (root / ".podium").mkdir()
    (root / ".podium/secret").write_text("x")
    fence = await podium.confinement_provider.confinement(str(root))
    assert fence.kind == "kernel"
    assert mounted(fence) == {
        str(root): True,
        str(root / ".git"): False,
        str(root / ".podium"): False,
    }
    script = "echo x > a.txt; echo x > .git/x; ls -A .podium"
    ended = await podium.launcher.run(
        ProcessSpec(argv=("sh", "-c", script), cwd=str(root), confinement=fence)
    )
    assert (root / "a.txt").exists()
    assert not (root / ".git/x").exists()
    assert ended.stdout == b""
    await podium.close()


async def test_a_linked_worktree_sees_its_history_and_cannot_change_it(tmp_path: Path) -> None:
    podium = configured(tmp_path)
    root, common = podium.folders.project, tmp_path / "repo/.git"
    admin = common / "worktrees/w"
    admin.mkdir(parents=True)
    (common / "objects").mkdir()
    (admin / "commondir").write_text("../..\n")
    (admin / "gitdir").write_text(f"{root}/.git\n")
    (root / ".git").write_text(f"gitdir: {admin}\n")
    fence = await podium.confinement_provider.confinement(str(root))
    assert mounted(fence)[str(common)] is False


async def test_a_pointer_of_an_agents_own_making_shows_nothing(tmp_path: Path) -> None:
    podium = configured(tmp_path)
    root, secret = podium.folders.project, tmp_path / "secret"
    secret.mkdir()
    (secret / "commondir").write_text(".\n")
    (root / ".git").write_text(f"gitdir: {secret}\n")
    fence = await podium.confinement_provider.confinement(str(root))
    assert set(mounted(fence)) == {str(root), str(root / ".git"), str(root / ".podium")}


def test_what_any_file_forbids_is_forbidden_and_a_project_takes_nothing_of_yours_away(
    tmp_path: Path,
) -> None:
    user = "workspaces: {forbidden: [deploy], copy_files: [.env]}\n"
    podium = configured(tmp_path, "workspaces: {ports: [PORT], forbidden: [infra]}\n", user)
    held = podium.configuration.workspaces
    assert (held.forbidden, held.copy_files, held.ports) == (
        ("deploy", "infra"),
        (".env",),
        ("PORT",),
    )


async def test_a_command_of_an_agents_own_making_does_not_choose_what_it_sees(
    tmp_path: Path,
) -> None:
    podium = configured(tmp_path)
    root, secret = podium.folders.project, tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("KEY")
    start = root / "start"
    start.write_text(f"#!/bin/cat {secret}/key\n")
    start.chmod(0o755)
    (root / "env").symlink_to(secret / "key")
    fence = await podium.confinement_provider.confinement(str(root))
    ended = await podium.launcher.run(
        ProcessSpec(argv=(str(start),), cwd=str(root), confinement=fence)
    )
    assert b"KEY" not in ended.stdout
    await podium.close()


async def test_commands_in_a_plain_folder_are_judged_by_their_words_alone(tmp_path: Path) -> None:
    podium = configured(tmp_path)
    assert podium.confinement_provider.held(str(podium.folders.project)) is None


async def test_without_a_sandbox_nothing_is_fenced_and_a_person_is_notified_once(
    tmp_path: Path,
) -> None:
    podium = configured(tmp_path, user="sandbox: none\n")
    messages: list[str] = []
    podium.notify = messages.append
    for _ in range(2):
        fence = await podium.confinement_provider.confinement(str(podium.folders.project))
        assert fence.kind == "none"
    assert len(messages) == 1
    assert "all your permissions" in messages[0]


@pytest.mark.parametrize(
    ("user", "project", "kind", "network", "hosts"),
    [
        ("", "", "kernel", "model-only", ()),
        ("", "sandbox: none\n", "kernel", "model-only", ()),
        ("sandbox: none\n", "", "none", "model-only", ()),
        ("sandbox: none\n", "sandbox: kernel\n", "kernel", "model-only", ()),
        ("sandbox: {network: open}\n", "", "kernel", "open", ()),
        ("", "sandbox: {network: open}\n", "kernel", "model-only", ()),
        ("", "sandbox: {network: none}\n", "kernel", "none", ()),
        ("sandbox: {network: listed, hosts: [a.org]}\n", "", "kernel", "listed", ("a.org",)),
        ("", "sandbox: {network: listed, hosts: [a.org]}\n", "kernel", "model-only", ()),
    ],
)
def test_a_project_only_tightens(
    tmp_path: Path, user: str, project: str, kind: str, network: str, hosts: tuple[str, ...]
) -> None:
    held = configured(tmp_path, project, user).configuration.sandbox
    assert (held.kind, held.network, held.hosts) == (kind, network, hosts)


def test_hosts_of_a_trusted_project_count_where_the_user_set_none(tmp_path: Path) -> None:
    from podium.config.trust import TrustBook

    podium = configured(tmp_path, "sandbox: {network: listed, hosts: [pypi.org]}\n")
    configuration = podium.configuration
    TrustBook(configuration.folders.user_state).trust(
        configuration.folders.project_file, configuration.project_digest
    )
    assert configuration.sandbox.network == "listed"
    assert configuration.sandbox.hosts == ("pypi.org",)


def launched(
    spawn: ProcessSpec, settings: SandboxSettings | None = None
) -> tuple[ConfiningLauncher, FakeLauncher]:
    inner = FakeLauncher({spawn.argv: None})
    launcher = ConfiningLauncher(
        inner,
        settings or SandboxSettings().in_force(),
        {"PATH": "/usr/bin", "HOME": "/home/x"},
        needed_folders=lambda programs, untrusted, search_path: ("/usr", "/not/there", *programs),
    )
    return launcher, inner


async def test_a_fenced_program_gets_its_toolchain_its_home_and_limits(tmp_path: Path) -> None:
    fence = Confinement(
        kind="kernel",
        mounts=(Mount(source="/w", target="/w", writable=True),),
        home="/private/home",
    )
    spawn = ProcessSpec(argv=("tool",), cwd="/w", confinement=fence)
    settings = SandboxSettings(read=(str(tmp_path),), processes=7, file_mb=2).in_force()
    launcher, inner = launched(spawn, settings)
    await launcher.start(spawn)
    [started] = inner.spawns
    assert [mount.target for mount in started.confinement.mounts] == ["/usr", str(tmp_path), "/w"]
    assert started.env["HOME"] == "/private/home"
    assert (started.limits.processes, started.limits.file_bytes) == (7, 2_000_000)


async def test_a_fence_that_is_asked_for_is_never_left_out() -> None:
    spawn = ProcessSpec(argv=("tool",), cwd="/w", confinement=Confinement(kind="kernel"))
    launcher, inner = launched(spawn, SandboxSettings(kind="none").in_force())
    await launcher.start(spawn)
    assert inner.spawns[0].confinement.kind == "kernel"


async def test_podiums_own_programs_are_started_as_they_are() -> None:
    spawn = ProcessSpec(argv=("git",), cwd="/w", env={"A": "b"})
    launcher, inner = launched(spawn)
    await launcher.start(spawn)
    assert inner.spawns == [spawn]


async def test_unfenced_the_variables_still_lead_to_the_private_copies() -> None:
    fence = Confinement(unmounted_env={"GIT_DIR": "/private/git"}, home="/private/home")
    spawn = ProcessSpec(argv=("tool",), cwd="/w", confinement=fence)
    launcher, inner = launched(spawn)
    await launcher.start(spawn)
    assert inner.spawns[0].env == {"GIT_DIR": "/private/git", "HOME": "/private/home"}
    assert os.environ.get("GIT_DIR") is None
