"""Addresses of every kind are taken apart, and shown without credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.errors import BadInput
from podium.git.forge.github import api_url_of
from podium.git.forge.remotes import find_remotes, read_address
from podium.git.git_command import Git
from tests.integration.forge.remote_project import RemoteProject


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com/octo/hello",
        "https://github.com/octo/hello.git/",
        "https://GitHub.com:443/octo/hello.git",
        "https://uma:hunter2@github.com/octo/hello.git",
        "https://hunter2@github.com/octo/hello.git?access_token=hunter2#hunter2",
        "http://github.com/octo/hello.git",
        "git://github.com/octo/hello.git",
        "git@github.com:octo/hello.git",
        "git@github.com:/octo/hello.git",
        "github.com:octo/hello",
        "ssh://git@github.com/octo/hello.git",
        "ssh://git:hunter2@ssh.github.com:443/octo/hello.git",
        "git+ssh://git@github.com/octo/hello.git",
        "git@[github.com:22]:octo/hello.git",
        "https://www.github.com/octo/hello",
    ],
)
def test_all_spellings_of_a_project_are_the_same_project(text: str) -> None:
    address = read_address(text)
    assert (address.host, address.project) == ("github.com", "octo/hello")
    assert address.is_project_on("GitHub.com")
    assert "hunter2" not in address.display


@pytest.mark.parametrize(
    "text",
    [
        "https://github.com.evil.example/octo/hello",
        "https://github.com@evil.example/octo/hello",
        "https://github.com\\@evil.example/octo/hello",
        "https://github.com:8443/octo/hello",
        "https://github.com/octo",
        "https://github.com/octo/hello/more",
        "https://github.com/octo/..",
        "https://github.com/octo/he%2fllo",
        "https://[::1/octo/hello",
        "https://github.com:port/octo/hello",
        "git@gitlab.com:octo/hello.git",
        "ext::sh -c github.com:octo/hello",
        "codecommit::eu://octo/hello",
        "file:///srv/git/github.com/octo/hello.git",
        "/srv/git/hello.git",
        "../hello",
        "./github.com:octo/hello",
        "",
        "\x1b[31mgithub.com\x07:octo/hello",
    ],
)
def test_what_only_looks_like_a_project_there_is_none(text: str) -> None:
    address = read_address(text)
    assert not address.is_project_on("github.com")
    assert address.display.isprintable()


def test_a_port_belongs_to_the_host_of_an_enterprise() -> None:
    address = read_address("https://u:p@Git.Example.org:8443/octo/hello.git")
    assert (address.host, address.display) == (
        "git.example.org:8443",
        "https://git.example.org:8443/octo/hello.git",
    )


def test_an_enterprise_at_an_unusual_port_is_known_by_ssh_too() -> None:
    assert read_address("git@git.example.org:octo/hello").is_project_on("git.example.org:8443")
    assert not read_address("https://git.example.org/octo/hello").is_project_on(
        "git.example.org:8443"
    )


def test_every_github_has_its_api_where_it_usually_is() -> None:
    assert api_url_of("github.com") == "https://api.github.com"
    assert api_url_of("octo.ghe.com") == "https://api.octo.ghe.com"
    assert api_url_of("git.example.org") == "https://git.example.org/api/v3"


async def test_a_fork_is_pushed_to_while_the_base_lives_upstream(
    remote_project: RemoteProject,
) -> None:
    remote_project.user("remote", "set-url", "origin", "git@github.com:uma/hello.git")
    remote_project.user("remote", "add", "upstream", "https://github.com/octo/hello.git")
    remote_project.user("config", "branch.main.remote", "upstream")
    remotes = await find_remotes(
        Git(remote_project.launcher), str(remote_project.repository), "main"
    )
    assert remotes is not None
    assert (remotes.name, remotes.push.owner, remotes.base.owner) == ("origin", "uma", "octo")


async def test_gits_own_shorthands_are_resolved(remote_project: RemoteProject) -> None:
    remote_project.user("remote", "set-url", "origin", "gh:octo/hello")
    remote_project.user("config", "url.https://github.com/.insteadOf", "gh:")
    remote_project.user("config", "url.ssh://git@github.com/.pushInsteadOf", "gh:")
    remotes = await find_remotes(
        Git(remote_project.launcher), str(remote_project.repository), "main"
    )
    assert remotes is not None
    assert (remotes.base.scheme, remotes.push.scheme) == ("https", "ssh")
    assert remotes.push.is_project_on("github.com")


async def test_of_several_remotes_one_must_be_named(remote_project: RemoteProject) -> None:
    git = Git(remote_project.launcher)
    remote_project.user("remote", "rename", "origin", "one")
    only = await find_remotes(git, str(remote_project.repository), "main")
    assert only is not None
    assert only.name == "one"
    remote_project.user("remote", "add", "two", "https://github.com/octo/two")
    assert await find_remotes(git, str(remote_project.repository), "main") is None
    named = await find_remotes(git, str(remote_project.repository), "main", "two")
    assert named is not None
    assert named.push.name == "two"
    with pytest.raises(BadInput, match=r"no remote 'three'.*one, two"):
        await find_remotes(git, str(remote_project.repository), "main", "three")


async def test_folder_that_is_no_repository_is_reported_as_such(
    remote_project: RemoteProject, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match="does not exist; name a folder inside"):
        await find_remotes(Git(remote_project.launcher), str(tmp_path / "nowhere"), "main")
    with pytest.raises(BadInput, match="is not in a git repository"):
        await remote_project.forge().deliver(
            remote_project.draft(repository=str(tmp_path / "home"))
        )
