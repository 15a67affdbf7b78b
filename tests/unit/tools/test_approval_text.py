"""Content shown to a person before an approval, and what an approval is bound to."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from podium.core.decisions import BuiltInRule, Decision, Effect, Refusal, Tier
from podium.core.model import Json
from podium.policy import compile_policy
from podium.tools.output_text import denied
from tests.unit.tools.toolbox_harness import RUN, Harness, always, make_harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return make_harness(tmp_path, gate=always(Effect.ASK))


async def asked(harness: Harness, tool: str, **arguments: Json) -> str:
    """The summary of the question that a call leads to."""
    refusal = await harness.toolbox.perform(harness.call(tool, **arguments))
    assert isinstance(refusal, Refusal)
    assert refusal.approval_id is not None, refusal.say
    [*_, approval] = await harness.store.read(lambda view: view.approvals(run_id=RUN))
    return approval.summary


async def test_every_command_of_a_line_is_shown_whole_and_on_a_line_of_its_own(
    harness: Harness,
) -> None:
    harmless = "echo " + "fine " * 300

    summary = await asked(harness, "run_command", command=f"{harmless}&& rm -rf data && echo 'a b'")

    runs = [line for line in summary.splitlines() if line.startswith("  runs ")]
    assert runs == [f"  runs {harmless.strip()}", "  runs rm -rf data", "  runs echo 'a b'"]


async def test_a_long_value_is_shown_by_beginning_end_and_digest(harness: Harness) -> None:
    content = "begins" + "." * 10_000 + "ends"

    summary = await asked(harness, "write_file", path="a", content=content)

    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    assert "begins..." in summary
    assert "...ends" in summary
    assert f"[9610 characters omitted; SHA-256 of the whole text: {digest}]" in summary
    assert len(summary) < 1_000


@pytest.mark.parametrize("command", ["echo " + "x" * 4_000, ["echo", "x" * 4_000]])
async def test_nobody_is_asked_about_a_command_that_is_too_long_to_read(
    harness: Harness, command: str | list[str]
) -> None:
    refusal = await harness.toolbox.perform(harness.call("run_command", command=command))

    assert isinstance(refusal, Refusal)
    assert refusal.decision.effect is Effect.DENY
    assert "Put it into a script file, or split it" in refusal.say
    assert not await harness.store.read(lambda view: view.approvals(run_id=RUN))


async def test_the_content_of_a_script_is_part_of_what_is_asked_about(harness: Harness) -> None:
    script = harness.root / "deploy.sh"
    script.write_text("make it so")

    summary = await asked(harness, "run_command", command="sh deploy.sh")

    digest = hashlib.sha256(b"make it so").hexdigest()[:12]
    assert f"  with deploy.sh ({digest})" in summary.splitlines()


@pytest.mark.parametrize(
    ("command", "cwd"),
    [
        ("sh sub/a.sh", "."),
        ("./sub/a.sh", "."),
        ("sh a.sh", "sub"),
        ("cd sub && sh a.sh", "."),
        ("sh link", "."),
        ("tool --script=sub/a.sh", "."),
        (["sh", "sub/a.sh"], "."),
    ],
)
@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_yes_to_a_command_is_none_once_a_file_that_it_names_has_changed(
    harness: Harness, command: str | list[str], cwd: str, size: int
) -> None:
    (harness.root / "sub").mkdir()
    script = harness.root / "sub" / "a.sh"
    (harness.root / "link").symlink_to(script)
    script.write_text("x" * size + "one")
    before = harness.call("run_command", command=command, cwd=cwd)
    assert before.digest() == harness.call("run_command", command=command, cwd=cwd).digest()

    script.write_text("x" * size + "two")

    assert before.digest() != harness.call("run_command", command=command, cwd=cwd).digest()


def test_files_outside_the_workspace_and_of_other_tools_are_not_looked_at(
    harness: Harness, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("x")
    (harness.root / "link").symlink_to(tmp_path / "out")
    (harness.root / "a").write_text("x")
    assert harness.call("run_command", command="cat /etc/passwd ../out link .").files == ()
    assert harness.call("read_file", path="a").files == ()
    assert harness.call("write_file", path="a", content="x").files == ()  # it loses nothing


@pytest.mark.parametrize(
    "rule",
    [
        *BuiltInRule,
        "read-only-zone:tests",
        "forbidden-zone:keys",
        "approval:apr_1",
        "mode:dry-run",
        "budget:run",
        "no-deploys",
    ],
)
def test_every_denial_says_what_to_do_instead(rule: str) -> None:
    no = Decision(effect=Effect.DENY, rule=rule, reason="it may not be", tier=Tier.T2)

    say = denied(no)

    assert say.startswith(f"it may not be (rule {rule}). Nothing was done")
    assert len(say.partition("Instead: ")[2]) > 10


def test_what_is_denied_by_a_built_in_check_has_an_alternative_of_its_own() -> None:
    say = {
        denied(Decision(effect=Effect.DENY, rule=rule, reason="", tier=Tier.T2)).partition(
            "Instead: "
        )[2]
        for rule in BuiltInRule
    }

    assert len(say) == len(BuiltInRule)
    assert "say in your answer what you need and why." not in say


@pytest.mark.parametrize(
    ("char", "number"), [("\ufeff", "`chr(0xFEFF)`"), ("\U000e0041", "`chr(0xE0041)`")]
)
async def test_a_command_with_an_invisible_character_is_to_leave_it_out_or_name_its_number(
    tmp_path: Path, char: str, number: str
) -> None:
    harness = make_harness(tmp_path, gate=compile_policy([]))
    refusal = await harness.toolbox.perform(harness.call("run_command", command=f"echo {char}x"))
    assert isinstance(refusal, Refusal)
    assert f"invisible character U+{ord(char):04X}; remove the character" in refusal.say
    assert number in refusal.say
    assert "plain commands" not in refusal.say
