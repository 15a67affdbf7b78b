"""A GitHub on loopback. Every request to it and every answer of it must fit GitHub's own description."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from tests.integration.forge import description

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
    x_ratelimit_reset="1767270600",  # half an hour behind the tests' first moment
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
        }
        return routes[path]() if path in routes else NOT_FOUND

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
            made.append(pull)
        self.pulls.append(made[1])
        return made[0]

    def _filtered(self, query: Mapping[str, str]) -> list[Any]:
        return [
            pull
            for pull in self.pulls
            if pull["head"]["label"] == query["head"] and pull["base"]["ref"] == query["base"]
        ]


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
            self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _serve(self, body: Any) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, body)
            github.asked.append(asked)
            transcript = github.answer(asked)
            if transcript.raw is None:
                github.faults += description.faults_of_request(asked.method, asked.target, body)
                github.faults += description.faults_of_answer(
                    asked.method, asked.target, transcript.status, transcript.body
                )
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
