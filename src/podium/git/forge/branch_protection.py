"""Protection of the base branch on the remote, in one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from podium.core.errors import ForgeUnavailable, RateLimited
from podium.core.forge import Finding, Preflight
from podium.git.forge.github import (
    BranchProtection,
    EnabledFlag,
    GitHub,
    GitHubBranch,
    GitHubRefusal,
    RulesetRule,
    bad_token_sentence,
)

REQUIRE_PULL_REQUEST = "require a pull request"
BLOCK_FORCE_PUSHES = "block force pushes"
GUARDS = (REQUIRE_PULL_REQUEST, BLOCK_FORCE_PUSHES)

_BY_RULE = {"pull_request": REQUIRE_PULL_REQUEST, "non_fast_forward": BLOCK_FORCE_PUSHES}
_BY_STATUS: dict[int, Finding] = {401: "bad_token", 403: "no_permission", 404: "not_found"}
_NOT_PROTECTED = "branch not protected"
"""GitHub's message with a 404 for a token that may read protection. Others get `Not Found`, protected or not."""
_NOT_IN_PLAN = "upgrade to github"
"""GitHub's message with a 403 where a private repository's plan has no protection."""


@dataclass(frozen=True)
class _Requirement:
    """Requirements of one source. `note` is shown beside them."""

    guards: frozenset[str] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class _UnknownRequirement:
    """Reason why a source gave no answer."""

    finding: Finding
    why: str = ""


_Source = _Requirement | _UnknownRequirement
_ResponseT = TypeVar("_ResponseT")


async def look(github: GitHub, base: str) -> Preflight:
    """Ask branch protection and rulesets. What one of them tells stands, whatever the other answers."""
    protection, rules = await asyncio.gather(
        _response_of(github.protection(base)), _response_of(github.rules(base))
    )
    sources = [_by_protection(protection), _by_rules(rules)]
    if _guards(sources) != frozenset(GUARDS) and _unknown(sources):
        branch = await _response_of(github.branch(base))
        sources = _with_branch(sources, branch)
    return _ProtectionReport(github, base, sources).preflight()


async def _response_of(asked: Awaitable[_ResponseT]) -> _ResponseT | _UnknownRequirement:
    try:
        return await asked
    except RateLimited as limited:
        return _UnknownRequirement("rate_limited", str(limited))
    except ForgeUnavailable as away:
        return _UnknownRequirement("unreachable", str(away))


def _by_protection(response: BranchProtection | GitHubRefusal | _UnknownRequirement) -> _Source:
    if not isinstance(response, BranchProtection):
        return _without_response(response)
    # A protected branch takes no force pushes unless it says so.
    blocked = () if _is_on(response.allow_force_pushes) else (BLOCK_FORCE_PUSHES,)
    required = () if response.required_pull_request_reviews is None else (REQUIRE_PULL_REQUEST,)
    note = (
        "" if _is_on(response.enforce_admins) else "administrators are exempt from the protection"
    )
    return _Requirement(frozenset((*required, *blocked)), note)


def _is_on(switch: EnabledFlag | None) -> bool:
    return switch is not None and switch.enabled


def _by_rules(response: Sequence[RulesetRule] | GitHubRefusal | _UnknownRequirement) -> _Source:
    if isinstance(response, GitHubRefusal | _UnknownRequirement):
        return _without_response(response)
    return _Requirement(
        frozenset(_BY_RULE[rule.type] for rule in response if rule.type in _BY_RULE)
    )


def _without_response(response: GitHubRefusal | _UnknownRequirement) -> _Source:
    if isinstance(response, _UnknownRequirement):
        return response
    message = response.message.lower()
    if response.status == 404 and message.startswith(_NOT_PROTECTED):
        return _Requirement()
    if response.status == 403 and message.startswith(_NOT_IN_PLAN):
        return _Requirement(note="its plan offers branch protection only for public repositories")
    return _UnknownRequirement(
        _BY_STATUS.get(response.status, "unreachable"), f"the server answered {response.status}"
    )


def _with_branch(
    sources: Sequence[_Source], response: GitHubBranch | GitHubRefusal | _UnknownRequirement
) -> list[_Source]:
    """Fill gaps with the public facts about a branch: that it exists, and is protected in some way."""
    protection, rules = sources
    if not isinstance(response, GitHubBranch):
        # The branch tells best why nothing is known: it is not there, or nothing may be read at all.
        reason = _without_response(response)
        return [source if isinstance(source, _Requirement) else reason for source in sources]
    if isinstance(rules, _UnknownRequirement) and rules.finding == "not_found":
        rules = _Requirement()  # an older GitHub Enterprise, which has no rulesets
    if isinstance(protection, _UnknownRequirement) and protection.finding in (
        "not_found",
        "no_permission",
    ):
        protection = _UnknownRequirement("no_permission") if response.protected else _Requirement()
    return [protection, rules]


def _guards(sources: Sequence[_Source]) -> frozenset[str]:
    return frozenset().union(
        *(source.guards for source in sources if isinstance(source, _Requirement))
    )


def _unknown(sources: Sequence[_Source]) -> list[_UnknownRequirement]:
    return [source for source in sources if isinstance(source, _UnknownRequirement)]


@dataclass(frozen=True)
class _ProtectionReport:
    """Preflight report of all sources."""

    github: GitHub
    base: str
    sources: Sequence[_Source]

    def preflight(self) -> Preflight:
        finding = self._finding()
        guards = _guards(self.sources)
        missing = tuple(guard for guard in GUARDS if guard not in guards)
        return Preflight(
            finding=finding,
            sentence=f"{self._sentence(finding, missing)}.",
            remote=self.github.project.display,
            base=self.base,
            missing=missing if finding == "partly_protected" else (),
        )

    def _finding(self) -> Finding:
        guards, unknown = _guards(self.sources), _unknown(self.sources)
        if guards == frozenset(GUARDS):
            return "protected"
        if guards:
            return "partly_protected"
        # A token that is not accepted explains all other answers.
        first = sorted(unknown, key=lambda source: source.finding != "bad_token")
        return first[0].finding if first else "unprotected"

    def _sentence(self, finding: Finding, missing: Sequence[str]) -> str:
        project = self.github.project
        branch = f"{self.base!r} of {project.project}"
        notes = "".join(
            f"; {source.note}"
            for source in self.sources
            if isinstance(source, _Requirement) and source.note
        )
        why = next(
            (source.why for source in _unknown(self.sources) if source.finding == finding), ""
        )
        sentences: dict[Finding, str] = {
            "protected": f"{branch} is protected: it requires pull requests and blocks force pushes{notes}",
            "partly_protected": self._partly(branch, missing) + notes,
            "unprotected": f"{branch} is not protected: anyone with push access can change and overwrite it; enable "
            f"{' and '.join(f'`{guard}`' for guard in GUARDS)} in its settings{notes}",
            "bad_token": bad_token_sentence(project.host),
            "no_permission": f"the token cannot read the protection of {branch}; ask an administrator to check, or give "
            "the token read access to the repository's administration",
            "not_found": f"{branch} does not exist on {project.host}, or the token cannot access it; check the remote's "
            "address, whether the branch was pushed, and the repositories of the token",
            "rate_limited": f"cannot check the protection of {branch}: {why}; try again then",
            "unreachable": f"cannot check the protection of {branch}: {why}; check the network, then try again",
        }
        return sentences[finding]

    def _partly(self, branch: str, missing: Sequence[str]) -> str:
        wanting = " and ".join(f"`{guard}`" for guard in missing)
        if _unknown(self.sources):
            return (
                f"{branch} is partly protected: {wanting} was not found, but some settings could not be read; ask an "
                "administrator to check"
            )
        return f"{branch} is partly protected: {wanting} is not enabled; enable it in the repository's settings"
