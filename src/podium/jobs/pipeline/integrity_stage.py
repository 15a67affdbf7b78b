"""Test integrity in a run: compare the branch with its base, send findings back once, then let a person decide."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from podium.core.errors import NotPossibleNow
from podium.core.events import NoteTaken
from podium.core.model import FrozenModel
from podium.core.workspaces import TreeChange, TreeComparison
from podium.jobs.pipeline.agent_text import one_line
from podium.jobs.pipeline.fix_proof import is_test_file
from podium.jobs.pipeline.state import SENT_BACK, PipelineState, Settled, StageContext, ask_a_person
from podium.jobs.pipeline.test_integrity import (
    FileVersions,
    IntegrityFinding,
    compare,
    is_check_settings,
    is_relevant,
    is_test_path,
    make_finding,
    stopping,
)
from podium.ports import StepContext
from podium.render.text import counted

RULES = 1
"""Version of the comparison that new runs record with its result."""
_MAX_FILES = 2_000
_MAX_FILE_BYTES = 1_000_000
_MAX_BYTES = 30_000_000
_MAX_LISTED = 20
_MAX_SENTENCE = 700
_ACCEPT = "accept"


class _Compared(FrozenModel):
    findings: tuple[IntegrityFinding, ...] = ()
    rules: int = RULES


async def compare_tests(
    context: StageContext, name: str, number: int, settled: Settled
) -> tuple[StageContext, Settled]:
    """Compare tests and checks of the work with those of the base. Work with open findings leaves with `SENT_BACK`.

    They are sent back once. Where they are still there, a person accepts them or sends them back again.
    """
    action = context.state.job.spec.test_integrity
    if action == "skip":
        return context, settled
    state = replace(context.state, head=settled.head)

    async def work(step: StepContext) -> _Compared:
        return _Compared(findings=await _findings(context.with_state(state)))

    result: _Compared = await context.flow.step(
        f"integrity:{name}", work, index=number, returns=_Compared
    )
    reasons = tuple(dict.fromkeys((*state.test_changes, *settled.test_changes)))
    state = replace(state, integrity=result.findings, test_changes=reasons)
    return await _answered(context.with_state(state), name, settled)


async def compare_test_runs(
    context: StageContext, name: str, settled: Settled
) -> tuple[StageContext, Settled]:
    """Compare what the checks told of their tests with what they told on the base, as `compare_tests` does with their texts."""
    state = context.state
    findings = tuple(_run_findings(state)) if state.job.spec.test_integrity != "skip" else ()
    if not findings:
        return context, settled
    integrity = tuple({finding.key: finding for finding in (*findings, *state.integrity)}.values())
    return await _answered(context.with_state(replace(state, integrity=integrity)), name, settled)


def _run_findings(state: PipelineState) -> Iterator[IntegrityFinding]:
    explained = sum(finding.tests for finding in state.integrity)
    for result in state.evidence:
        before = state.on_base.get((state.base, result.command))
        if before is None or result.timed_out or not (result.passed or result.as_before):
            continue
        ignored = set(result.ignored_failures) - set(before.ignored_failures)
        if ignored:
            text = "the check ends with 0 although tests failed"
            yield _of_run(
                "hidden_failure", result.command, text, "", ", ".join(sorted(ignored)[:5])
            )
        was, ran = before.tests_run or 0, result.tests_run
        if was - (ran or 0) > explained:
            now = counted(ran, "test") if ran is not None else "no summary of tests"
            text = "the check runs fewer tests than on the base"
            yield _of_run("fewer_tests_run", result.command, text, counted(was, "test"), now)


def _of_run(kind: str, command: str, text: str, before: str, after: str) -> IntegrityFinding:
    return make_finding(
        kind, f"`{command}`", 0, command, text, before=before, after=after, severity="high"
    )


async def _answered(
    context: StageContext, name: str, settled: Settled
) -> tuple[StageContext, Settled]:
    """Send work with open findings back once; then let a person decide."""
    state = context.state
    open_ones = open_findings(state)
    if not open_ones:
        return context, settled
    if state.job.spec.test_integrity == "warn":
        for finding in open_ones[:_MAX_LISTED]:
            context.flow.note(NoteTaken(text=f"Test integrity: {_sentence(finding)}"))
        return context, settled
    if not state.integrity_returns:
        return _sent_back(context, name, settled, open_ones)
    context, accepted = await _decided(context, name, open_ones)
    return (context, settled) if accepted else _sent_back(context, name, settled, open_ones)


def open_findings(state: PipelineState) -> tuple[IntegrityFinding, ...]:
    """Findings that stop the work and that no person has accepted."""
    return tuple(
        finding for finding in stopping(state.integrity) if finding.key not in state.accepted
    )


def integrity_lines(state: PipelineState) -> list[str]:
    """Every finding of the last comparison, with how it was resolved, for the pull request."""
    lines = []
    for finding in state.integrity:
        accepted = state.accepted.get(finding.key, "")
        how = f"; {accepted}" if accepted else ""
        lines.append(f"{finding.severity}: {_sentence(finding)}{how}")
    return lines + [f"reason given by the developer: {reason}" for reason in state.test_changes]


def _sent_back(
    context: StageContext, name: str, settled: Settled, findings: Sequence[IntegrityFinding]
) -> tuple[StageContext, Settled]:
    problems = tuple(_sentence(finding) for finding in findings[:_MAX_LISTED])
    if len(findings) > _MAX_LISTED:
        problems += (f"and {len(findings) - _MAX_LISTED} more of this kind",)
    advice = (
        "These changes take something away from the tests or checks. Undo each; where one is right, keep it and give "
        'the reason in your answer: `"test_changes": [{"test": "…", "why": "…"}]`. Then a person decides.'
    )
    words = "\n".join((advice, *(f"- {problem}" for problem in problems)))
    state = replace(
        context.state,
        sent_back=name,
        integrity_returns=context.state.integrity_returns + 1,
    )
    update = {"verdict": SENT_BACK, "words": words, "problems": problems, "head": state.head}
    return context.with_state(state), settled.model_copy(update=update)


async def _decided(
    context: StageContext, name: str, findings: Sequence[IntegrityFinding]
) -> tuple[StageContext, bool]:
    """Ask a person. True: they accepted; otherwise the work goes back with their note."""
    state = context.state
    before = len(state.guidance)
    context = await ask_a_person(
        context, f"integrity-{name}", "\n".join(_question(state, name, findings))
    )
    note = context.state.guidance[before] if len(context.state.guidance) > before else ""
    head, _, why = note.partition(":")
    accepted = head.strip().casefold() == _ACCEPT
    taken = {edge: times for edge, times in state.taken.items() if edge[0] != name}
    state = replace(context.state, taken=taken, last_findings={})
    if accepted:
        how = (
            f"accepted by a person: {one_line(why, 500)}" if why.strip() else "accepted by a person"
        )
        state = replace(
            state, accepted={**state.accepted, **{finding.key: how for finding in findings}}
        )
    return context.with_state(state), accepted


def _question(
    state: PipelineState, name: str, findings: Sequence[IntegrityFinding]
) -> Iterator[str]:
    yield f"{name} takes something away from tests or checks ({counted(len(findings), 'finding')}):"
    for finding in findings[:_MAX_LISTED]:
        yield f"- {finding.severity}: {_sentence(finding)}"
    if len(findings) > _MAX_LISTED:
        yield f"- and {len(findings) - _MAX_LISTED} more"
    for reason in state.test_changes[:_MAX_LISTED]:
        yield f"- reason given by the agent: {one_line(reason, _MAX_SENTENCE)}"
    yield (
        f'To deliver it with these changes: `podium resume {state.run_id} --note "accept: WHY"`. '
        "With any other note, or none, the work goes back to the agent"
    )


def _sentence(finding: IntegrityFinding) -> str:
    return one_line(finding.sentence, _MAX_SENTENCE)


async def _findings(context: StageContext) -> tuple[IntegrityFinding, ...]:
    state, workspace = context.state, context.state.workspace
    try:
        trees = await workspace.compare_trees(state.base)
        changes = [
            change
            for change in trees.changes
            if is_relevant(change.path) and change.path not in state.own_documents
        ]
        # Tests and settings first: of too much, product code is what is left out.
        changes.sort(key=lambda change: (not _is_important(change.path), change.path))
        unchanged = _unchanged_tests(trees, changes)
        ids = [
            blob
            for change in changes[:_MAX_FILES]
            for mode, blob in (
                (change.old_mode, change.old_blob),
                (change.new_mode, change.new_blob),
            )
            if mode.startswith("100")
        ]
        settings = _unchanged_settings(trees, changes)
        blobs = await workspace.blobs([*ids, *unchanged.values(), *settings.values()], _MAX_BYTES)
    except NotPossibleNow as error:
        return (_not_compared("", f"the branch could not be compared with its base: {error}"),)
    versions = [_versions(change, blobs) for change in changes[:_MAX_FILES]]
    texts = [text for blob in unchanged.values() if (text := _text(blobs.get(blob)))]
    left = [change.path for change in changes[_MAX_FILES:] if _is_important(change.path)]
    more = (
        (
            _not_compared(
                left[0], f"{counted(len(left), 'file')} of tests or checks could not be compared"
            ),
        )
        if left
        else ()
    )
    unread = [
        version.path
        for version, change in zip(versions, changes, strict=False)
        if _is_important(version.path)
        and (version.problem or (version.before is None and change.old_mode.startswith("100")))
    ]
    if unread:
        text = f"{counted(len(unread), 'file')} of tests or checks could not be compared"
        finding = _not_compared(unread[0], text)
        more = (*more, finding.model_copy(update={"after": ", ".join(unread)[:300]}))
    more = (*more, *_other_tests(trees))
    same = {path: _text(blobs.get(blob)) or "" for path, blob in settings.items()}
    return (*await asyncio.to_thread(compare, versions, tuple(trees.files), texts, same), *more)


_TEXT = re.compile(
    r"\.(?:sh|bats|exs?|swift|dart|c|cc|cpp|m|lua|pl|t|feature|robot|hs|clj|erl|jl|r|zig|nim)$",
    re.IGNORECASE,
)
"""Files with tests that are not read, because of their language."""


def _other_tests(trees: TreeComparison) -> Iterator[IntegrityFinding]:
    """Tests in languages that are not read, and data of tests: what is deleted or changed of them is named."""
    arrived = {change.new_blob for change in trees.changes}
    changes = [
        change
        for change in trees.changes
        if change.old_mode and change.old_blob not in arrived - {change.new_blob}
        if is_test_file(change.path) and not is_test_path(change.path)
        if _TEXT.search(change.path) or not is_relevant(change.path)
    ]
    tests = [change.path for change in changes if _TEXT.search(change.path)]
    gone = [change.path for change in changes if change.path in tests and not change.new_mode]
    for path in gone[:_MAX_LISTED]:
        yield IntegrityFinding(
            kind="deleted_test", path=path, text="the test file was deleted", severity="medium"
        )
    others = [change.path for change in changes if change.path not in gone]
    if others:
        text = f"{counted(len(others), 'file')} of tests or their data changed and cannot be compared: {', '.join(others[:5])}"
        yield IntegrityFinding(kind="changed_test_data", path=others[0], text=text, severity="low")


def _is_important(path: str) -> bool:
    return is_test_path(path) or not path.endswith((".py", ".js", ".ts"))


_MAX_UNCHANGED = 60


def _unchanged_tests(trees: TreeComparison, changes: Sequence[TreeChange]) -> Mapping[str, str]:
    """Blobs of some Python tests that the branch leaves as they are: product code must not have their literals, and changed
    tests may call their functions."""
    changed = {change.path for change in changes}
    if not any(path.endswith(".py") for path in changed):
        return {}
    tests = [
        path
        for path in trees.files
        if path.endswith(".py") and path not in changed and is_test_path(path)
    ]
    return {path: trees.files[path] for path in sorted(tests, key=len)[:_MAX_UNCHANGED]}


def _unchanged_settings(trees: TreeComparison, changes: Sequence[TreeChange]) -> Mapping[str, str]:
    """Blobs of settings at the top that the branch leaves as they are: a new file may take their place."""
    changed = {change.path for change in changes}
    return {
        path: blob
        for path, blob in trees.files.items()
        if "/" not in path and path not in changed and is_check_settings(path)
    }


def _versions(change: TreeChange, blobs: Mapping[str, bytes]) -> FileVersions:
    before = _text(blobs.get(change.old_blob)) if change.old_mode.startswith("100") else None
    after = _text(blobs.get(change.new_blob)) if change.new_mode.startswith("100") else None
    problem = ""
    if change.new_mode and after is None:
        problem = "cannot be compared: it is too large or not valid UTF-8"
        if not change.new_mode.startswith("100"):
            problem = "was replaced by a link or a submodule"
    return FileVersions(change.path, before, after, problem)


def _text(content: bytes | None) -> str | None:
    if content is None or len(content) > _MAX_FILE_BYTES:
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def _not_compared(path: str, text: str) -> IntegrityFinding:
    return IntegrityFinding(kind="not_compared", path=path or ".", text=text, severity="medium")
