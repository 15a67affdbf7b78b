"""Proof of a fix: a test that fails on the base and passes on the branch, both run by Podium."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from podium.app.checks import (
    Check,
    CheckResult,
    never_ran,
    speaks_of_tests,
    why_not_runnable,
)
from podium.core.events import NoteTaken
from podium.core.forge import check_ending
from podium.core.model import Json
from podium.jobs.pipeline.agent_text import in_code, one_line
from podium.jobs.pipeline.branch_documents import clean_start
from podium.jobs.pipeline.payloads import ProposedTest
from podium.jobs.pipeline.spec import DONE
from podium.jobs.pipeline.stage_evaluation import paths_in
from podium.jobs.pipeline.state import (
    DEPENDENCIES,
    SENT_BACK,
    FixProof,
    ProofRun,
    Settled,
    StageContext,
    ask_a_person,
)
from podium.ports import StepContext
from podium.render.text import counted

_TEST_FOLDERS = frozenset(
    {"test", "tests", "__tests__", "spec", "specs", "testdata", "fixtures", "__snapshots__"}
)
_TEST_FILE = re.compile(
    r"test_.*\.py|.*_test\.(?:py|go|rb|exs)|tests?\.py|conftest\.py|.*[._-](?:test|spec)\.[cm]?[jt]sx?|.*_spec\.rb|.*Tests?\.\w+"
)
_RUNNABLE = re.compile(r"test_.*\.py|.*_test\.(?:py|go)|tests?\.py|.*[._-]test\.[cm]?js")
_DEFINES_CHECKS = frozenset(
    {"Makefile", "package.json", "pyproject.toml", "tox.ini", "setup.cfg", "pytest.ini", "noxfile.py", "go.mod"}
)  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*")
_SAFE_TOKEN = re.compile(r"[\w./:@=,+%-]+")
_SELECTOR = re.compile(r"[\w][\w./:@=,+ \[\]-]*")
_NAME_OPTIONS = ("-k", "-run", "-t", "--test-name-pattern")
_MAX_FILES = 20
_MAX_CANDIDATES = 4
_MAX_LISTED = 5
_PYTEST_CODES = (2, 3, 4)
"""Exit codes of pytest for a run that did not come to its tests."""

_HOW = (
    "Podium puts the test files of this branch on the base and runs them: at least one test must fail there by itself and pass on "
    "the branch. Add or change such a test and name it in `proof`, or say in `no_proof` why no test can show the fix"
)


async def prove_fix(
    context: StageContext, name: str, number: int, settled: Settled
) -> tuple[StageContext, Settled]:
    """Let a fix pass whose test fails on the base. Else it is sent back once, and then a person decides."""
    spec = context.state.job.spec
    wanted = spec.fix_proof if spec.mode(context.state.job.mode).proves_fix else "skip"
    if wanted == "skip" or settled.verdict != DONE or not context.state.evidence:
        return context, settled
    if context.state.job.start_at:
        # It starts from work that was proved when it was made.
        return context, settled

    async def work(step: StepContext) -> FixProof:
        return await _proof(context, settled)

    proof: FixProof = await context.flow.step(f"proof:{name}", work, index=number, returns=FixProof)
    state = context.state
    context.flow.note(NoteTaken(text="; ".join([*_endings(proof), *_not_proved(proof)])))
    before = state.proof
    if proof.problem and before is not None and before.is_accepted:
        # A person is asked once, whatever later rounds change.
        kept = {
            "is_accepted": True,
            "answer": before.answer,
            "reason": proof.reason or before.reason,
        }
        return context.with_state(replace(state, proof=proof.model_copy(update=kept))), settled
    if not proof.problem or wanted == "warn":
        return context.with_state(replace(state, proof=proof)), settled
    if not state.is_proof_asked and not settled.no_proof:
        problem = f"the fix is not proved: {proof.problem}. {_HOW}"
        context = context.with_state(
            replace(state, proof=proof, is_proof_asked=True, sent_back=name)
        )
        update = {"verdict": SENT_BACK, "words": f"- {problem}", "problems": (problem,)}
        return context, settled.model_copy(update=update)
    excuse = one_line(settled.no_proof, 1_000)
    reason = f"\nThe developer says: {excuse}" if excuse else ""
    question = f"no test proves the fix: {proof.problem}.{reason}\nIf you resume, the work continues without a proof"
    notes_before = len(state.guidance)
    context = await ask_a_person(context, f"proof-{name}", question)
    answer = "; ".join(context.state.guidance[notes_before:])
    accepted = proof.model_copy(update={"is_accepted": True, "answer": answer})
    return context.with_state(replace(context.state, proof=accepted)), settled


async def _proof(context: StageContext, settled: Settled) -> FixProof:
    state, workspace = context.state, context.state.workspace
    start = await clean_start(context, "before proving the fix")
    patch = await workspace.diff(state.base)
    changed = [path for path in paths_in(patch) if path not in state.own_documents]
    tests = [path for path in changed if is_test_file(path)]
    tested = [result for result in state.evidence if speaks_of_tests(result.tail)]
    results = tested or list(state.evidence)
    unproved = FixProof(base=state.base, commit=start, reason=settled.no_proof)
    if not tests and not any(posixpath.basename(path) in _DEFINES_CHECKS for path in changed):
        runs = [
            ProofRun(command=result.command, on_base=_bare(before), on_branch=_bare(result))
            for result in results
            if (before := state.on_base.get((state.base, result.command))) and before.failed
            if not _why_not(before, result)
        ]
        problem = "" if runs else "no test was added or changed, and none failed on the base"
        return unproved.model_copy(update={"runs": tuple(runs), "problem": problem})
    checks = [
        check
        for check in context.checks
        if any(result.command == check.command for result in results)
    ]
    alive = [path for path in tests if await workspace.read(path, 1) is not None]
    red_before = [
        check
        for check in checks
        if (before := state.on_base.get((state.base, check.command))) and not before.passed
    ]
    candidates, refusals = _candidates(
        settled.proof, context.checks, [_selected(check, alive) for check in checks], red_before
    )
    seconds = state.job.spec.check_seconds
    await workspace.reset(state.base, "to run the branch's tests on the base", keep=tests)
    await workspace.clear_ignored(context.baseline.ignored, DEPENDENCIES)
    on_base = [await context.deps.run_check(workspace, check, seconds) for check in candidates]
    await workspace.reset(start, "after the tests on the base")
    await workspace.clear_ignored(context.baseline.ignored, DEPENDENCIES)
    known = {result.command: result for result in state.evidence}
    runs, problems = [], list(refusals)
    for check, before in zip(candidates, on_base, strict=True):
        problem = _why_not(before, None)
        if not problem:
            after = known.get(check.command)
            after = after or await context.deps.run_check(workspace, check, seconds)
            problem = _why_not(before, after)
            runs += [] if problem else [_run(check, alive, before, after)]
        problems += [problem] if problem else []
    await workspace.reset(start, "changes left by the proof")
    if runs:
        return unproved.model_copy(update={"runs": tuple(runs)})
    if not tests:
        problems.insert(0, "no test was added or changed")
    return unproved.model_copy(update={"problem": "; ".join(dict.fromkeys(problems))})


def is_test_file(path: str) -> bool:
    """True for tests and what they need, by the customs of the runners known here."""
    *folders, name = path.split("/")
    return not _TEST_FOLDERS.isdisjoint(folders) or bool(_TEST_FILE.fullmatch(name))


def _candidates(
    proposed: Sequence[ProposedTest], checks: Sequence[Check], *groups: Sequence[Check]
) -> tuple[list[Check], list[str]]:
    """Checks to run, those that the developer names first, and why some of those are not run."""
    candidates, refusals = [], []
    for proposal in proposed:
        command = proposed_command(proposal.command, checks)
        if command:
            candidates.append(Check(name=command, command=command))
        else:
            listed = ", ".join(in_code(check.command) for check in checks)
            refusals.append(
                f"{in_code(proposal.command)} was not run: a proof is a check of the project ({listed}) with paths or names of tests"
            )
    everything = [*candidates, *(check for group in groups for check in group)]
    unique = {check.command: check for check in reversed(everything)}
    commands = dict.fromkeys(check.command for check in everything)
    return [unique[command] for command in commands][:_MAX_CANDIDATES], refusals


def proposed_command(proposed: str, checks: Sequence[Check]) -> str:
    """A command that an agent proposes, if it is a check with selectors of tests. Empty: it is not run.

    The result holds nothing that a shell would take for more than a word.
    """
    if any(proposed.strip() == check.command for check in checks):
        return proposed.strip()
    tokens = _tokens(proposed)
    for check in checks:
        base = _tokens(check.command)
        if not base or not all(_SAFE_TOKEN.fullmatch(token) for token in base):
            continue
        rest = tokens[len(base) :]
        if tokens[: len(base)] == base and rest and _are_selectors(rest):
            return shlex.join(tokens)
    return ""


def _are_selectors(tokens: Sequence[str]) -> bool:
    is_value = False
    for token in tokens:
        if token in _NAME_OPTIONS and not is_value:
            is_value = True
        elif not _SELECTOR.fullmatch(token) or ".." in token.split("/"):
            return False
        else:
            is_value = False
    return not is_value


def _selected(check: Check, tests: Sequence[str]) -> Check:
    return check.model_copy(update={"command": _with_selectors(check.command, tests)})


def _with_selectors(command: str, tests: Sequence[str]) -> str:
    """The check for the changed tests alone, where its runner takes paths; else the check as it is."""
    tokens = _tokens(command)
    files = [path for path in tests if _RUNNABLE.fullmatch(posixpath.basename(path))][:_MAX_FILES]
    if not files or not all(_SAFE_TOKEN.fullmatch(token) for token in tokens):
        return command
    bare = [token for token in tokens if not _ASSIGNMENT.fullmatch(token)]
    kind = _python_runner(bare)
    if kind and all(path.endswith(".py") for path in files):
        return shlex.join([*tokens, *files])
    if bare[:2] == ["node", "--test"] and all(token.startswith("-") for token in bare[1:]):
        scripts = [path for path in files if path.endswith("js")]
        return shlex.join([*tokens, *scripts]) if scripts else command
    if bare[:2] == ["go", "test"] and tokens[-1] == "./...":
        folders = dict.fromkeys(
            f"./{posixpath.dirname(path)}".rstrip("/") for path in files if path.endswith(".go")
        )
        return shlex.join([*tokens[:-1], *folders]) if folders else command
    return command


def _python_runner(tokens: Sequence[str]) -> str:
    """`pytest` or `unittest`, if the command runs it without paths of its own."""
    for runner in ("pytest", "unittest"):
        if runner in tokens:
            at = tokens.index(runner)
            is_called = at == 0 or (at == 2 and tokens[1] == "-m")
            return runner if is_called and all(t.startswith("-") for t in tokens[at + 1 :]) else ""
    return ""


def _tokens(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _why_not(before: CheckResult, after: CheckResult | None) -> str:
    """Reason why a run on the base, and the one on the branch, prove nothing. Empty: they do."""
    command = in_code(before.command)
    if before.timed_out:
        return f"{command} did not finish on the base"
    if before.ran_no_tests:
        return f"{command} ran no tests on the base"
    if before.passed:
        return f"{command} passes on the base too, so it does not show the bug"
    cannot = why_not_runnable(before, "") or never_ran(before.tail)
    if not cannot and _is_pytest(before.command) and before.exit_code in _PYTEST_CODES:
        cannot = f"pytest exit {before.exit_code}"
    if cannot:
        return (
            f"{command} fails on the base before a test can fail by itself ({in_code(one_line(cannot, 200))}); test through what the "
            "base already has"
        )
    if after is None:
        return ""
    if not after.passed:
        return f"{command} does not pass on the branch: {check_ending(after.model_dump())}"
    if after.ignored_failures:
        return f"{command} ends with 0 on the branch although tests fail"
    ran = before.tests_run or 0
    if after.tests_run is not None and after.tests_run < ran:
        return f"{command} ran {counted(ran, 'test')} on the base and {after.tests_run} on the branch: one that is skipped shows nothing"
    return ""


def _is_pytest(command: str) -> bool:
    return "pytest" in _tokens(command)


def _run(check: Check, tests: Sequence[str], before: CheckResult, after: CheckResult) -> ProofRun:
    return ProofRun(
        command=check.command,
        files=tuple(tests[:_MAX_FILES]),
        on_base=_bare(before),
        on_branch=_bare(after),
    )


def _bare(result: CheckResult) -> CheckResult:
    return result.model_copy(
        update={"tail": "", "before": "", "failed": result.failed[:_MAX_FILES]}
    )


def proof_lines(proof: FixProof | None) -> list[str]:
    """The proof, or why there is none, one fact per line."""
    if proof is None:
        return []
    return [*_proved(proof), *_not_proved(proof)]


def _endings(proof: FixProof) -> Iterator[str]:
    for run in proof.runs:
        before, after = (check_ending(end.model_dump()) for end in (run.on_base, run.on_branch))
        yield (
            f"{in_code(run.command, 120)}: {before} on the base {proof.base[:12]}, "
            f"{after} on the branch {proof.commit[:12]}"
        )


def _proved(proof: FixProof) -> Iterator[str]:
    for run, ending in zip(proof.runs, _endings(proof), strict=True):
        before, after = run.on_base, run.on_branch
        yield ending
        yield (
            f"SHA-256 of its output: {in_code(before.output_sha256[:16])} on the base, {in_code(after.output_sha256[:16])} on the "
            "branch"
        )
        if before.failed:
            failed = ", ".join(in_code(name, 120) for name in before.failed[:_MAX_LISTED])
            yield f"failed on the base: {failed}"


def _not_proved(proof: FixProof) -> Iterator[str]:
    if not proof.problem:
        return
    yield f"The fix is not proved by a test: {proof.problem}"
    if proof.reason:
        yield f"the developer says: {one_line(proof.reason, 300)}"
    if proof.is_accepted:
        yield f"a person accepted this{f': {one_line(proof.answer, 300)}' if proof.answer else ''}"


def proof_prompt(context: StageContext, *, works: bool) -> str:
    """The rules of the proof for who develops; the proof itself for who judges. Empty: none is asked for."""
    state = context.state
    spec = state.job.spec
    if not spec.mode(state.job.mode).proves_fix or spec.fix_proof == "skip" or not context.checks:
        return ""
    if works:
        return (
            "This task fixes a bug, so a test has to prove the fix. "
            f"{_HOW}. In the answer: "
            '`"proof": [{"command": "a check of the project with the paths of tests", "files": ["tests/test_x.py"]}]`, or '
            '`"no_proof": "…"`. Without either, Podium runs the test files that the branch changes.'
        )
    lines = "\n".join(f"* {line}" for line in proof_lines(state.proof))
    return f"Proof of the fix, run by Podium:\n{lines}" if lines else ""


def proof_record(proof: FixProof | None) -> Json:
    return None if proof is None else proof.model_dump(mode="json")
