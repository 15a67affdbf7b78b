"""Evaluation of a stage's answer: every deliverable is verified, nothing is taken on trust."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from podium.core.errors import ImportRefused, SecretsCommitted, WorkspaceTampered
from podium.core.model import Json
from podium.core.protected_paths import is_guarded
from podium.core.turns import Reply
from podium.core.workspaces import WorkspaceCommit, WorktreeStatus
from podium.jobs.pipeline.branch_documents import APPENDICES, Filed, file, review_file, was_made
from podium.jobs.pipeline.payloads import Answer, Edit, Work, feedback_points
from podium.jobs.pipeline.plain_text import in_code, shortened
from podium.jobs.pipeline.plan_check import PARTS, SHORT_PLAN, missing_parts
from podium.jobs.pipeline.reported_failure import tells_of_failure
from podium.jobs.pipeline.spec import DONE, FORWARD, Stage
from podium.jobs.pipeline.state import MEMORY, SENT_BACK, Desk, Settled, Withheld, approved_step
from podium.ports import StepContext

_KEPT_UP = ("VERSION", "CHANGELOG.md", "CHANGELOG")
"""Files that a change has to be told in, where the project has them."""
_MARKER = "<<<<<<< "
_KEPT_BY_OTHERS = (".agents/skills/", MEMORY, "docs/dev_docs/archived/")
_CHANGED = re.compile(r'^diff --git "?a/(.*?)"? "?b/', re.MULTILINE)
_MAX_WORDS = 8_000
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
RULES = 1
"""Those of `Settled.rules` that hold for new answers."""
_TAKEN_BACK = "Your commits were taken back and your files lie uncommitted"


async def settle(desk: Desk, name: str, stage: Stage, number: int, reply: Reply) -> Settled:
    """Check what was delivered, put away what was not to be changed, commit the documents, bring all back."""
    answer = stage.contract.model_validate(reply.payload)

    async def work(step: StepContext) -> Settled:
        visit = _Visit(desk, name, stage, number, reply, answer)
        try:
            return await visit.settled()
        except SecretsCommitted as found:
            return await visit.taken_back(found)

    settled: Settled = await approved_step(
        desk, f"settle:{name}", work, index=number, returns=Settled
    )
    return settled


class _Visit:
    """One answer of one stage."""

    def __init__(
        self, desk: Desk, name: str, stage: Stage, number: int, reply: Reply, answer: Answer
    ) -> None:
        self._desk = desk
        self._trip = desk.trip
        self._name = name
        self._stage = stage
        self._number = number
        self._reply = reply
        self._answer = answer
        self._step = f"{name}-{number}"

    async def settled(self) -> Settled:
        """By what the stage does. Raises `SecretsCommitted`."""
        match self._stage.does:
            case "report" | "plan" | "audit":
                return await self.document()
            case "review":
                return await self.review()
            case "edit":
                return await self.edit()
            case "work" | "integrate":
                return await self.work()

    async def taken_back(self, found: SecretsCommitted) -> Settled:
        """No commit keeps the secret; the files are there for the next turn to mend."""
        workspace, why = self._trip.workspace, "a secret was committed"
        # A merge is begun anew: files alone would not tell what was merged.
        files = [] if self._trip.conflicts else paths_in(await workspace.diff(self._trip.head))
        if await self._is_filed():
            files = [path for path in files if path not in APPENDICES]
        await workspace.reset(self._trip.head, why, keep=files)
        draft = await workspace.snapshot(why) if files else None
        told = f"{found.finding}. {_TAKEN_BACK}: {found.remedy}"
        return self._taken_off([told]).model_copy(update={"draft": draft})

    async def document(self) -> Settled:
        """One document of the agent's own; everything else that it changed goes back."""
        path, problems = self._named_document()
        discarded = await self._put_back([path] if path else [])
        written = {path: f"{given.rstrip()}\n"} if (given := self._given_document) else {}
        text = written.get(path) or (await self._read(path) if path else None)
        if self._stage.does == "plan" and not problems and not text and self._remarks.strip():
            why = shortened(self._remarks, _MAX_WORDS)
            return self._sent_back([why], discarded).model_copy(update={"no_plan": why})
        if path and not (text or "").strip():
            by_answer = ", or give it as `document`" if hasattr(self._answer, "document") else ""
            problems.append(f"there is nothing in {path!r}; write your document there{by_answer}")
        elif self._stage.does == "plan":
            parts = SHORT_PLAN if self._trip.is_light else PARTS
            missing = [part for part in missing_parts(text or "") if part in parts]
            problems += [f"the plan has no {part}" for part in missing]
        if problems:
            return self._sent_back(problems, discarded)
        told = f" {self._verdict}" if self._stage.does == "audit" else ""
        before = self._trip.head
        filed = await self._file(f"{self._title}{told}: {self._trip.feat}", written, [path])
        if filed.head == before and (self._trip.feedback or self._stage.does == "audit"):
            return self._sent_back([f"{path!r} is as it was: write it in this turn"], discarded)
        settled = self._settled(self._verdict, filed, path, discarded)
        if self._stage.does != "audit" or self._verdict in FORWARD:
            return settled
        return settled.model_copy(update={"words": shortened(text or "", _MAX_WORDS)})

    async def review(self) -> Settled:
        """The verdict, in a review that the supervisor writes."""
        discarded = await self._put_back([])
        path = self._trip.document_of(self._stage, self._number)
        text = review_file(
            title=self._title,
            task=self._trip.job.task,
            role=self._stage.role,
            agent=self._reply.agent,
            verdict=self._verdict,
            round=self._number,
            day=self._desk.kit.clock.now().date(),
            feedback=self._remarks,
            run_id=self._trip.run_id,
        )
        message = f"{self._title} {self._verdict}: {self._trip.feat}"
        filed = await self._file(message, {path: text}, [])
        return self._settled(self._verdict, filed, path, discarded)

    async def edit(self) -> Settled:
        """Changed documents; whatever is no document goes back."""
        state = await self._trip.workspace.state()
        pages = [
            path
            for path in state.changed
            if path.endswith((".md", ".rst", ".adoc")) and not is_guarded(path)
        ]
        discarded = await self._put_back(pages)
        answer = self._answer
        if isinstance(answer, Edit) and answer.status == "failure":
            return self._sent_back([self._words or "it was not done"], discarded)
        filed = await self._file(f"{self._title}: {self._trip.feat}", {}, pages)
        return self._settled(DONE, filed, "", discarded)

    async def work(self) -> Settled:
        """Commits of the agent's own, on the task's branch, with nothing left lying about."""
        workspace = self._trip.workspace
        state = await workspace.state()
        commits = await workspace.history(self._trip.work_from) if state.on_branch else ()
        if taken := await self._not_its_own(state):
            await workspace.reset(self._trip.head, "documents of others were changed")
            return self._taken_off([f"not yours to change, so your commits were undone: {taken}"])
        problems = self._unfinished(state, commits)
        problems += await self._missing_deliverables()
        try:
            filed = await self._file(f"{self._title}: {self._trip.feat}", {}, [])
        except SecretsCommitted:
            raise
        except ImportRefused as refused:
            await workspace.reset(self._trip.head, "refused by the import gate")
            return self._taken_off([f"your commits may not come back and were undone: {refused}"])
        problems += await self._not_told_in(filed)
        path = self._trip.document_of(self._stage, self._number)
        if not problems:
            return self._settled(DONE, filed, path)
        keeps = state.changed and not state.merging
        draft = await workspace.snapshot("not committed at the end of a turn") if keeps else None
        sent = self._sent_back(problems)
        return sent.model_copy(
            update={
                "head": filed.head,
                "paths": filed.paths,
                "alike": filed.alike,
                "draft": draft,
                "document": path,
                "disputed": self._disputed,
                "gives_up": self._gives_up and len(problems) == 1,
            }
        )

    def _unfinished(self, state: WorktreeStatus, commits: Sequence[WorkspaceCommit]) -> list[str]:
        answer, problems = self._answer, []
        if not state.on_branch:
            problems.append("HEAD is not on the task's branch; commit there")
        if state.merging:
            problems.append(
                "the merge is not ended; resolve every file, `git add` it, `git commit`"
            )
        changed = [path for path in state.changed if not is_cache(path)]
        if changed:
            listed = ", ".join(changed[:10])
            problems.append(f"not committed: {listed}; commit it, or remove what is of no use")
        if not isinstance(answer, Work):
            return problems
        if self._gives_up:
            why = self._remarks or "; ".join(self._disputed)
            problems.append(f"you say that it failed: {why or 'say in `feedback` why'}")
        elif not commits and not changed:
            problems.append("there is no new commit on the task's branch")
        elif self._trip.conflicts and not any(self._trip.base in each.parents for each in commits):
            problems.append("the merge is gone: no commit joins the base with this branch")
        elif commits and not _names_one(answer.commit_hash, commits):
            problems.append(f"commit {answer.commit_hash[:50]!r} is not on the task's branch")
        return problems + self._dishonest()

    async def _not_its_own(self, state: WorktreeStatus) -> str:
        """Documents that others have filed, the memory, and skills: whoever works on code leaves them alone."""
        if not state.on_branch:
            return ""
        own = self._trip.document_of(self._stage, self._number)
        others = [each for each in self._trip.documents if each != own]
        changed = paths_in(await self._trip.workspace.diff(self._trip.head))
        kept = [path for path in changed if path.startswith(_KEPT_BY_OTHERS) or path in others]
        merged = set(self._trip.conflicts) if self._stage.does == "integrate" else set()
        return ", ".join(path for path in kept if path not in merged)

    async def _missing_deliverables(self) -> list[str]:
        problems = []
        report = self._trip.document_of(self._stage, self._number)
        if report and not (await self._read(report) or "").strip():
            problems.append(f"there is no verification report in {report!r}; write and commit it")
        for path in self._trip.conflicts:
            if _MARKER in (await self._read(path) or ""):
                problems.append(f"{path!r} still has conflict markers")
        return problems

    async def _not_told_in(self, filed: Filed) -> list[str]:
        """VERSION and CHANGELOG, where there are any: code was changed and they were not.

        A plan that names the file has decided about it, and the auditor holds the change against the plan.
        """
        changed = self._trip.changed | set(filed.paths)
        if self._stage.does != "work" or not any(_is_code(path) for path in changed):
            return []
        plan = (await self._read(self._trip.plan) or "") if self._trip.plan else ""
        missing = []
        for path in _KEPT_UP:
            if path in changed or re.search(rf"(?<!\w){path.partition('.')[0]}(?!\w)", plan):
                continue
            if await self._read(path) is not None:
                missing.append(f"{path} says nothing of this change; bring it up to date")
        return missing

    @property
    def _given_document(self) -> str:
        """The document, where the answer itself holds it."""
        return str(getattr(self._answer, "document", "")).strip()

    def _named_document(self) -> tuple[str, list[str]]:
        """The path that the answer names, if it may be a document of this stage."""
        wanted = self._trip.document_of(self._stage, self._number)
        named = str(
            getattr(self._answer, "report_path", "")
            or getattr(self._answer, "plan_path", "")
            or getattr(self._answer, "review_path", "")
        )
        if not named or self._given_document:
            return wanted, []
        root = self._trip.workspace.record.path
        path = posixpath.normpath(named.removeprefix(f"{root}/"))
        if path != wanted:
            return "", [f"{named[:200]!r} is not where this document goes; write it to {wanted!r}"]
        return path, []

    def _dishonest(self) -> list[str]:
        """Problems of an answer that claims success and reports a failure. A disputed check is reported to a person."""
        if getattr(self._answer, "status", "") != "success" or self._disputed:
            return []
        told = tells_of_failure(self._answer.feedback)
        return [f'`status` is "success" but `feedback` reports a failure: {told}'] if told else []

    async def _put_back(self, keep: Sequence[str]) -> tuple[str, ...]:
        if await self._is_filed():
            return ()
        why = f"{self._stage.role} was to write its document alone"
        return tuple(await self._trip.workspace.reset(self._trip.head, why, keep=keep))

    async def _is_filed(self) -> bool:
        """Whether this very step made its commit before it was killed."""
        return await was_made(self._desk, self._desk.trailers(self._step, self._reply))

    async def _read(self, path: str) -> str | None:
        try:
            return await self._trip.workspace.read(path)
        except WorkspaceTampered:
            return None

    async def _file(self, message: str, written: dict[str, str], paths: Sequence[str]) -> Filed:
        return await file(
            self._desk, self._step, message,
            written=written, paths=paths, answer=self._whole_answer, reply=self._reply,
        )  # fmt: skip

    @property
    def _whole_answer(self) -> Answer:
        """The answer, with what earlier ones had for backlog and memory that was not written down."""
        own, before = self._answer, self._trip.withheld
        items = dict.fromkeys((*before.backlog, *own.backlog_items))
        lessons = dict.fromkeys((*before.lessons, *own.lessons))
        return own.model_copy(update={"backlog_items": tuple(items), "lessons": tuple(lessons)})

    @property
    def _verdict(self) -> str:
        given = str(getattr(self._answer, "verdict", DONE))
        # What was said cannot stand against what was seen.
        return "FAIL" if given == "PASS" and not self._trip.is_green else given

    @property
    def _words(self) -> str:
        told = self._answer.feedback
        return told if isinstance(told, str) else ""

    @property
    def _remarks(self) -> str:
        """All that was said beside the verdict: beside an approval it is an object of remarks."""
        return "\n".join(feedback_points(self._answer.feedback))

    @property
    def _aside(self) -> Json:
        """Feedback that is not the reason of a rejection."""
        told = self._answer.feedback
        is_reason = isinstance(told, str) and self._stage.does in ("review", "audit")
        return None if is_reason or not told else told

    @property
    def _title(self) -> str:
        return self._stage.role.replace("_", " ").capitalize()

    def _sent_back(self, problems: Sequence[str], discarded: Sequence[str] = ()) -> Settled:
        return Settled(
            verdict=SENT_BACK,
            words="\n".join(f"- {each}" for each in problems),
            problems=tuple(problems),
            rules=RULES,
            discarded=tuple(discarded),
            head=self._trip.head,
        )

    def _taken_off(self, problems: Sequence[str]) -> Settled:
        """Sent back with nothing of it on the branch: what it has for backlog and memory waits."""
        answer = self._whole_answer
        withheld = Withheld(backlog=answer.backlog_items, lessons=answer.lessons)
        return self._sent_back(problems).model_copy(update={"withheld": withheld})

    def _settled(
        self, verdict: str, filed: Filed, document: str, discarded: Sequence[str] = ()
    ) -> Settled:
        return Settled(
            verdict=verdict,
            words=self._words,
            document=document,
            documents=(document,) if document else (),
            head=filed.head,
            commits=filed.commits,
            paths=filed.paths,
            discarded=tuple(discarded),
            feedback=self._aside,
            skill=self._answer.skill,
            backlog=self._whole_answer.backlog_items,
            lessons=self._whole_answer.lessons,
            alike=filed.alike,
            disputed=self._disputed,
            rules=RULES,
        )

    @property
    def _gives_up(self) -> bool:
        return isinstance(self._answer, Work) and self._answer.status == "failure"

    @property
    def _disputed(self) -> tuple[str, ...]:
        disputed = self._answer.disputed_checks if isinstance(self._answer, Work) else ()
        return tuple(f"{in_code(each.check)}: {each.why}" for each in disputed)


def is_cache(path: str) -> bool:
    """Whether running a project's checks wrote the file. The next turn starts without it."""
    return any(part in _CACHES for part in path.split("/"))


def paths_in(patch: str) -> list[str]:
    """What a patch changes, each path once."""
    return list(dict.fromkeys(_CHANGED.findall(patch)))


def _names_one(named: str, commits: Sequence[WorkspaceCommit]) -> bool:
    short = named.strip().lower()
    return short == "head" or any(len(short) >= 7 and each.id.startswith(short) for each in commits)


def _is_code(path: str) -> bool:
    return not path.startswith("docs/") and not path.endswith(".md")
