"""A GitHub on loopback. Every request to it and every answer of it must fit GitHub's own description."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.integration.forge import description
from tests.integration.forge.issue_list import IssueList

TOKEN = "ghp_ThisIsTheTokenOfTheTests0123456789ab"

_REPOSITORY = "/repos/{owner}/{repo}"


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: Any

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))


@dataclass(frozen=True)
class GitHubResponse:
    """An answer. `raw` stands for bodies that no GitHub would send."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None


def trouble(status: int, message: str, **headers: str) -> GitHubResponse:
    body = {"message": message, "documentation_url": "https://docs.github.com/rest"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return GitHubResponse(status, body, named)


NOT_PROTECTED = trouble(404, "Branch not protected")
NOT_FOUND = trouble(404, "Not Found")
NO_PERMISSION = trouble(403, "Resource not accessible by personal access token")
BAD_TOKEN = trouble(401, "Bad credentials")
SPENT = trouble(
    403,
    "API rate limit exceeded for user ID 1.",
    x_ratelimit_remaining="0",
    x_ratelimit_reset="1767270600",  # half an hour behind the tests' first closed_at
)


def rule(kind: str, **parameters: Any) -> dict[str, Any]:
    payload = {"type": kind, "ruleset_source_type": "Repository", "ruleset_source": "octo/hello"}
    return {**payload, "ruleset_id": 42, **({"parameters": parameters} if parameters else {})}


PULL_REQUEST_RULE = rule(
    "pull_request",
    dismiss_stale_reviews_on_push=False,
    require_code_owner_review=False,
    require_last_push_approval=False,
    required_approving_review_count=1,
    required_review_thread_resolution=False,
)
NO_FORCE_RULE = rule("non_fast_forward")


class GitHubServer:
    """Answers as it was set up; without a change the branch is there and nothing protects it."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.faults: list[str] = []
        self.protection = NOT_PROTECTED
        self.rules: GitHubResponse | list[Any] = []
        self.branch: GitHubResponse | None = None
        self.everything: GitHubResponse | None = None
        """Answers all requests, where it is set."""
        self.pulls: list[dict[str, Any]] = []
        self.hidden_lists = 0
        """So many lists of pull requests do not show the newest yet."""
        self.creating: GitHubResponse | None = None
        self.full_pulls: dict[int, dict[str, Any]] = {}
        """Number → the pull request as a request for it alone is answered."""
        self.head_of: Callable[[str], str] | None = None
        """Gives the commit of a branch; without it, all pull requests have the commit of GitHub's example."""
        self.issue_comments: dict[int, list[dict[str, Any]]] = {}
        """Number of an issue or pull request → the comments of its conversation, oldest first."""
        self.review_comments: dict[int, list[dict[str, Any]]] = {}
        self.reviews: dict[int, list[dict[str, Any]]] = {}
        self.check_runs: dict[str, list[dict[str, Any]]] = {}
        """Commit → its check runs."""
        self.statuses: dict[str, list[dict[str, Any]]] = {}
        self.annotations: dict[int, list[dict[str, Any]]] = {}
        self.logs: dict[int, str] = {}
        """Job → its log, which is served from another address, as GitHub does."""
        self.log_address = ""
        """Address of that other host. Empty: this machine under another name."""
        self.log_requests: list[Mapping[str, str]] = []
        """Headers of the requests for logs at that other address."""
        self.login = "octocat"
        """User of the token."""
        self.may_write_locked = False
        """The token is of somebody who may comment on locked issues."""
        self.unchanged = 0
        """Number of conditional requests that were answered with 304."""
        self.after: Callable[[Asked], GitHubResponse | None] = lambda asked: None
        """Called after a request was done; what it gives replaces the answer."""
        self.issues = IssueList(self.next_id)
        self._last_id = 1000
        self._lock = threading.RLock()

    def answer(self, asked: Asked) -> GitHubResponse:
        if self.everything is not None:
            return self.everything
        path, parts = description.path_of(asked.target)
        routes: dict[str, Callable[[], GitHubResponse]] = {
            f"{_REPOSITORY}/branches/{{branch}}/protection": lambda: self.protection,
            f"{_REPOSITORY}/branches/{{branch}}": lambda: (
                self.branch or self._branch(parts["branch"])
            ),
            f"{_REPOSITORY}/rules/branches/{{branch}}": lambda: self._rules(asked.query),
            f"{_REPOSITORY}/pulls": lambda: self._pulls(asked),
            f"{_REPOSITORY}/pulls/{{pull_number}}": lambda: self._pull(int(parts["pull_number"])),
            f"{_REPOSITORY}/pulls/{{pull_number}}/reviews": lambda: self._of_pull(
                asked, parts, self.reviews
            ),
            f"{_REPOSITORY}/pulls/{{pull_number}}/comments": lambda: self._of_pull(
                asked, parts, self.review_comments
            ),
            f"{_REPOSITORY}/pulls/{{pull_number}}/comments/{{comment_id}}/replies": lambda: (
                self._reply(asked, int(parts["pull_number"]), int(parts["comment_id"]))
            ),
            f"{_REPOSITORY}/issues/{{issue_number}}/comments": lambda: self._issue_comments(
                asked, int(parts["issue_number"])
            ),
            **{
                f"{_REPOSITORY}{path}": lambda: self._of_issues(asked, parts)
                for path in (
                    "/issues",
                    "/issues/{issue_number}",
                    "/issues/{issue_number}/events",
                    "/issues/{issue_number}/labels",
                    "/issues/{issue_number}/labels/{name}",
                    "/issues/comments/{comment_id}",
                )
            },
            f"{_REPOSITORY}/collaborators/{{username}}/permission": lambda: GitHubResponse(
                200, self.issues.permission(parts["username"])
            ),
            f"{_REPOSITORY}/commits/{{ref}}/check-runs": lambda: page_of(
                asked, self.check_runs.get(parts["ref"], []), "check_runs"
            ),
            f"{_REPOSITORY}/commits/{{ref}}/status": lambda: self._status(asked, parts["ref"]),
            f"{_REPOSITORY}/check-runs/{{check_run_id}}/annotations": lambda: page_of(
                asked, self.annotations.get(int(parts["check_run_id"]), [])
            ),
            f"{_REPOSITORY}/actions/jobs/{{job_id}}/logs": lambda: self._log(int(parts["job_id"])),
        }
        if path not in routes:
            return NOT_FOUND
        with self._lock:
            transcript = routes[path]()
            if "issue_number" in parts and (refusal := self._refused(asked, parts)):
                transcript = refusal
            return self.after(asked) or transcript

    def _refused(self, asked: Asked, parts: Mapping[str, str]) -> GitHubResponse | None:
        number = int(parts["issue_number"])
        if number in self.issues.refusals:
            status, message, headers = self.issues.refusals[number]
            return trouble(status, message, **headers)
        issue = self.issues.rows.get(number)
        is_write = asked.method == "POST" and asked.target.endswith("/comments")
        if is_write and issue is not None and issue["locked"] and not self.may_write_locked:
            return trouble(403, "Unable to create comment because issue is locked.")
        return None

    def _of_issues(self, asked: Asked, parts: Mapping[str, str]) -> GitHubResponse:
        """Answer about issues, their labels and their events."""
        issues, number = self.issues, int(parts.get("issue_number", 0))
        last = urlsplit(asked.target).path.split("/")[4:]
        if last == ["issues"]:
            return page_of(asked, issues.listed(asked.query))
        if last[:2] == ["issues", "comments"]:
            return self._one_comment(asked, int(parts["comment_id"]))
        if number not in issues.rows:
            return NOT_FOUND
        match last[2:]:
            case []:
                return GitHubResponse(200, issues.rows[number])
            case ["events"]:
                return page_of(asked, issues.events[number])
            case ["labels"]:
                issues.label(number, *asked.body["labels"], by=self.login)
            case _ if parts["name"].casefold() not in map(str.casefold, issues.labels_of(number)):
                return trouble(404, "Label does not exist")
            case _:
                issues.unlabel(number, parts["name"], by=self.login)
        return GitHubResponse(200, issues.rows[number]["labels"])

    def _one_comment(self, asked: Asked, comment_id: int) -> GitHubResponse:
        for comments in self.issue_comments.values():
            for comment in comments:
                if comment["id"] == comment_id:
                    if asked.method == "DELETE":
                        comments.remove(comment)
                        return GitHubResponse(204, raw=b"")
                    comment["body"] = asked.body["body"]
                    comment["updated_at"] = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
                    return GitHubResponse(200, comment)
        return NOT_FOUND

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _pull(self, number: int) -> GitHubResponse:
        if number not in self.full_pulls:
            return NOT_FOUND
        pull = self.full_pulls[number]
        if self.head_of is not None and pull["state"] == "open":
            pull["head"]["sha"] = self.head_of(pull["head"]["ref"]) or pull["head"]["sha"]
        return GitHubResponse(200, pull)

    def close(self, number: int, *, merged_as: str = "") -> None:
        """Close a pull request, merged with this commit or without being merged."""
        self._pull(number)
        self._set_state(number, "closed")
        closed_at = "2026-01-02T03:04:05Z"
        self.full_pulls[number] |= {
            "merged": bool(merged_as),
            "merged_at": closed_at if merged_as else None,
            "merge_commit_sha": merged_as or None,
            "closed_at": closed_at,
        }

    def reopen(self, number: int) -> None:
        self._set_state(number, "open")

    def _set_state(self, number: int, state: str) -> None:
        self.full_pulls[number]["state"] = state
        for pull in self.pulls:
            if pull["number"] == number:
                pull["state"] = state

    def _of_pull(
        self, asked: Asked, parts: Mapping[str, str], lists: dict[int, list[dict[str, Any]]]
    ) -> GitHubResponse:
        number = int(parts["pull_number"])
        return page_of(asked, lists.get(number, [])) if number in self.full_pulls else NOT_FOUND

    def comment(
        self, number: int, body: str, *, author: str = "uma", association: str = "MEMBER", bot: bool = False
    ) -> dict[str, Any]:  # fmt: skip
        """Write into the conversation of an issue or pull request."""
        comment = self._comment("issue-comment", body, author, association, bot)
        self.issue_comments.setdefault(number, []).append(comment)
        return comment

    def review_comment(
        self, number: int, body: str, *, path: str = "calc.py", line: int = 1, author: str = "uma",
        association: str = "MEMBER", bot: bool = False, reply_to: int | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Write a comment on a line of the change, in a new thread or in that of another one."""
        comment = self._comment("pull-request-review-comment", body, author, association, bot)
        comment |= {"path": path, "line": line, "start_line": None, "original_start_line": None}
        comment.pop("in_reply_to_id", None)
        if reply_to is not None:
            comment["in_reply_to_id"] = reply_to
        self.review_comments.setdefault(number, []).append(comment)
        return comment

    def review(
        self, number: int, body: str, *, state: str = "CHANGES_REQUESTED", author: str = "uma",
        association: str = "MEMBER", bot: bool = False,
    ) -> dict[str, Any]:  # fmt: skip
        """Submit a review with a summary."""
        review: dict[str, Any] = description.example("pull-request-review-items")[0]
        review |= {"id": self.next_id(), "body": body, "state": state}
        review |= {"author_association": association}
        review["user"] |= {"login": author, "type": "Bot" if bot else "User"}
        self.reviews.setdefault(number, []).append(review)
        return review

    def check_run(
        self, commit: str, name: str, conclusion: str | None, *, summary: str = "", log: str = ""
    ) -> dict[str, Any]:
        """Report a check run; without a conclusion it still runs. With a log it is one of GitHub Actions."""
        run: dict[str, Any] = description.example("check-run-paginated")["check_runs"][0]
        run |= {"id": self.next_id(), "name": name, "head_sha": commit, "conclusion": conclusion}
        run |= {"status": "completed" if conclusion else "in_progress"}
        run["output"] |= {"title": name, "summary": summary, "text": "", "annotations_count": 0}
        run["app"]["slug"] = "github-actions" if log else "octoapp"
        if log:
            self.logs[run["id"]] = log
        self.check_runs.setdefault(commit, []).append(run)
        return run

    def status(self, commit: str, context: str, state: str, words: str = "") -> dict[str, Any]:
        """Report a commit status."""
        status: dict[str, Any] = description.example("combined-commit-status")["statuses"][0]
        status |= {"id": self.next_id(), "context": context, "state": state, "description": words}
        self.statuses.setdefault(commit, []).append(status)
        return status

    def _comment(
        self, kind: str, body: str, author: str, association: str, bot: bool
    ) -> dict[str, Any]:
        comment: dict[str, Any] = description.example(kind)
        number = self.next_id()
        comment |= {"id": number, "body": body, "author_association": association}
        comment |= {"html_url": f"https://github.com/octo/hello/pull/100#comment-{number}"}
        comment["user"] |= {"login": author, "type": "Bot" if bot else "User"}
        return comment

    def _issue_comments(self, asked: Asked, number: int) -> GitHubResponse:
        if asked.method == "GET":
            return page_of(asked, self.issue_comments.get(number, []))
        body = asked.body["body"]
        return GitHubResponse(201, self.comment(number, body, author=self.login))

    def _reply(self, asked: Asked, number: int, comment_id: int) -> GitHubResponse:
        theirs = self.review_comments.get(number, [])
        parent = next((item for item in theirs if item["id"] == comment_id), None)
        if parent is None:
            return NOT_FOUND
        if parent.get("in_reply_to_id") is not None:
            return trouble(422, "Replies to replies are not supported")
        body = asked.body["body"]
        reply = self.review_comment(number, body, author=self.login, reply_to=comment_id)
        return GitHubResponse(201, reply)

    def _status(self, asked: Asked, commit: str) -> GitHubResponse:
        shown = description.example("combined-commit-status")
        statuses = self.statuses.get(commit, [])
        page = page_of(asked, statuses)
        states = {status["state"] for status in statuses}
        state = "failure" if states & {"failure", "error"} else "pending"
        state = "success" if states == {"success"} else state
        shown |= {"statuses": page.body, "state": state, "sha": commit}
        shown |= {"total_count": len(statuses)}
        return GitHubResponse(200, shown, page.headers)

    def _log(self, job: int) -> GitHubResponse:
        if job not in self.logs:
            return NOT_FOUND
        address = self.log_address or f"http://localhost:{urlsplit(self.url).port}"
        return GitHubResponse(302, raw=b"", headers={"Location": f"{address}/logs/{job}"})

    def _branch(self, name: str) -> GitHubResponse:
        protected = self.protection is not NOT_PROTECTED
        return GitHubResponse(
            200, {**description.example("branch-get"), "name": name, "protected": protected}
        )

    def _rules(self, query: Mapping[str, str]) -> GitHubResponse:
        if isinstance(self.rules, GitHubResponse):
            return self.rules
        size, page = int(query.get("per_page", "30")), int(query.get("page", "1"))
        return GitHubResponse(200, self.rules[(page - 1) * size : page * size])

    def _pulls(self, asked: Asked) -> GitHubResponse:
        if asked.method == "GET":
            self.hidden_lists -= 1
            return GitHubResponse(
                200, [] if self.hidden_lists >= 0 else self._filtered(asked.query)
            )
        if self.creating is not None:
            return self.creating
        owner, _, branch = asked.body["head"].partition(":")
        if self._filtered({"head": asked.body["head"], "base": asked.body["base"]}):
            text = f"A pull request already exists for {owner}:{branch}."
            error = {"resource": "PullRequest", "code": "custom", "message": text}
            return GitHubResponse(
                422, {"message": "Validation Failed", "errors": [error], "documentation_url": ""}
            )
        return GitHubResponse(201, self.opened(owner, branch, **asked.body))

    def opened(self, owner: str, branch: str, base: str, **fields: Any) -> dict[str, Any]:
        """Open a pull request. Gives it in full; lists show it in short."""
        number = 100 + len(self.pulls)
        made: list[dict[str, Any]] = []
        for name in ("pull-request", "pull-request-simple-items"):
            shown = description.example(name)
            pull = shown[0] if isinstance(shown, list) else shown
            pull |= {
                "number": number,
                "title": fields.get("title", ""),
                "body": fields.get("body", ""),
            }
            pull["head"] |= {"ref": branch, "label": f"{owner}:{branch}"}
            pull["head"]["user"]["login"] = owner
            pull["base"]["ref"] = base
            pull |= {"state": "open", "locked": False, "merged_at": None, "closed_at": None}
            pull["user"]["login"] = self.login
            made.append(pull)
        made[0]["merge_commit_sha"] = None
        self.pulls.append(made[1])
        self.full_pulls[number] = made[0]
        return made[0]

    def _filtered(self, query: Mapping[str, str]) -> list[Any]:
        return [
            pull
            for pull in self.pulls
            if pull["head"]["label"] == query["head"]
            and pull["base"]["ref"] == query["base"]
            and pull["state"] == "open"
        ]


def page_of(asked: Asked, items: list[Any], key: str = "") -> GitHubResponse:
    """Return the part of a list that was asked for, with a link to the next one."""
    size, page = int(asked.query.get("per_page", "30")), int(asked.query.get("page", "1"))
    part = items[(page - 1) * size : page * size]
    headers = {}
    if len(items) > page * size:
        path = urlsplit(asked.target).path
        rest = {**asked.query, "page": str(page + 1)}
        target = f"https://api.github.com{path}?{urlencode(rest)}"
        last = f"https://api.github.com{path}?{urlencode({**rest, 'page': -(-len(items) // size)})}"
        headers["Link"] = f'<{target}>; rel="next", <{last}>; rel="last"'
    return GitHubResponse(
        200, {"total_count": len(items), key: part} if key else part, headers=headers
    )


@contextmanager
def serving() -> Iterator[GitHubServer]:
    """Serve until the end of the block, then hold everything that was said against the description."""
    github = GitHubServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(github))
    server.daemon_threads = True
    github.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield github
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert github.faults == []


def _handler(github: GitHubServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._serve(None)

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            self._serve(json.loads(self.rfile.read(length)) if length else None)

        do_PATCH = do_DELETE = do_POST  # noqa: N815 — names of the standard library

        def _serve(self, body: Any) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            if self.path.startswith("/logs/"):
                github.log_requests.append(headers)
                log = github.logs[int(self.path.removeprefix("/logs/"))]
                self._notify(GitHubResponse(200, raw=log.encode()))
                return
            asked = Asked(self.command, self.path, headers, body)
            github.asked.append(asked)
            transcript = github.answer(asked)
            if transcript.raw is None:
                github.faults += description.faults_of_request(asked.method, asked.target, body)
                github.faults += description.faults_of_answer(
                    asked.method, asked.target, transcript.status, transcript.body
                )
                transcript = _conditional(github, asked, transcript)
            self._notify(transcript)

        def _notify(self, transcript: GitHubResponse) -> None:
            data = (
                json.dumps(transcript.body).encode() if transcript.raw is None else transcript.raw
            )
            self.send_response(transcript.status)
            for name, value in {"Content-Length": str(len(data)), **transcript.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


def _conditional(github: GitHubServer, asked: Asked, answer: GitHubResponse) -> GitHubResponse:
    """Add an ETag, or answer with 304 where the client has that version already."""
    if asked.method != "GET" or answer.status != 200:
        return answer
    whole = json.dumps([answer.body, dict(answer.headers)]).encode()
    etag = f'W/"{hashlib.sha256(whole).hexdigest()}"'
    if asked.headers.get("if-none-match") == etag:
        github.unchanged += 1
        return GitHubResponse(304, raw=b"", headers={"ETag": etag})
    return replace(answer, headers={**answer.headers, "ETag": etag})
