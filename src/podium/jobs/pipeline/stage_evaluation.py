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
from podium.jobs.pipeline.agent_text import in_code, shortened
from podium.jobs.pipeline.branch_documents import (
    APPENDICES,
    Filed,
    failed_checks_text,
    file,
    review_file,
    was_made,
)
from podium.jobs.pipeline.payloads import Answer, Edit, Work, feedback_points
from podium.jobs.pipeline.plan_check import PARTS, SHORT_PLAN, missing_parts
from podium.jobs.pipeline.reported_failure import reported_failure
from podium.jobs.pipeline.spec import DONE, FORWARD, Stage
from podium.jobs.pipeline.state import (
    MEMORY,
    SENT_BACK,
    Settled,
    StageContext,
    Withheld,
    approved_step,
)
from podium.ports import StepContext

_RELEASE_FILES = ("VERSION", "CHANGELOG.md", "CHANGELOG")
"""Files that a change has to be told in, where the project has them."""
_MARKER = "<<<<<<< "
_PROTECTED = (".agents/skills/", MEMORY, "docs/dev_docs/archived/")
_CHANGED = re.compile(r'^diff --git "?a/(.*?)"? "?b/', re.MULTILINE)
_MAX_CHARACTERS = 8_000
_CACHES = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
RULES = 1
"""Those of `Settled.rules` that hold for new answers."""
_TAKEN_BACK = "Your commits were undone and your files are uncommitted again"


async def settle(
    context: StageContext, name: str, stage: Stage, number: int, reply: Reply
) -> Settled:
    """Check what was delivered, put away what was not to be changed, commit the documents, bring all back."""
    answer = stage.contract.model_validate(reply.payload)

    async def work(step: StepContext) -> Settled:
        evaluation = _Evaluation(context, name, stage, number, reply, answer)
        try:
            return await evaluation.settled()
        except SecretsCommitted as error:
            return await evaluation.taken_back(error)

    settled: Settled = await approved_step(
        context, f"settle:{name}", work, index=number, returns=Settled
    )
    return settled


class _Evaluation:
    """One answer of one stage."""

    def __init__(
        self,
        context: StageContext,
        name: str,
        stage: Stage,
        number: int,
        reply: Reply,
        answer: Answer,
    ) -> None:
        self._context = context
        self._state = context.state
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

    async def taken_back(self, error: SecretsCommitted) -> Settled:
        """No commit keeps the secret; the files are there for the next turn to mend."""
        workspace, why = self._state.workspace, "a secret was committed"
        # A merge is begun anew: files alone would not tell what was merged.
        files = [] if self._state.conflicts else paths_in(await workspace.diff(self._state.head))
        if await self._is_filed():
            files = [path for path in files if path not in APPENDICES]
        await workspace.reset(self._state.head, why, keep=files)
        draft = await workspace.snapshot(why) if files else None
        problem = f"{error.finding}. {_TAKEN_BACK}: {error.remedy}"
        return self._taken_off([problem]).model_copy(update={"draft": draft})

    async def document(self) -> Settled:
        """One document of the agent's own; everything else that it changed goes back."""
        path, problems = self._named_document()
        discarded = await self._put_back([path] if path else [])
        written = {path: f"{inline.rstrip()}\n"} if (inline := self._inline_document) else {}
        text = written.get(path) or (await self._read(path) if path else None)
        if self._stage.does == "plan" and not problems and not text and self._remarks.strip():
            why = shortened(self._remarks, _MAX_CHARACTERS)
            return self._sent_back([why], discarded).model_copy(update={"no_plan": why})
        if path and not (text or "").strip():
            by_answer = ", or give it as `document`" if hasattr(self._answer, "document") else ""
            problems.append(f"{path!r} is missing or empty; write your document there{by_answer}")
        elif self._stage.does == "plan":
            parts = SHORT_PLAN if self._state.is_light else PARTS
            missing = [part for part in missing_parts(text or "") if part in parts]
            problems += [f"the plan has no {part}" for part in missing]
        if problems:
            return self._sent_back(problems, discarded)
        suffix = f" {self._verdict}" if self._stage.does == "audit" else ""
        before = self._state.head
        filed = await self._file(f"{self._title}{suffix}: {self._state.feat}", written, [path])
        if filed.head == before and (self._state.feedback or self._stage.does == "audit"):
            return self._sent_back([f"{path!r} was not changed; write it in this turn"], discarded)
        settled = self._settled(self._verdict, filed, path, discarded)
        if self._stage.does != "audit" or self._verdict in FORWARD:
            return settled
        return settled.model_copy(update={"words": shortened(text or "", _MAX_CHARACTERS)})

    async def review(self) -> Settled:
        """The verdict, in a review that the supervisor writes."""
        discarded = await self._put_back([])
        path = self._state.document_of(self._stage, self._number)
        text = review_file(
            title=self._title,
            task=self._state.job.task,
            role=self._stage.role,
            agent=self._reply.agent,
            verdict=self._verdict,
            round=self._number,
            day=self._context.deps.clock.now().date(),
            feedback=self._remarks,
            run_id=self._state.run_id,
        )
        message = f"{self._title} {self._verdict}: {self._state.feat}"
        filed = await self._file(message, {path: text}, [])
        return self._settled(self._verdict, filed, path, discarded)

    async def edit(self) -> Settled:
        """Changed documents; whatever is no document goes back."""
        state = await self._state.workspace.state()
        pages = [
            path
            for path in state.changed
            if path.endswith((".md", ".rst", ".adoc")) and not is_guarded(path)
        ]
        discarded = await self._put_back(pages)
        answer = self._answer
        if isinstance(answer, Edit) and answer.status == "failure":
            return self._sent_back([self._feedback_text or "the work was not done"], discarded)
        filed = await self._file(f"{self._title}: {self._state.feat}", {}, pages)
        return self._settled(DONE, filed, "", discarded)

    async def work(self) -> Settled:
        """Commits of the agent's own, on the task's branch, with nothing left lying about."""
        workspace = self._state.workspace
        state = await workspace.state()
        commits = await workspace.history(self._state.work_from) if state.on_branch else ()
        if taken := await self._not_its_own(state):
            await workspace.reset(self._state.head, "changed documents of others")
            return self._taken_off([f"you must not change {taken}; your commits were undone"])
        problems = self._unfinished(state, commits)
        problems += await self._missing_deliverables()
        try:
            filed = await self._file(f"{self._title}: {self._state.feat}", {}, [])
        except SecretsCommitted:
            raise
        except ImportRefused as refused:
            await workspace.reset(self._state.head, "refused by the import gate")
            return self._taken_off([f"your commits were refused and undone: {refused}"])
        problems += await self._stale_release_files(filed)
        path = self._state.document_of(self._stage, self._number)
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
                "the merge is not finished; resolve every file, then run `git add` and `git commit`"
            )
        changed = [path for path in state.changed if not is_cache(path)]
        if changed:
            listed = ", ".join(changed[:10])
            problems.append(
                f"not committed: {listed}; commit these files, or remove those that are not needed"
            )
        if not isinstance(answer, Work):
            return problems
        if self._gives_up:
            why = self._remarks or "; ".join(self._disputed)
            problems.append(f"you reported a failure: {why or 'say in `feedback` why'}")
        elif not commits and not changed and not self._is_returned_red:
            problems.append("there is no new commit on the task's branch")
        elif self._state.conflicts and not any(
            (self._state.merging.commit or self._state.base) in commit.parents for commit in commits
        ):
            problems.append("the merge is missing: no commit merges the base into this branch")
        elif commits and not _names_one(answer.commit_hash, commits):
            problems.append(f"commit {answer.commit_hash[:50]!r} is not on the task's branch")
        return problems + self._dishonest()

    async def _not_its_own(self, state: WorktreeStatus) -> str:
        """Documents that others have filed, the memory, and skills: whoever works on code leaves them alone."""
        if not state.on_branch:
            return ""
        own = self._state.document_of(self._stage, self._number)
        others = [path for path in self._state.documents if path != own]
        changed = paths_in(await self._state.workspace.diff(self._state.head))
        if self._stage.does == "integrate":
            # What is as in the base came with the merge.
            own_changes = paths_in(await self._state.workspace.diff(self._state.base))
            changed = [path for path in changed if path in own_changes]
        protected = [path for path in changed if path.startswith(_PROTECTED) or path in others]
        merged = set(self._state.conflicts) if self._stage.does == "integrate" else set()
        return ", ".join(path for path in protected if path not in merged)

    async def _missing_deliverables(self) -> list[str]:
        problems = []
        report = self._state.document_of(self._stage, self._number)
        if report and not (await self._read(report) or "").strip():
            problems.append(f"there is no verification report in {report!r}; write and commit it")
        for path in self._state.conflicts:
            if _MARKER in (await self._read(path) or ""):
                problems.append(f"{path!r} still has conflict markers")
        return problems

    async def _stale_release_files(self, filed: Filed) -> list[str]:
        """VERSION and CHANGELOG, where there are any: code was changed and they were not.

        A plan that names the file has decided about it, and the auditor holds the change against the plan.
        """
        changed = self._state.changed | set(filed.paths)
        if self._stage.does != "work" or not any(_is_code(path) for path in changed):
            return []
        plan = (await self._read(self._state.plan) or "") if self._state.plan else ""
        missing = []
        for path in _RELEASE_FILES:
            if path in changed or re.search(rf"(?<!\w){path.partition('.')[0]}(?!\w)", plan):
                continue
            if await self._read(path) is not None:
                missing.append(f"{path} does not mention this change; update it")
        return missing

    @property
    def _inline_document(self) -> str:
        """The document, where the answer itself holds it."""
        return str(getattr(self._answer, "document", "")).strip()

    def _named_document(self) -> tuple[str, list[str]]:
        """The path that the answer names, if it may be a document of this stage."""
        expected = self._state.document_of(self._stage, self._number)
        named = str(
            getattr(self._answer, "report_path", "")
            or getattr(self._answer, "plan_path", "")
            or getattr(self._answer, "review_path", "")
        )
        if not named or self._inline_document:
            return expected, []
        root = self._state.workspace.record.path
        path = posixpath.normpath(named.removeprefix(f"{root}/"))
        if path != expected:
            return "", [
                f"{named[:200]!r} is the wrong path for this document; write it to {expected!r}"
            ]
        return path, []

    def _dishonest(self) -> list[str]:
        """Problems of an answer that claims success and reports a failure. A disputed check is reported to a person."""
        if getattr(self._answer, "status", "") != "success" or self._disputed:
            return []
        report = reported_failure(self._answer.feedback)
        return (
            [f'`status` is "success" but `feedback` reports a failure: {report}'] if report else []
        )

    async def _put_back(self, keep: Sequence[str]) -> tuple[str, ...]:
        if await self._is_filed():
            return ()
        why = f"{self._stage.role} may only write its document"
        return tuple(await self._state.workspace.reset(self._state.head, why, keep=keep))

    async def _is_filed(self) -> bool:
        """True when this very step made its commit before it was killed."""
        return await was_made(self._context, self._context.trailers(self._step, self._reply))

    async def _read(self, path: str) -> str | None:
        try:
            return await self._state.workspace.read(path)
        except WorkspaceTampered:
            return None

    async def _file(self, message: str, written: dict[str, str], paths: Sequence[str]) -> Filed:
        return await file(
            self._context, self._step, message,
            written=written, paths=paths, answer=self._whole_answer, reply=self._reply,
        )  # fmt: skip

    @property
    def _whole_answer(self) -> Answer:
        """The answer, with what earlier ones had for backlog and memory that was not written down."""
        own, before = self._answer, self._state.withheld
        items = dict.fromkeys((*before.backlog, *own.backlog_items))
        lessons = dict.fromkeys((*before.lessons, *own.lessons))
        return own.model_copy(update={"backlog_items": tuple(items), "lessons": tuple(lessons)})

    @property
    def _verdict(self) -> str:
        claimed = str(getattr(self._answer, "verdict", DONE))
        # What was said cannot stand against what was seen.
        return "FAIL" if claimed == "PASS" and self._state.is_broken else claimed

    @property
    def _feedback_text(self) -> str:
        feedback = self._answer.feedback
        return feedback if isinstance(feedback, str) else ""

    @property
    def _remarks(self) -> str:
        """All that was said beside the verdict: beside an approval it is an object of remarks."""
        return "\n".join(feedback_points(self._answer.feedback))

    @property
    def _side_feedback(self) -> Json:
        """Feedback that is not the reason of a rejection."""
        feedback = self._answer.feedback
        is_reason = isinstance(feedback, str) and self._stage.does in ("review", "audit")
        return None if is_reason or not feedback else feedback

    @property
    def _title(self) -> str:
        return self._stage.role.replace("_", " ").capitalize()

    def _sent_back(self, problems: Sequence[str], discarded: Sequence[str] = ()) -> Settled:
        return Settled(
            verdict=SENT_BACK,
            words="\n".join(f"- {problem}" for problem in problems),
            problems=tuple(problems),
            rules=RULES,
            discarded=tuple(discarded),
            head=self._state.head,
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
            words=self._feedback_text,
            document=document,
            documents=(document,) if document else (),
            head=filed.head,
            commits=filed.commits,
            paths=filed.paths,
            discarded=tuple(discarded),
            feedback=self._side_feedback,
            skill=self._answer.skill,
            backlog=self._whole_answer.backlog_items,
            lessons=self._whole_answer.lessons,
            alike=filed.alike,
            disputed=self._disputed,
            proof=self._answer.proof if isinstance(self._answer, Work) else (),
            no_proof=self._answer.no_proof.strip() if isinstance(self._answer, Work) else "",
            test_changes=self._test_changes,
            rules=RULES,
        )

    @property
    def _is_returned_red(self) -> bool:
        """True if all that is open are checks that were red before the work: there may be nothing to change."""
        state = self._state
        return bool(state.red_as_before) and state.feedback == failed_checks_text(state.evidence)

    @property
    def _gives_up(self) -> bool:
        return isinstance(self._answer, Work) and self._answer.status == "failure"

    @property
    def _disputed(self) -> tuple[str, ...]:
        disputed = self._answer.disputed_checks if isinstance(self._answer, Work) else ()
        return tuple(f"{in_code(dispute.check)}: {dispute.why}" for dispute in disputed)

    @property
    def _test_changes(self) -> tuple[str, ...]:
        changes = self._answer.test_changes if isinstance(self._answer, Work) else ()
        return tuple(f"{in_code(change.test)}: {change.why}" for change in changes)


def is_cache(path: str) -> bool:
    """True for a cache that a project's checks write. The next turn starts without it."""
    return any(part in _CACHES for part in path.split("/"))


def paths_in(patch: str) -> list[str]:
    """Paths that a patch changes, each once."""
    return list(dict.fromkeys(_CHANGED.findall(patch)))


def _names_one(named: str, commits: Sequence[WorkspaceCommit]) -> bool:
    short = named.strip().lower()
    return short == "head" or any(
        len(short) >= 7 and commit.id.startswith(short) for commit in commits
    )


def _is_code(path: str) -> bool:
    return not path.startswith("docs/") and not path.endswith(".md")
