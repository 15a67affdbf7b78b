"""Issues of a GitHub repository: text, labels, comments, and who put a label there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

from pydantic import AwareDatetime, Field

from podium.core.errors import NotPossibleNow
from podium.core.forge import Issue, LabelEvent, TrackerComment, is_same_label
from podium.core.model import Json
from podium.git.forge.github import (
    ApiResponse,
    GitHub,
    GitHubModel,
    GitHubRefusal,
    GitHubUser,
    IssueComment,
    bad_token_sentence,
)

_PAGE = 100
_MAX_EVENT_PAGES = 50
"""Newest events that are looked at: so many pages of 100."""
_LAST_PAGE = re.compile(r'<([^<>]{1,2000})>;\s*rel="last"')
_CAN_LABEL = frozenset({"admin", "maintain", "write", "triage"})
_T = TypeVar("_T")


class _Label(GitHubModel):
    name: str | None = None


class _IssueResponse(GitHubModel):
    number: int = Field(gt=0)
    title: str
    body: str | None = None
    user: GitHubUser | None = None
    author_association: str = "NONE"
    labels: list[_Label | str] = Field(default_factory=list)
    state: str
    locked: bool = False
    updated_at: AwareDatetime
    repository_url: str
    pull_request: dict[str, Any] | None = None

    def issue(self) -> Issue:
        names = (label if isinstance(label, str) else label.name for label in self.labels)
        return Issue(
            number=self.number,
            title=self.title,
            body=self.body or "",
            author=self.user.login if self.user else "",
            association=self.author_association,
            labels=tuple(name for name in names if name),
            is_open=self.state == "open",
            is_locked=self.locked,
            updated_at=self.updated_at,
        )


class _EventResponse(GitHubModel):
    event: str = ""
    actor: GitHubUser | None = None
    created_at: AwareDatetime | None = None
    label: _Label | None = None


class _Permission(GitHubModel):
    permission: str
    role_name: str = ""


class GitHubIssues(GitHub):
    """The issues of one repository."""

    @property
    def host(self) -> str:
        return self.project.host

    @property
    def repository(self) -> str:
        return self.project.project

    def issue_url(self, number: int) -> str:
        return f"https://{self.project.host}/{self.project.project}/issues/{number}"

    async def issue(self, number: int) -> Issue:
        response = await self._of_issue("GET", number)
        read = self._validated(response.json(), _IssueResponse)
        # A transferred issue is answered by a redirect, which may lead to another repository.
        if read.number != number or not await self._is_of_project(read):
            raise NotPossibleNow(f"{self._named(number)} was transferred to another repository")
        if read.pull_request is not None:
            raise NotPossibleNow(f"#{number} of {self.repository} is a pull request, not an issue")
        return read.issue()

    async def with_label(self, label: str, *, state: str = "open") -> Sequence[Issue]:
        query = {"labels": label, "state": state, "sort": "created", "direction": "asc"}
        rows = self._accepted(await self.get_all("/issues", _IssueResponse, query), "the issues")
        return [row.issue() for row in rows if row.pull_request is None]

    async def comments(self, number: int) -> Sequence[TrackerComment]:
        rows = await self.issue_comments(number)
        return [_comment(row) for row in self._accepted(rows, self._named(number))]

    async def comment(self, number: int, body: str) -> TrackerComment:
        row = await self.create_issue_comment(number, body)
        return _comment(self._accepted(row, self._named(number)))

    async def edit_comment(self, comment_id: int, body: str) -> None:
        path = f"/issues/comments/{comment_id}"
        response = await self._ask("PATCH", path, body={"body": body})
        self._expect(response, (200,), f"comment {comment_id}")

    async def delete_comment(self, comment_id: int) -> None:
        response = await self._ask("DELETE", f"/issues/comments/{comment_id}")
        self._expect(response, (204, 404), f"comment {comment_id}")

    async def add_label(self, number: int, label: str) -> None:
        await self._of_issue("POST", number, "/labels", body={"labels": [label]})

    async def remove_label(self, number: int, label: str) -> None:
        path = f"/labels/{quote(label, safe='')}"
        await self._of_issue("DELETE", number, path, expected=(200, 204, 404))

    async def labeled(self, number: int, label: str) -> LabelEvent | None:
        """Events come oldest first, so pages are read from the last one back."""
        first = await self._events(number, 1)
        last = _last_page(first.headers)
        for page in range(last, max(0, last - _MAX_EVENT_PAGES), -1):
            response = first if page == 1 else await self._events(number, page)
            events = self._validated(response.json(), list[_EventResponse])
            for event in reversed(events):
                if (
                    event.label is None
                    or not is_same_label(event.label.name or "", label)
                    or event.created_at is None
                ):
                    continue
                if event.event == "labeled":
                    actor = event.actor.login if event.actor else ""
                    return LabelEvent(actor=actor, at=event.created_at)
                if event.event == "unlabeled":
                    return None
        if last > _MAX_EVENT_PAGES:
            raise NotPossibleNow(
                f"the last {_MAX_EVENT_PAGES * _PAGE} events of {self._named(number)} do not say who put the label "
                f"{label!r} there; remove the label and add it again"
            )
        return None

    async def _events(self, number: int, page: int) -> ApiResponse:
        query = {"per_page": str(_PAGE), "page": str(page)}
        return await self._of_issue("GET", number, "/events", query=query)

    async def can_write(self, login: str) -> bool:
        if not login:
            return False
        path = f"/collaborators/{quote(login, safe='')}/permission"
        read = await self.get(path, _Permission)
        if isinstance(read, GitHubRefusal) and read.status == 404:
            return False
        read = self._accepted(read, f"the permissions of {login!r}")
        return not _CAN_LABEL.isdisjoint({read.permission, read.role_name})

    def _accepted(self, read: _T | GitHubRefusal, what: str) -> _T:
        if isinstance(read, GitHubRefusal):
            raise NotPossibleNow(self._issue_sentence(read, what))
        return read

    async def _of_issue(
        self,
        method: str,
        number: int,
        path: str = "",
        *,
        query: dict[str, str] | None = None,
        body: Json = None,
        expected: tuple[int, ...] = (200,),
    ) -> ApiResponse:
        response = await self._ask(method, f"/issues/{number}{path}", query=query, body=body)
        self._expect(response, expected, self._named(number))
        return response

    def _expect(self, response: ApiResponse, expected: tuple[int, ...], what: str) -> None:
        if response.status not in expected:
            raise NotPossibleNow(self._issue_sentence(self._refused(response), what))

    def _issue_sentence(self, refused: GitHubRefusal, what: str) -> str:
        detail = f" ({refused.message})" if refused.message else ""
        match refused.status:
            case 401:
                return bad_token_sentence(self.project.host)
            case 301 | 302 | 307 | 308:
                return f"{what} was transferred to another repository"
            case 403:
                return (
                    f"GitHub does not allow the token to use {what}{detail}; give it read and write access to "
                    f"issues of {self.repository}"
                )
            case 404:
                return f"{what} was not found in {self.repository}, or the token cannot access it{detail}"
            case 410:
                return f"{what} was deleted{detail}"
            case _:
                return f"GitHub refused {what}{detail or f' (status {refused.status})'}"

    def _named(self, number: int) -> str:
        return f"issue #{number}"

    async def _is_of_project(self, read: _IssueResponse) -> bool:
        """Also where the repository was renamed, and the remote has its old name."""
        path = urlsplit(read.repository_url).path
        if path.casefold().endswith(f"/repos/{self.repository}".casefold()):
            return True
        query = {"state": "all", "per_page": "1"}
        rows = await self._get("/issues", list[_IssueResponse], query)
        others = rows if not isinstance(rows, GitHubRefusal) else []
        return any(row.repository_url == read.repository_url for row in others)


def _comment(row: IssueComment) -> TrackerComment:
    return TrackerComment(
        id=row.id,
        body=row.body or "",
        author=row.user.login if row.user else "",
        association=row.author_association,
        updated_at=row.updated_at,
    )


def _last_page(headers: Mapping[str, str]) -> int:
    """Number of the last page by the `Link` header. The address itself is not followed."""
    match = _LAST_PAGE.search(headers.get("link", "")[:8000])
    numbers = parse_qs(urlsplit(match[1]).query).get("page", []) if match else []
    return int(numbers[0]) if numbers and numbers[0].isdecimal() and len(numbers[0]) < 8 else 1
