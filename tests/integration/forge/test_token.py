"""The token reaches GitHub and nobody else: no other host, no list of processes, no file, no message."""

from __future__ import annotations

import base64
import traceback
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow, PodiumError
from tests.integration.forge.github_server import BAD_TOKEN, TOKEN, GitHubServer, trouble
from tests.integration.forge.https_remote import serving_git
from tests.integration.forge.remote_project import BRANCH, RemoteProject

BASIC = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
SECRETS = (TOKEN, BASIC)


async def test_a_push_by_https_logs_in_with_the_token(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    with serving_git(remote_project.folder, remote_project.bare, f"Basic {BASIC}") as remote:
        _lead_to(remote_project, remote.host, remote.certificate)
        # What a CI job leaves behind: GitHub would answer 400 to both headers together.
        remote_project.user(
            "config", f"http.https://{remote.host}/.extraHeader", "Authorization: Basic b2xk"
        )
        made = await remote_project.forge(github.url, host=remote.host).deliver(
            remote_project.draft()
        )
    assert made.url == f"https://{remote.host}/octo/hello/pull/100"
    assert remote_project.there()[BRANCH] == remote_project.tip
    assert {tuple(authorization) for authorization in remote.authorizations} == {
        (f"Basic {BASIC}",)
    }
    _assert_kept(remote_project)


async def test_another_host_does_not_get_the_token(remote_project: RemoteProject) -> None:
    with serving_git(remote_project.folder, remote_project.bare, f"Basic {BASIC}") as remote:
        _lead_to(remote_project, remote.host, remote.certificate)
        with pytest.raises(NotPossibleNow, match="cannot read from"):
            await remote_project.forge().deliver(remote_project.draft())
    assert remote.authorizations
    assert {tuple(authorization) for authorization in remote.authorizations} == {()}


async def test_the_users_own_login_is_used_where_there_is_no_token(
    remote_project: RemoteProject,
) -> None:
    login = base64.b64encode(b"uma:pw").decode()
    with serving_git(remote_project.folder, remote_project.bare, f"Basic {login}") as remote:
        _lead_to(remote_project, remote.host, remote.certificate)
        remote_project.user(
            "config", "credential.helper", "!f() { echo username=uma; echo password=pw; }; f"
        )
        await remote_project.forge(token="").deliver(remote_project.draft())
    assert remote_project.there()[BRANCH] == remote_project.tip


async def test_no_process_file_or_result_holds_the_token(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    forge = remote_project.forge(github.url)
    seen = await forge.preflight(str(remote_project.repository), "main")
    made = await forge.deliver(remote_project.draft())
    assert TOKEN not in f"{seen!r}{made!r}{forge!r}{forge._pusher!r}"
    _assert_kept(remote_project)


async def test_no_error_holds_the_token_although_the_server_says_it(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    echoes = [trouble(status, f"{TOKEN} is not welcome") for status in (403, 422, 500, 429, 418)]
    for github.everything in (BAD_TOKEN, *echoes):
        with pytest.raises(PodiumError) as failed:
            await remote_project.forge(github.url).deliver(remote_project.draft())
        text = "".join(traceback.format_exception(failed.value))
        assert not any(secret in text for secret in SECRETS)
        seen = await remote_project.forge(github.url).preflight(
            str(remote_project.repository), "main"
        )
        assert TOKEN not in seen.sentence


async def test_no_refusal_of_a_remote_that_prints_its_login_shows_it(
    remote_project: RemoteProject,
) -> None:
    hook = remote_project.bare / "hooks/pre-receive"
    hook.write_text(
        f"#!/bin/sh\necho {TOKEN} {BASIC} https://uma:hunter2@example.org >&2\nexit 1\n"
    )
    hook.chmod(0o755)
    with pytest.raises(NotPossibleNow, match="hook declined") as refused:
        await remote_project.forge().deliver(remote_project.draft())
    assert not any(secret in str(refused.value) for secret in (*SECRETS, "hunter2"))


def test_a_token_that_cannot_be_one_is_refused_without_being_shown(
    remote_project: RemoteProject,
) -> None:
    for wrong in ("ghp_one two", "ghp_one\r\nX-Other: two", "ghp_öne", "ghp_\0"):
        with pytest.raises(BadInput) as refused:
            remote_project.forge(token=wrong)
        assert "ghp_" not in str(refused.value)
    remote_project.forge(token=f"{TOKEN}\n")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "api_url",
    [
        "http://github.example.org/api/v3",
        "ftp://127.0.0.1/",
        "api.github.com",
        "https://u:p@h/",
        "https://[",
    ],
)
async def test_an_api_that_would_hear_the_token_in_the_clear_is_not_asked(
    remote_project: RemoteProject, api_url: str
) -> None:
    with pytest.raises(BadInput, match="GitHub API"):
        await remote_project.forge(api_url).preflight(str(remote_project.repository), "main")
    with pytest.raises(BadInput, match="GitHub API"):
        await remote_project.forge(api_url).deliver(remote_project.draft())
    assert remote_project.there() == {"main": remote_project.base}


def _lead_to(remote_project: RemoteProject, host: str, certificate: Path) -> None:
    remote_project.user("remote", "set-url", "origin", f"https://{host}/octo/hello.git")
    remote_project.user("config", "http.sslCAInfo", str(certificate))


def _assert_kept(remote_project: RemoteProject) -> None:
    words = [word for spawn in remote_project.launcher.spawns for word in spawn.argv]
    assert words
    assert not any(secret in word for secret in SECRETS for word in words)
    files = [path for path in remote_project.folder.rglob("*") if path.is_file()]
    assert not [
        path for path in files if any(secret.encode() in path.read_bytes() for secret in SECRETS)
    ]
