"""Attempts at one task: how they compare, and the budget that they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podium.agents.budget_tracker import BEGINNING, BudgetTracker
from podium.core.decisions import Budget, Usage, usage_counted
from podium.core.errors import BudgetSpent
from podium.core.forge import check_passed
from podium.core.model import FrozenModel, Json
from podium.core.work import Run
from podium.jobs.pipeline.branch_change import sections_of
from podium.jobs.pipeline.spec import FORWARD
from podium.ports import RunQuery, StoreView
from podium.render.text import counted

_DOCUMENTS = "docs/dev_docs/"
_MAX_ATTEMPTS = 100


class Attempt(FrozenModel):
    """One attempt as it compares with the others. Those that cannot be delivered have no rank."""

    number: int
    agent: str
    """Empty: the agents that podium.yaml names for the roles."""
    status: str
    run_id: str
    branch: str = ""
    rank: int = 0
    """1 is the best. 0: it did not come to its end."""
    checks_passed: bool = False
    """All checks of the project passed, and there were some."""
    proved: bool = False
    """A test fails on the base and passes on the branch."""
    findings: int = 0
    """Answers that a review, an audit, the checks or Podium sent back, and disputed checks."""
    lines: int = 0
    """Lines added and removed, without Podium's own documents."""
    files: int = 0
    usd: float = 0.0
    why: str = ""

    @property
    def order(self) -> tuple[bool, bool, int, int, float, int]:
        """The less the better: checks, proof, findings, size, cost, then the number."""
        return (
            not self.checks_passed,
            not self.proved,
            self.findings,
            self.lines,
            self.usd,
            self.number,
        )


def ranked(attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts that can be delivered, the best first, and then the others."""
    finished = sorted((a for a in attempts if a.status == "finished"), key=lambda a: a.order)
    best = [a.model_copy(update={"rank": rank}) for rank, a in enumerate(finished, 1)]
    return [*best, *(a for a in attempts if a.status != "finished")]


def measured(attempt: Attempt, result: Mapping[str, Json], diff: str) -> Attempt:
    """The attempt with what its run and the diff of its branch tell."""
    checks = _mappings(result.get("checks"))
    stages = _mappings(result.get("stages"))
    sections = [text for path, text in sections_of(diff) if not path.startswith(_DOCUMENTS)]
    disputed = sum(str(note).startswith("disputed") for note in result.get("check_notes") or ())
    return attempt.model_copy(
        update={
            "checks_passed": bool(checks) and all(check_passed(check) for check in checks),
            "proved": _is_proved(result.get("fix_proof")),
            "findings": disputed + sum(stage.get("verdict") not in FORWARD for stage in stages),
            "lines": sum(map(_changed_lines, sections)),
            "files": len(sections),
        }
    )


def _is_proved(proof: Json) -> bool:
    return isinstance(proof, Mapping) and bool(proof.get("runs")) and not proof.get("problem")


def _mappings(value: Json) -> list[Mapping[str, Json]]:
    return (
        [item for item in value or () if isinstance(item, Mapping)]
        if isinstance(value, list)
        else []
    )


def _changed_lines(section: str) -> int:
    body = section.split("\n@@", 1)[1:]
    return sum(line[:1] in ("+", "-") for part in body for line in part.split("\n"))


HEADINGS = (
    "RANK",
    "ATTEMPT",
    "AGENT",
    "CHECKS",
    "PROOF",
    "FINDINGS",
    "DIFF",
    "COST",
    "BRANCH",
    "WHY",
)


def cells(attempt: Attempt) -> tuple[str, ...]:
    """A row of the comparison."""
    done = attempt.rank > 0
    size = f"{counted(attempt.lines, 'line')} in {counted(attempt.files, 'file')}"
    return (
        str(attempt.rank) if done else "-",
        str(attempt.number),
        attempt.agent or "as configured",
        ("passed" if attempt.checks_passed else "not passed") if done else "-",
        ("yes" if attempt.proved else "no") if done else "-",
        str(attempt.findings) if done else "-",
        size if done else "-",
        f"${attempt.usd:.4f}",
        attempt.branch,
        attempt.why,
    )


def comparison_text(attempts: Sequence[Attempt]) -> str:
    """One line for each attempt."""
    return "\n".join(
        "- "
        + ", ".join(
            f"{heading.lower()} {cell}"
            for heading, cell in zip(HEADINGS[1:], cells(attempt)[1:], strict=True)
            if cell not in ("", "-")
        )
        for attempt in attempts
    )


@dataclass(frozen=True)
class SharedBudget(BudgetTracker):
    """Budgets of turns, where attempts at one task share the budget of a run."""

    async def check(self, run: Run, step_key: str) -> None:
        """As for every run; of attempts, all together may use no more than `budgets: run:` allows one."""
        await super().check(run, step_key)
        if isinstance(run.input, Mapping) and run.input.get("shares_budget"):
            spent = await self.store.read(lambda view: self._spent_together(view, run, step_key))
            if spent is not None:
                raise spent

    def _spent_together(self, view: StoreView, run: Run, step_key: str) -> BudgetSpent | None:
        first = run.parent_id or run.id
        ids = [first, *(r.id for r in view.runs(RunQuery(parent_id=first, limit=_MAX_ATTEMPTS)))]
        used = Usage()
        for run_id in ids:
            now = self.clock.now()
            used = used.plus(
                usage_counted(
                    lambda counter: view.counted(counter, BEGINNING), "run", run_id, step_key, now
                )
            )
        for budget in self.budgets:
            for measure, limit, amount in _figures(budget, used):
                if budget.scope == "run" and limit is not None and amount >= limit:
                    return BudgetSpent(
                        f"the attempts have spent the run's budget together: {amount:g} of {limit:g} {measure} are "
                        f"used; raise `budgets: run: {measure}:` in your own settings, then continue with "
                        f"`podium resume {first}`",
                        scope="run",
                        measure=measure,
                        used=amount,
                        limit=limit,
                    )
        return None


def _figures(budget: Budget, used: Usage) -> tuple[tuple[str, float | None, float], ...]:
    return (
        ("usd", budget.usd, used.usd),
        ("tokens", budget.tokens, used.input_tokens + used.output_tokens),
        ("turns", budget.turns, used.turns),
        ("seconds", budget.seconds, used.seconds),
    )
