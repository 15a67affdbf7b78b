"""Issues of the GitHub on loopback, with their labels, events and the permissions of accounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.integration.forge import description

TIMESTAMP = "2026-01-01T00:00:00Z"


def _has(labels: list[str], name: str) -> bool:
    """GitHub compares names of labels without regard to case."""
    return name.casefold() in map(str.casefold, labels)


class IssueList:
    """Issues by number. Without another word, `uma` writes them as a member and labels them."""

    def __init__(self, next_id: Callable[[], int]) -> None:
        self._next_id = next_id
        self.rows: dict[int, dict[str, Any]] = {}
        self.events: dict[int, list[dict[str, Any]]] = {}
        self.permissions: dict[str, str] = {"uma": "write", "octocat": "write"}
        self.refusals: dict[int, tuple[int, str, dict[str, str]]] = {}
        """Number → status, message and headers that every request about the issue is answered with."""

    def add(
        self,
        number: int,
        title: str = "Make the sum right",
        body: str = "",
        *,
        author: str = "uma",
        association: str = "MEMBER",
        labels: tuple[str, ...] = ("podium",),
        by: str = "",
    ) -> dict[str, Any]:
        issue: dict[str, Any] = description.example("issue")
        issue |= {"number": number, "title": title, "body": body, "labels": []}
        issue |= {"author_association": association, "updated_at": TIMESTAMP, "locked": False}
        issue |= {"repository_url": "https://api.github.com/repos/octo/hello"}
        issue["user"]["login"] = author
        issue.pop("pull_request", None)
        self.rows[number], self.events[number] = issue, []
        self.label(number, *labels, by=by or author)
        return issue

    def label(self, number: int, *names: str, by: str = "uma", at: str = TIMESTAMP) -> None:
        for name in names:
            if name not in self.labels_of(number):
                shown = description.example("label-items")[0]
                self.rows[number]["labels"].append({**shown, "name": name})
                self._event(number, "labeled", name, by, at)

    def unlabel(self, number: int, name: str, *, by: str = "uma", at: str = TIMESTAMP) -> None:
        labels = self.rows[number]["labels"]
        labels[:] = [label for label in labels if label["name"].casefold() != name.casefold()]
        self._event(number, "unlabeled", name, by, at)

    def labels_of(self, number: int) -> list[str]:
        return [label["name"] for label in self.rows[number]["labels"]]

    def add_events(self, number: int, count: int) -> None:
        """Label and unlabel it so often with something else."""
        for turn in range(count):
            self._event(
                number, "labeled" if turn % 2 == 0 else "unlabeled", "bug", "uma", TIMESTAMP
            )

    def _event(self, number: int, kind: str, label: str, by: str, at: str) -> None:
        event: dict[str, Any] = description.example("issue-event-for-issue-items")[0]
        event |= {"id": self._next_id(), "event": kind, "created_at": at}
        event |= {"commit_id": None, "commit_url": None}
        event["label"] = {"name": label, "color": "red"}
        event["actor"]["login"] = by
        self.events[number].append(event)

    def listed(self, query: Mapping[str, str]) -> list[dict[str, Any]]:
        """Issues with the label, oldest first, as lists show them."""
        state = query.get("state", "open")
        return [
            issue
            for number, issue in sorted(self.rows.items())
            if state in ("all", issue["state"])
            and ("labels" not in query or _has(self.labels_of(number), query["labels"]))
        ]

    def permission(self, login: str) -> dict[str, Any]:
        name = "repository-collaborator-permission-response-if-user-has-admin-permissions"
        shown: dict[str, Any] = description.example(name)
        role = self.permissions.get(login, "read")
        shown |= {"permission": role if role in ("admin", "write", "none") else "read"}
        shown["role_name"] = role
        shown["user"] |= {"login": login, "role_name": role}
        return shown
