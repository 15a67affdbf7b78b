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
WANTED = (REQUIRE_PULL_REQUEST, BLOCK_FORCE_PUSHES)

_BY_RULE = {"pull_request": REQUIRE_PULL_REQUEST, "non_fast_forward": BLOCK_FORCE_PUSHES}
_BY_STATUS: dict[int, Finding] = {401: "bad_token", 403: "no_permission", 404: "not_found"}
_NOT_PROTECTED = "branch not protected"
"""GitHub's words with a 404 for somebody who may know. Others get `Not Found`, protected or not."""
_NOT_IN_PLAN = "upgrade to github"
"""Its words with a 403 where a private repository's plan has no protection."""


@dataclass(frozen=True)
class _Requirement:
    """What one source requires. `note` is worth telling beside it."""

    guards: frozenset[str] = frozenset()
    note: str = ""


@dataclass(frozen=True)
class _UnknownRequirement:
    """Why one source told nothing."""

    finding: Finding
    why: str = ""


_Source = _Requirement | _UnknownRequirement
_Answer = TypeVar("_Answer")


async def look(github: GitHub, base: str) -> Preflight:
    """Ask branch protection and rulesets. What one of them tells stands, whatever the other answers."""
    protection, rules = await asyncio.gather(
        _told(github.protection(base)), _told(github.rules(base))
    )
    sources = [_by_protection(protection), _by_rules(rules)]
    if _guards(sources) != frozenset(WANTED) and _unknown(sources):
        branch = await _told(github.branch(base))
        sources = _with_branch(sources, branch)
    return _ProtectionReport(github, base, sources).preflight()


async def _told(asked: Awaitable[_Answer]) -> _Answer | _UnknownRequirement:
    try:
        return await asked
    except RateLimited as limited:
        return _UnknownRequirement("rate_limited", str(limited))
    except ForgeUnavailable as away:
        return _UnknownRequirement("unreachable", str(away))


def _by_protection(told: BranchProtection | GitHubRefusal | _UnknownRequirement) -> _Source:
    if not isinstance(told, BranchProtection):
        return _not_told(told)
    # A protected branch takes no force pushes unless it says so.
    blocked = () if _is_on(told.allow_force_pushes) else (BLOCK_FORCE_PUSHES,)
    required = () if told.required_pull_request_reviews is None else (REQUIRE_PULL_REQUEST,)
    note = "" if _is_on(told.enforce_admins) else "administrators are exempt from the protection"
    return _Requirement(frozenset((*required, *blocked)), note)


def _is_on(switch: EnabledFlag | None) -> bool:
    return switch is not None and switch.enabled


def _by_rules(told: Sequence[RulesetRule] | GitHubRefusal | _UnknownRequirement) -> _Source:
    if isinstance(told, GitHubRefusal | _UnknownRequirement):
        return _not_told(told)
    return _Requirement(frozenset(_BY_RULE[rule.type] for rule in told if rule.type in _BY_RULE))


def _not_told(told: GitHubRefusal | _UnknownRequirement) -> _Source:
    if isinstance(told, _UnknownRequirement):
        return told
    message = told.message.lower()
    if told.status == 404 and message.startswith(_NOT_PROTECTED):
        return _Requirement()
    if told.status == 403 and message.startswith(_NOT_IN_PLAN):
        return _Requirement(note="its plan offers protection to public repositories only")
    return _UnknownRequirement(
        _BY_STATUS.get(told.status, "unreachable"), f"it answered {told.status}"
    )


def _with_branch(
    sources: Sequence[_Source], told: GitHubBranch | GitHubRefusal | _UnknownRequirement
) -> list[_Source]:
    """What everybody may know of a branch fills gaps: whether it is there and protected in some way."""
    protection, rules = sources
    if not isinstance(told, GitHubBranch):
        # The branch tells best why nothing is known: it is not there, or nothing may be read at all.
        reason = _not_told(told)
        return [source if isinstance(source, _Requirement) else reason for source in sources]
    if isinstance(rules, _UnknownRequirement) and rules.finding == "not_found":
        rules = _Requirement()  # an older GitHub Enterprise, which has no rulesets
    if isinstance(protection, _UnknownRequirement) and protection.finding in (
        "not_found",
        "no_permission",
    ):
        protection = _UnknownRequirement("no_permission") if told.protected else _Requirement()
    return [protection, rules]


def _guards(sources: Sequence[_Source]) -> frozenset[str]:
    return frozenset().union(
        *(source.guards for source in sources if isinstance(source, _Requirement))
    )


def _unknown(sources: Sequence[_Source]) -> list[_UnknownRequirement]:
    return [source for source in sources if isinstance(source, _UnknownRequirement)]


@dataclass(frozen=True)
class _ProtectionReport:
    """What was found, in words."""

    github: GitHub
    base: str
    sources: Sequence[_Source]

    def preflight(self) -> Preflight:
        finding = self._finding()
        guards = _guards(self.sources)
        missing = tuple(each for each in WANTED if each not in guards)
        return Preflight(
            finding=finding,
            sentence=f"{self._sentence(finding, missing)}.",
            remote=self.github.project.shown,
            base=self.base,
            missing=missing if finding == "partly_protected" else (),
        )

    def _finding(self) -> Finding:
        guards, unknown = _guards(self.sources), _unknown(self.sources)
        if guards == frozenset(WANTED):
            return "protected"
        if guards:
            return "partly_protected"
        # A token that is not accepted explains all other answers.
        first = sorted(unknown, key=lambda each: each.finding != "bad_token")
        return first[0].finding if first else "unprotected"

    def _sentence(self, finding: Finding, missing: Sequence[str]) -> str:
        project = self.github.project
        branch = f"{self.base!r} of {project.project}"
        notes = "".join(
            f"; {source.note}"
            for source in self.sources
            if isinstance(source, _Requirement) and source.note
        )
        why = next((each.why for each in _unknown(self.sources) if each.finding == finding), "")
        sentences: dict[Finding, str] = {
            "protected": f"{branch} is protected: it takes pull requests only and no force pushes{notes}",
            "partly_protected": self._partly(branch, missing) + notes,
            "unprotected": f"{branch} is not protected: whoever may push can change and overwrite it; switch on "
            f"{' and '.join(f'`{each}`' for each in WANTED)} in its settings{notes}",
            "bad_token": bad_token_sentence(project.host),
            "no_permission": f"the token may not read how {branch} is protected; let an administrator look, or "
            "give the token read access to the repository's administration",
            "not_found": f"{project.host} shows no {branch} to this token; check the remote's address, whether "
            "the branch was pushed, and the repositories that the token is for",
            "rate_limited": f"whether {branch} is protected could not be asked: {why}; try again then",
            "unreachable": f"whether {branch} is protected could not be asked: {why}; check the network, "
            "then try again",
        }
        return sentences[finding]

    def _partly(self, branch: str, missing: Sequence[str]) -> str:
        wanting = " and ".join(f"`{each}`" for each in missing)
        if _unknown(self.sources):
            return (
                f"{branch} is partly protected: {wanting} was not seen, but not everything could be read; "
                "let an administrator look"
            )
        return f"{branch} is partly protected: {wanting} is missing; switch it on in the repository's settings"
