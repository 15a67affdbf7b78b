"""Verdicts of the policy that comes with Podium on the tools that come with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium.core.decisions import CallOutcome, Effect, Refusal
from podium.core.model import Json
from podium.tools import builtin_tools, checks_tool
from tests.unit.gate.gate_harness import gate_of
from tests.unit.tools.toolbox_harness import Harness, make_harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    checks = checks_tool({"tests": "echo fine", "push": "git push --force"})
    made = make_harness(tmp_path, [*builtin_tools(), checks], gate=gate_of(default=True))
    (made.root / "a").write_text("one\n")
    return made


def patch(*sections: str) -> Json:
    return "\n".join(["*** Begin Patch", *sections, "*** End Patch"])


@pytest.mark.parametrize(
    ("tool", "arguments", "effect"),
    [
        ("find_files", {"patterns": ["*"]}, None),
        ("run_checks", {"names": ["tests"]}, None),
        ("run_checks", {"names": ["push"]}, Effect.DENY),
        ("ask_human", {"question": "why?"}, Effect.ASK),
        ("apply_patch", {"patch": patch("*** Add File: b", "+x")}, None),
        ("apply_patch", {"patch": patch("*** Delete File: a")}, Effect.ASK),
        ("apply_patch", {"patch": patch("*** Add File: .env", "+x")}, Effect.ASK),
        (
            "apply_patch",
            {"patch": patch("*** Add File: b", "+x", "*** Add File: ../c", "+x")},
            Effect.DENY,
        ),
        ("apply_patch", {"patch": patch("*** Add File: .git/hooks/x", "+x")}, Effect.DENY),
        (
            "apply_patch",
            {"patch": patch("*** Update File: a", "*** Move to: .podium/a")},
            Effect.DENY,
        ),
        (
            "apply_patch",
            {"patch": patch("*** Add File: .github/workflows/x.yml", "+x")},
            Effect.ASK,
        ),
    ],
)
async def test_what_is_judged_is_everything_that_a_call_touches(
    harness: Harness, tool: str, arguments: dict[str, Json], effect: Effect | None
) -> None:
    answer = await harness.toolbox.perform(harness.call(tool, **arguments))

    if effect is None:
        assert isinstance(answer, CallOutcome)
        assert answer.ok, answer.error
    else:
        assert isinstance(answer, Refusal)
        assert answer.decision.effect is effect, answer.decision
        assert (harness.root / "a").read_text() == "one\n"
