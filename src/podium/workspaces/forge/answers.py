"""GitHub's answers, as far as they are looked at. Whatever does not fit is no answer of GitHub's."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class _Seen(BaseModel):
    """Part of an answer: what is not named here is not looked at."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Switch(_Seen):
    enabled: bool = False


class Protection(_Seen):
    """Branch protection of the older kind."""

    url: str
    """Not used, but always there: by it an empty object is not taken for a protection."""
    required_pull_request_reviews: dict[str, object] | None = None
    allow_force_pushes: Switch | None = None
    enforce_admins: Switch | None = None


class Rule(_Seen):
    """A rule of a ruleset that is in force for a branch."""

    type: str


class Branch(_Seen):
    protected: bool


class _Login(_Seen):
    login: str


class _Tip(_Seen):
    ref: str
    user: _Login | None = None


class Pull(_Seen):
    number: int = Field(gt=0)
    head: _Tip
    base: _Tip

    def is_from(self, owner: str, branch: str, base: str) -> bool:
        """GitHub leaves a filter out that it does not understand, so its answer is looked through."""
        theirs = self.head.user is None or self.head.user.login.casefold() == owner.casefold()
        return theirs and self.head.ref == branch and self.base.ref == base


class Trouble(_Seen):
    """Every error, with details where a wish did not fit."""

    message: str = ""
    errors: list[object] = []

    def words(self) -> str:
        details = [_detail(each) for each in self.errors[:5]]
        return ": ".join([self.message, *details])


def _detail(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    return str(error.get("message") or f"{error.get('field')} is {error.get('code')}")
