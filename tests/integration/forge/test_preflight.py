"""Report on the remote's base branch, for every response that GitHub may give."""

from __future__ import annotations

import socket
import socketserver
import threading
from pathlib import Path

import pytest

from podium.core.forge import Preflight
from tests.integration.forge.description import recorded
from tests.integration.forge.github_server import (
    BAD_TOKEN,
    NO_FORCE_RULE,
    NO_PERMISSION,
    NOT_FOUND,
    NOT_PROTECTED,
    PULL_REQUEST_RULE,
    SPENT,
    TOKEN,
    Asked,
    GitHubResponse,
    GitHubServer,
    rule,
    trouble,
)
from tests.integration.forge.remote_project import RemoteProject

PLAN = trouble(403, "Upgrade to GitHub Pro or make this repository public to enable this feature.")


async def looked(remote_project: RemoteProject, github: GitHubServer) -> Preflight:
    return await remote_project.forge(github.url).preflight(str(remote_project.repository), "main")


async def test_branch_protection_that_requires_reviews_protects(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.protection = GitHubResponse(200, recorded(200, reviews=True))
    seen = await looked(remote_project, github)
    assert seen.finding == "protected"
    assert seen.sentence == (
        "'main' of octo/hello is protected: it requires pull requests and blocks force pushes."
    )
    assert (seen.remote, seen.base) == ("git@github.com:octo/hello.git", "main")
    assert {asked.headers["authorization"] for asked in github.asked} == {f"Bearer {TOKEN}"}


async def test_an_unprotected_branch_is_called_so_with_what_to_switch_on(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.protection = GitHubResponse(404, recorded(404))
    seen = await looked(remote_project, github)
    assert (seen.finding, seen.missing) == ("unprotected", ())
    assert "enable `require a pull request` and `block force pushes`" in seen.sentence


async def test_rulesets_alone_protect(remote_project: RemoteProject, github: GitHubServer) -> None:
    github.rules = [PULL_REQUEST_RULE, NO_FORCE_RULE]
    assert (await looked(remote_project, github)).finding == "protected"


async def test_rulesets_and_branch_protection_add_up(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.protection = GitHubResponse(200, recorded(200))
    github.rules = [PULL_REQUEST_RULE]
    seen = await looked(remote_project, github)
    assert seen.finding == "protected"
    assert seen.sentence.endswith("; administrators are exempt from the protection.")


async def test_half_a_protection_names_the_other_half(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.protection = GitHubResponse(200, recorded(200))
    seen = await looked(remote_project, github)
    assert (seen.finding, seen.missing) == ("partly_protected", ("require a pull request",))
    github.protection = NOT_PROTECTED
    github.rules = [PULL_REQUEST_RULE, rule("deletion")]
    seen = await looked(remote_project, github)
    assert (seen.finding, seen.missing) == ("partly_protected", ("block force pushes",))
    assert "`block force pushes` is not enabled" in seen.sentence


async def test_protection_that_lets_force_pushes_through_does_not_block_them(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    output = recorded(200, reviews=True)
    github.protection = GitHubResponse(200, {**output, "allow_force_pushes": {"enabled": True}})
    assert (await looked(remote_project, github)).missing == ("block force pushes",)


@pytest.mark.parametrize("answer", [NO_PERMISSION, NOT_FOUND], ids=["403", "404"])
async def test_unreadable_protection_hides_nothing_that_rulesets_reveal(
    remote_project: RemoteProject, github: GitHubServer, answer: GitHubResponse
) -> None:
    github.protection = answer
    github.rules = [PULL_REQUEST_RULE, NO_FORCE_RULE]
    assert (await looked(remote_project, github)).finding == "protected"
    github.rules = [NO_FORCE_RULE]
    seen = await looked(remote_project, github)
    assert (seen.finding, seen.missing) == ("partly_protected", ("require a pull request",))
    assert "some settings could not be read" in seen.sentence


@pytest.mark.parametrize("answer", [NO_PERMISSION, NOT_FOUND], ids=["403", "404"])
async def test_a_branch_that_is_protected_unreadably_needs_permission(
    remote_project: RemoteProject, github: GitHubServer, answer: GitHubResponse
) -> None:
    github.protection = answer
    seen = await looked(remote_project, github)
    assert seen.finding == "no_permission"
    assert "cannot read the protection of 'main' of octo/hello" in seen.sentence


async def test_a_branch_that_everybody_may_see_as_unprotected_is_unprotected(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.protection = NOT_PROTECTED
    open_branch = github.answer(Asked("GET", "/repos/octo/hello/branches/main", {}, None))
    github.protection, github.branch = NOT_FOUND, open_branch
    assert (await looked(remote_project, github)).finding == "unprotected"


async def test_a_github_without_rulesets_is_judged_by_branch_protection(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.rules = NOT_FOUND
    assert (await looked(remote_project, github)).finding == "unprotected"
    github.protection = GitHubResponse(200, recorded(200))
    assert (await looked(remote_project, github)).finding == "partly_protected"


async def test_plan_without_protection_is_reported_as_the_reason(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.protection = github.rules = PLAN
    seen = await looked(remote_project, github)
    assert seen.finding == "unprotected"
    assert "its plan offers branch protection only for public repositories" in seen.sentence


async def test_a_repository_that_is_not_there_is_not_found(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.everything = NOT_FOUND
    seen = await looked(remote_project, github)
    assert seen.finding == "not_found"
    assert "check the remote's address" in seen.sentence


async def test_token_that_may_read_nothing_is_reported_as_such(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.everything = NO_PERMISSION
    assert (await looked(remote_project, github)).finding == "no_permission"


async def test_wrong_token_is_distinguished(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.everything = BAD_TOKEN
    seen = await looked(remote_project, github)
    assert seen.finding == "bad_token"
    assert "create a new one at https://github.com/settings/tokens" in seen.sentence


async def test_a_spent_rate_limit_says_until_when(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.everything = SPENT
    seen = await looked(remote_project, github)
    assert seen.finding == "rate_limited"
    assert "until 2026-01-01 12:30 UTC" in seen.sentence


async def test_rate_limit_in_between_hides_nothing_that_was_reported(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.protection = SPENT
    github.rules = [PULL_REQUEST_RULE, NO_FORCE_RULE]
    assert (await looked(remote_project, github)).finding == "protected"


async def test_a_server_that_is_down_or_in_trouble_is_unreachable(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}"
    down = await remote_project.forge(nobody).preflight(str(remote_project.repository), "main")
    github.everything = trouble(503, "Service unavailable")
    troubled = await looked(remote_project, github)
    assert (down.finding, troubled.finding) == ("unreachable", "unreachable")
    assert "Connection refused" in down.sentence
    assert "answered 503" in troubled.sentence


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "raw", [b"", b"<html>", b"[" * 100_000, b'{"enabled": true}', b"\xff\xfe", b"[[]]"]
)
async def test_answers_that_are_not_githubs_are_no_findings(
    remote_project: RemoteProject, github: GitHubServer, raw: bytes
) -> None:
    github.everything = GitHubResponse(200, raw=raw)
    seen = await looked(remote_project, github)
    assert seen.finding == "unreachable"
    assert "did not answer like the GitHub API" in seen.sentence


async def test_a_server_that_never_answers_is_given_up(remote_project: RemoteProject) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        forge = remote_project.forge(address, ask_seconds=0.2)
        assert (
            await forge.preflight(str(remote_project.repository), "main")
        ).finding == "unreachable"
    _join_questions()


async def test_an_answer_that_drips_is_given_up(remote_project: RemoteProject) -> None:
    over = threading.Event()

    class Dripping(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not over.wait(0.05):
                self.wfile.write(b"y")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Dripping) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        forge = remote_project.forge(
            f"http://127.0.0.1:{server.server_address[1]}", ask_seconds=0.3
        )
        try:
            seen = await forge.preflight(str(remote_project.repository), "main")
        finally:
            over.set()
            server.shutdown()
            serving.join()
    assert seen.finding == "unreachable"
    _join_questions()


async def test_an_endless_answer_is_cut_off(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.everything = GitHubResponse(200, raw=b" " * 9_000_000)
    assert "longer than" in (await looked(remote_project, github)).sentence


async def test_a_redirect_on_the_same_host_is_followed(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    moved = {"Location": f"{github.url}/repos/octo/renamed/rules/branches/main?per_page=100"}
    github.rules = GitHubResponse(301, raw=b"", headers=moved)
    plain = github.answer

    def answer(asked: Asked) -> GitHubResponse:
        if "renamed" in asked.target:
            return GitHubResponse(200, [PULL_REQUEST_RULE, NO_FORCE_RULE])
        return plain(asked)

    github.answer = answer  # type: ignore[method-assign]  # a renamed repository
    assert (await looked(remote_project, github)).finding == "protected"


async def test_no_redirect_takes_the_token_to_another_host(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    port = github.url.rsplit(":", 1)[1]
    elsewhere = f"http://localhost:{port}/stolen"
    github.everything = GitHubResponse(302, raw=b"", headers={"Location": elsewhere})
    seen = await looked(remote_project, github)
    assert seen.finding == "unreachable"
    assert "nothing was sent there" in seen.sentence
    assert not [asked for asked in github.asked if "stolen" in asked.target]


@pytest.mark.soak
async def test_rules_on_further_pages_count(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    github.rules = [rule("deletion")] * 150 + [PULL_REQUEST_RULE, NO_FORCE_RULE]
    assert (await looked(remote_project, github)).finding == "protected"


async def test_a_branch_with_a_slash_is_one_part_of_the_path(
    remote_project: RemoteProject, github: GitHubServer
) -> None:
    seen = await remote_project.forge(github.url).preflight(
        str(remote_project.repository), "release/1.x"
    )
    assert seen.finding == "unprotected"
    assert {asked.target.split("?")[0] for asked in github.asked} == {
        "/repos/octo/hello/branches/release%2F1.x/protection",
        "/repos/octo/hello/rules/branches/release%2F1.x",
    }


async def test_without_a_remote_another_forge_or_no_token_nothing_is_asked(
    tmp_path: Path, github: GitHubServer
) -> None:
    findings = {}
    for name, remote, token in (
        ("none", None, TOKEN),
        ("other", "https://uma:pw@gitlab.example.org/octo/hello.git", TOKEN),
        ("tokenless", "https://github.com/octo/hello", ""),
    ):
        (tmp_path / name).mkdir()
        remote_project = RemoteProject(tmp_path / name, remote=remote)
        seen = await remote_project.forge(github.url, token=token).preflight(
            str(remote_project.repository), "main"
        )
        findings[seen.finding] = seen
    assert set(findings) == {"no_remote", "other_forge", "no_token"}
    assert findings["other_forge"].remote == "https://gitlab.example.org/octo/hello.git"
    assert "GITHUB_TOKEN" in findings["no_token"].sentence
    assert "git remote add" in findings["no_remote"].sentence
    assert len({seen.sentence for seen in findings.values()}) == 3
    assert github.asked == []


def _join_questions() -> None:
    """Let threads end that nobody waits for, because their servers are gone."""
    for thread in threading.enumerate():
        if thread.name == "podium-forge":
            thread.join(120)
