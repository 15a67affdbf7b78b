"""GitHub's REST API for branches and pull requests: bounded requests to one host, validated responses."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import re
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode, urljoin, urlsplit

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from podium.core.errors import BadInput, ForgeUnavailable, NotPossibleNow, RateLimited
from podium.core.model import Json
from podium.git.forge.remotes import RemoteAddress, plain, safe_output
from podium.ports.engine import Clock

_MAX_BYTES = 8_000_000
_MAX_DOWNLOAD_BYTES = 64_000_000
_MAX_REDIRECTS = 3
_KEEPS_METHOD = (307, 308)
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class ApiResponse:
    """Response of an untrusted server: validate the body before use."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    def json(self) -> Json:
        """None where the body is no JSON. Halves of characters, which nothing can store, are replaced."""
        try:
            value = json.loads(self.body)
            return _storable(value) if _SURROGATE.search(self.body) else value
        except (ValueError, RecursionError):
            return None


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _storable(value: Json) -> Json:
    match value:
        case str():
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        case list():
            return [_storable(item) for item in value]
        case dict():
            return {_storable(key): _storable(item) for key, item in value.items()}
        case _:
            return value


class AnswerTooLong(ForgeUnavailable):
    """The answer has more bytes than are read. A list can be asked for in smaller parts."""


class _TooLong(OSError):
    pass


class _AnyStatus(urllib.request.HTTPErrorProcessor):
    """Hands every answer over as it is: no error for a status, and no redirect followed with our headers."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


class ApiClient:
    """Asks one API. The token goes to that API's host and nowhere else."""

    def __init__(self, base_url: str, headers: Mapping[str, str], *, seconds: float) -> None:
        self._base_url = _checked(base_url).rstrip("/")
        self._headers = dict(headers)
        self._seconds = seconds

    async def ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
    ) -> ApiResponse:
        """The answer, whatever its status. Raises `ForgeUnavailable` when none came."""
        url = f"{self._base_url}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else json.dumps(body).encode()
        everything = {**self._headers, **(headers or {})}
        return await self._waited(lambda: self._followed(method, url, data, everything))

    async def download(self, path: str, most_bytes: int) -> ApiResponse:
        """Follow the API's redirect to a file at any host, which gets no token. Gives the end of the file.

        A file that cannot be had is an answer with its status, or with 0 where its host gives none: the API itself may be
        well. Raises `ForgeUnavailable` when the API gave no answer.
        """
        return await self._waited(lambda: self._downloaded(f"{self._base_url}{path}", most_bytes))

    def _downloaded(self, url: str, most_bytes: int) -> ApiResponse:
        deadline = time.monotonic() + self._seconds
        answer = self._once("GET", url, None, deadline, self._headers)
        target = answer.headers.get("location", "")
        if answer.status not in (301, 302, *_KEEPS_METHOD) or not target:
            return answer
        with contextlib.suppress(OSError, HTTPException, ValueError):
            there = urlsplit(target)
            is_local = _is_this_machine(urlsplit(self._base_url).hostname or "")
            if there.scheme == "https" or (is_local and _is_this_machine(there.hostname or "")):
                return self._file(target, deadline - self._seconds / 4, most_bytes)
        return ApiResponse(0, {}, b"")

    def _file(self, url: str, deadline: float, most_bytes: int) -> ApiResponse:
        opener = urllib.request.build_opener(_AnyStatus)
        seconds = max(1.0, deadline - time.monotonic())
        with opener.open(urllib.request.Request(url), timeout=seconds) as response:  # noqa: S310 — checked
            return ApiResponse(response.status, {}, _end_of(response, deadline, most_bytes))

    async def _waited(self, work: Callable[[], ApiResponse]) -> ApiResponse:
        try:
            async with asyncio.timeout(self._seconds):
                return await _in_thread(work)
        except TimeoutError:
            why = f"no complete answer within {self._seconds:g} seconds"
        except _TooLong as error:
            raise AnswerTooLong(f"cannot read from {self.host}: {error}") from None
        except (OSError, HTTPException, ValueError) as error:
            why = _reason(error)
        raise ForgeUnavailable(f"cannot reach {self.host}: {why}")

    @property
    def host(self) -> str:
        return urlsplit(self._base_url).netloc

    def _followed(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str]
    ) -> ApiResponse:
        deadline = time.monotonic() + self._seconds
        for _ in range(_MAX_REDIRECTS + 1):
            answer = self._once(method, url, data, deadline, headers)
            target = answer.headers.get("location", "")
            if answer.status not in (301, 302, *_KEEPS_METHOD) or not target:
                return answer
            # Renamed repositories are answered so. A POST that would become a GET is not followed.
            if method != "GET" and answer.status not in _KEEPS_METHOD:
                return answer
            url = _same_host(url, target)
        raise OSError("too many redirects")

    def _once(
        self,
        method: str,
        url: str,
        data: bytes | None,
        deadline: float,
        headers: Mapping[str, str],
    ) -> ApiResponse:
        request = urllib.request.Request(url, data, dict(headers), method=method)  # noqa: S310 — checked
        if data is not None:
            request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(_AnyStatus)
        with opener.open(request, timeout=self._seconds) as response:
            headers = {name.lower(): value for name, value in response.headers.items()}
            return ApiResponse(response.status, headers, _read(response, deadline))


def _read(response: HTTPResponse, deadline: float) -> bytes:
    body = b""
    while piece := response.read1(65_536):
        body += piece
        if len(body) > _MAX_BYTES:
            raise _TooLong(f"the answer is longer than {_MAX_BYTES} bytes")
        if time.monotonic() > deadline:
            raise TimeoutError
    return body


def _end_of(response: HTTPResponse, deadline: float, most_bytes: int) -> bytes:
    body, read = b"", 0
    while piece := response.read1(65_536):
        body, read = (body + piece)[-most_bytes:], read + len(piece)
        if read > _MAX_DOWNLOAD_BYTES or time.monotonic() > deadline:
            # The beginning is no end: what is not read whole is not shown.
            raise OSError(f"the file is longer than {_MAX_DOWNLOAD_BYTES} bytes, or too slow")
    return body


def _same_host(url: str, target: str) -> str:
    there = urljoin(url, target)
    if urlsplit(there)[:2] != urlsplit(url)[:2]:
        raise OSError(
            f"it redirects to another host ({plain(urlsplit(there).netloc, 100)!r}); nothing was sent there"
        )
    return there


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(inner, TimeoutError):
        return "no answer in time"
    return plain(getattr(inner, "strerror", None) or str(inner), 200) or type(inner).__name__


def _checked(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        host = parts.hostname or ""
    except ValueError:
        host = ""
    if not host or parts.username or parts.query or parts.fragment:
        raise BadInput(
            "the address of the GitHub API is not valid; use one such as https://github.example.org/api/v3"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_this_machine(host)):
        raise BadInput(f"the GitHub API at {host!r} must use https, because a token is sent to it")
    return base_url


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    """Run it in a thread that nobody has to wait for: an answer may drip in for hours."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def settle(set_it: Callable[[Any], None], value: object) -> None:
        if not done.done():
            set_it(value)

    def run() -> None:
        try:
            outcome: tuple[Callable[[Any], None], object] = (done.set_result, work())
        except Exception as error:
            outcome = (done.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop may be gone by now
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name="podium-forge", daemon=True).start()
    return await done


class GitHubModel(BaseModel):
    """Part of an answer: what is not named here is not looked at."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class EnabledFlag(GitHubModel):
    enabled: bool = False


class BranchProtection(GitHubModel):
    """Branch protection of the older kind."""

    url: str
    """Not used, but always there: by it an empty object is not taken for a protection."""
    required_pull_request_reviews: dict[str, object] | None = None
    allow_force_pushes: EnabledFlag | None = None
    enforce_admins: EnabledFlag | None = None


class RulesetRule(GitHubModel):
    """A rule of a ruleset that is in force for a branch."""

    type: str


class GitHubBranch(GitHubModel):
    protected: bool


class GitHubUser(GitHubModel):
    login: str
    type: str = "User"
    """`Bot` for an app."""


class _CommitRef(GitHubModel):
    ref: str
    user: GitHubUser | None = None


class PullResponse(GitHubModel):
    number: int = Field(gt=0)
    head: _CommitRef
    base: _CommitRef

    def is_from(self, owner: str, branch: str, base: str) -> bool:
        """GitHub leaves a filter out that it does not understand, so its answer is looked through."""
        theirs = self.head.user is None or self.head.user.login.casefold() == owner.casefold()
        return theirs and self.head.ref == branch and self.base.ref == base


class IssueComment(GitHubModel):
    """Comment in the conversation of an issue or of a pull request."""

    id: int
    body: str | None = None
    user: GitHubUser | None = None
    """None: the account is gone."""
    author_association: str = "NONE"
    created_at: AwareDatetime
    updated_at: AwareDatetime
    html_url: str = ""


class GitHubError(GitHubModel):
    """An error response, with details where a request was not valid."""

    message: str = ""
    errors: list[object] = []

    def text(self) -> str:
        details = [_detail(error) for error in self.errors[:5]]
        return ": ".join([self.message, *details])


def _detail(error: object) -> str:
    if not isinstance(error, dict):
        return str(error)
    return str(error.get("message") or f"{error.get('field')} is {error.get('code')}")


_TITLE_CHARACTERS = 256
_BODY_CHARACTERS = 65_536
"""GitHub refuses longer ones."""
_CUT = "\n\n*The rest was too long for a pull request.*"
_PAGE = 100
_MAX_PAGES = 10
_SHORT_PAGE = 5
"""Size of a page whose items are long: a comment of 65,536 signs can have twelve times as many bytes."""
_MAX_LIST_ITEMS = 5_000
_NEXT_PAGE = re.compile(r"[?&]page=(\d{1,6})\b[^>]*>\s*;[^,]*\brel=\"?next\b")
_MAX_CACHED_BYTES = 64_000_000
"""Of all answers together. Each pull request that is followed needs about eight."""
_MAX_ANSWER_BYTES = 4_000_000
_SHORTEST_WAIT = timedelta(minutes=1)
_MAX_WAIT = timedelta(days=1)


@dataclass(frozen=True)
class GitHubRefusal:
    """An answer that says no: 401, 403, 404, 422 or the like. `message` is GitHub's, cleaned."""

    status: int
    message: str


_ResponseT = TypeVar("_ResponseT")


class AnswerCache:
    """Last answers of this process, by address: a conditional request that is answered with 304 costs no quota."""

    def __init__(self, most_bytes: int = _MAX_CACHED_BYTES) -> None:
        self._answers: dict[str, ApiResponse] = {}
        self._most_bytes = most_bytes
        self._bytes = 0
        self.long_lists: set[str] = set()
        """Paths of lists that are asked for in smaller parts."""

    def known(self, key: str) -> ApiResponse | None:
        return self._answers.get(key)

    def settled(self, key: str, known: ApiResponse | None, answer: ApiResponse) -> ApiResponse:
        """The answer to use: of an unchanged resource the one that was `known` when it was asked for."""
        if answer.status == 304 and known is not None:
            answer = known
        self._drop(key)
        if answer.status == 200 and "etag" in answer.headers and len(answer.body) <= _MAX_ANSWER_BYTES:  # fmt: skip
            self._answers[key] = answer
            self._bytes += len(answer.body)
            while self._bytes > self._most_bytes:
                self._drop(
                    next(iter(self._answers))
                )  # the one that was not used for the longest time
        return answer

    def _drop(self, key: str) -> None:
        answer = self._answers.pop(key, None)
        self._bytes -= len(answer.body) if answer else 0


@dataclass(frozen=True)
class _Page(Generic[_ResponseT]):
    """Part of a list, and the number of the next one. Empty: it is the last."""

    items: list[_ResponseT]
    following: str


class GitHub:
    """One repository of a GitHub. All questions may raise `RateLimited` or `ForgeUnavailable`."""

    def __init__(
        self,
        api_url: str,
        token: str,
        project: RemoteAddress,
        clock: Clock,
        *,
        seconds: float = 30.0,
        cache: AnswerCache | None = None,
    ) -> None:
        self.project = project
        self._cache = cache or AnswerCache()
        self._token = token
        self._clock = clock
        self._client = ApiClient(api_url, _headers(token), seconds=seconds)

    async def protection(self, branch: str) -> BranchProtection | GitHubRefusal:
        return await self._get(f"/branches/{_quoted(branch)}/protection", BranchProtection)

    async def branch(self, branch: str) -> GitHubBranch | GitHubRefusal:
        return await self._get(f"/branches/{_quoted(branch)}", GitHubBranch)

    async def rules(self, branch: str) -> Sequence[RulesetRule] | GitHubRefusal:
        """List the rules for a branch, of the repository and of its organisation."""
        rules: list[RulesetRule] = []
        for page in range(1, _MAX_PAGES + 1):
            query = {"per_page": str(_PAGE), "page": str(page)}
            more = await self._get(f"/rules/branches/{_quoted(branch)}", list[RulesetRule], query)
            if isinstance(more, GitHubRefusal):
                return more
            rules += more
            if len(more) < _PAGE:
                break
        return rules

    async def open_pull(self, owner: str, branch: str, base: str) -> int | None:
        """The number of the open pull request from this branch into that one."""
        query = {"state": "open", "head": f"{owner}:{branch}", "base": base, "per_page": str(_PAGE)}
        pulls = await self._get("/pulls", list[PullResponse], query)
        if isinstance(pulls, GitHubRefusal):
            raise NotPossibleNow(self.sentence(pulls))
        return next((pull.number for pull in pulls if pull.is_from(owner, branch, base)), None)

    async def create_pull(
        self, owner: str, branch: str, base: str, title: str, body: str
    ) -> int | GitHubRefusal:
        """Open one and give its number."""
        spec = {"title": _cut(title, _TITLE_CHARACTERS, "…"), "head": f"{owner}:{branch}"}
        spec |= {"base": base, "body": _cut(body, _BODY_CHARACTERS, _CUT)}
        answer = await self._ask("POST", "/pulls", body=spec)
        if answer.status != 201:
            return self._refused(answer)
        return self._validated(answer.json(), PullResponse).number

    async def issue_comments(self, number: int) -> list[IssueComment] | GitHubRefusal:
        """List the comments of the conversation of an issue or pull request, oldest first."""
        return await self.get_all(f"/issues/{number}/comments", IssueComment)

    async def create_issue_comment(self, number: int, body: str) -> IssueComment | GitHubRefusal:
        """Write into that conversation. Search for what an earlier try wrote first: nothing here does."""
        payload = {"body": _cut(body, _BODY_CHARACTERS, _CUT)}
        return await self.create(f"/issues/{number}/comments", payload, IssueComment)

    async def get_all(
        self,
        path: str,
        kind: type[_ResponseT],
        query: Mapping[str, str] | None = None,
        *,
        key: str = "",
    ) -> list[_ResponseT] | GitHubRefusal:
        """Read all pages of a list; `key` is the field that holds it, where it is in an object.

        Raises `NotPossibleNow` for a list that is longer than any that is worth reading.
        """
        try:
            if path not in self._cache.long_lists:
                return await self._pages(path, kind, query or {}, key, _PAGE)
        except AnswerTooLong:
            self._cache.long_lists.add(path)
        return await self._pages(path, kind, query or {}, key, _SHORT_PAGE)

    async def _pages(
        self, path: str, kind: type[_ResponseT], query: Mapping[str, str], key: str, size: int
    ) -> list[_ResponseT] | GitHubRefusal:
        items: list[_ResponseT] = []
        page = "1"
        for _ in range(_MAX_LIST_ITEMS // size):
            rows = await self._page(path, kind, {**query, "per_page": str(size), "page": page}, key)
            if isinstance(rows, GitHubRefusal):
                return rows
            items += rows.items
            if not rows.following:
                return items
            page = rows.following
        raise NotPossibleNow(
            f"{self.project.project} on {self.project.host} lists more than {_MAX_LIST_ITEMS} items at {path}"
        )

    async def first(self, path: str, kind: type[_ResponseT]) -> list[_ResponseT] | GitHubRefusal:
        """Read the beginning of a list, however long it is."""
        query = {"per_page": str(_PAGE), "page": "1"}
        rows = await self._page(path, kind, query, "")
        return rows if isinstance(rows, GitHubRefusal) else rows.items

    async def _page(
        self, path: str, kind: type[_ResponseT], query: dict[str, str], key: str
    ) -> _Page[_ResponseT] | GitHubRefusal:
        answer = await self._ask("GET", path, query=query)
        if answer.status != 200:
            return self._refused(answer)
        body = answer.json()
        rows = body.get(key) if key and isinstance(body, dict) else body
        following = _NEXT_PAGE.search(answer.headers.get("link", ""))
        items = self._validated(rows, list[kind])  # type: ignore[valid-type]
        return _Page(items, following[1] if following else "")

    async def get(self, path: str, kind: type[_ResponseT]) -> _ResponseT | GitHubRefusal:
        return await self._get(path, kind)

    async def create(
        self, path: str, payload: Json, kind: type[_ResponseT]
    ) -> _ResponseT | GitHubRefusal:
        """Post and give what was made of it."""
        answer = await self._ask("POST", path, body=payload)
        if answer.status not in (200, 201):
            return self._refused(answer)
        return self._validated(answer.json(), kind)

    async def job_log(self, job: int, most_bytes: int) -> str:
        """Read the end of a job's log. Empty: there is none any more, or the token must not read it."""
        path = f"/repos/{self.project.owner}/{self.project.name}/actions/jobs/{job}/logs"
        answer = await self._client.download(path, most_bytes)
        if answer.headers:  # of the API, not of the host that has the file
            self._refuse_passing(answer)
        return answer.body.decode(errors="replace") if answer.status == 200 else ""

    def sentence(self, refused: GitHubRefusal) -> str:
        """Describe a refusal and what to do about it."""
        where = f"{self.project.project} on {self.project.host}"
        detail = f" ({refused.message})" if refused.message else ""
        match refused.status:
            case 401:
                return bad_token_sentence(self.project.host)
            case 403:
                return (
                    f"the token cannot open pull requests in {where}{detail}; give it write access to "
                    "contents and pull requests"
                )
            case 404:
                return (
                    f"{where} does not exist, or the token cannot access it; check the remote's address and "
                    "the repositories of the token"
                )
            case _:
                return (
                    f"{where} refused the pull request{detail or f' (status {refused.status})'}; the branch is "
                    "pushed: open a pull request by hand, or fix the problem and resume"
                )

    def pull_url(self, number: int) -> str:
        return f"https://{self.project.host}/{self.project.project}/pull/{number}"

    async def _get(
        self, path: str, kind: type[_ResponseT], query: dict[str, str] | None = None
    ) -> _ResponseT | GitHubRefusal:
        answer = await self._ask("GET", path, query=query)
        if answer.status != 200:
            return self._refused(answer)
        return self._validated(answer.json(), kind)

    async def _ask(
        self, method: str, path: str, *, query: dict[str, str] | None = None, body: Json = None
    ) -> ApiResponse:
        whole = f"/repos/{self.project.owner}/{self.project.name}{path}"
        if method != "GET":
            answer = await self._client.ask(method, whole, query=query, body=body)
            self._refuse_passing(answer)
            return answer
        key = f"{whole}?{urlencode(query or {})}"
        known = self._cache.known(key)
        headers = {"If-None-Match": known.headers["etag"]} if known else {}
        answer = await self._client.ask(method, whole, query=query, headers=headers)
        self._refuse_passing(answer)
        return self._cache.settled(key, known, answer)

    def _refuse_passing(self, answer: ApiResponse) -> None:
        message = self._refused(answer).message
        spent = (
            answer.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in answer.headers
        )
        if answer.status == 429 or (
            answer.status == 403 and (spent or "rate limit" in message.lower())
        ):
            until = _retry_at(answer, self._clock.now())
            raise RateLimited(
                f"the rate limit of this token on {self._client.host} is exceeded until {until:%Y-%m-%d %H:%M} UTC",
                until,
            )
        if answer.status >= 500 or answer.status < 200:
            raise ForgeUnavailable(
                f"{self._client.host} answered {answer.status}; it seems to be down"
            )

    def _refused(self, answer: ApiResponse) -> GitHubRefusal:
        try:
            error = GitHubError.model_validate(answer.json())
        except ValidationError:
            error = GitHubError()
        return GitHubRefusal(answer.status, safe_output(error.text(), (self._token,), 300))

    def _validated(self, value: Json, kind: type[_ResponseT]) -> _ResponseT:
        try:
            return TypeAdapter(kind).validate_python(value)
        except ValidationError:
            # The answer itself is not shown: it may be anything.
            raise ForgeUnavailable(
                f"{self._client.host} did not answer like the GitHub API; check the address of the API"
            ) from None


def bad_token_sentence(host: str) -> str:
    return (
        f"{host} does not accept the token: it is wrong, expired or revoked; create a new one at "
        f"https://{host}/settings/tokens and set GITHUB_TOKEN"
    )


def api_url_of(host: str) -> str:
    """Return the API's address on a GitHub host."""
    if host == "github.com" or host.endswith(".ghe.com"):
        return f"https://api.{host}"
    return f"https://{host}/api/v3"


def _headers(token: str) -> dict[str, str]:
    return {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {token}",
        "User-Agent": "Podium",
        "X-GitHub-Api-Version": "2022-11-28",
    }


def _quoted(branch: str) -> str:
    return quote(branch, safe="", errors="replace")


def _cut(text: str, most: int, end: str) -> str:
    text = text.encode(errors="replace").decode()
    return text if len(text) <= most else text[: most - len(end)] + end


def _retry_at(answer: ApiResponse, now: datetime) -> datetime:
    """Return the time of the next request: as GitHub says, at least a minute and at most a day from now."""
    named = _after(answer.headers.get("retry-after", ""), now) or _timestamp(
        answer.headers.get("x-ratelimit-reset", "")
    )
    return min(max(named or now, now + _SHORTEST_WAIT), now + _MAX_WAIT)


def _after(text: str, now: datetime) -> datetime | None:
    if text.isdecimal():
        return now + timedelta(seconds=min(int(text[:9]), 999_999))
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _timestamp(text: str) -> datetime | None:
    return datetime.fromtimestamp(int(text), UTC) if text.isdecimal() and len(text) < 12 else None
