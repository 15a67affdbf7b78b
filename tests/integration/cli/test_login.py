"""Identity of the person who answers at the command line: the operating system's user, or the owner of a personal token."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from podium.app.app import Podium
from podium.core.decisions import Approval, Tier
from podium.web.access.tokens import ConsoleRole, TokenBook, console_folder
from tests.integration.cli.command_runner import CommandRunner

pytestmark = pytest.mark.usefixtures("roofing")

CHAIN = "approvers: {ops: [ann], owner: [bob]}\n"


def a_chain(cli: CommandRunner) -> str:
    """The id of an approval that ops and then owner must answer."""
    cli.says(CHAIN)
    run, now = cli.add_run(), datetime.now(UTC)
    asked = Approval(
        id=cli.ids.new("apr"),
        run_id=run.id,
        call_key=f"{run.id}:act:0",
        digest="sha256:x",
        tool="write_file",
        summary="write",
        tier=Tier.T4,
        approvers=("ops", "owner"),
        requested_at=now,
        deadline=now + timedelta(hours=1),
    )

    async def work(podium: Podium) -> None:
        await (await podium.store()).write(lambda tx: tx.save_approval(asked))

    cli.within(work)
    return asked.id


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_second_name_in_the_same_shell_does_not_complete_a_chain(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = a_chain(cli)
    assert cli.run("approve", asked).code == 0
    for name, value in (("PODIUM_USER", "bob"), ("USER", "bob"), ("LOGNAME", "bob")):
        monkeypatch.setenv(name, value)
        result = cli.run("approve", asked)
        assert result.code == 2
        assert "`podium login`" in result.err
    monkeypatch.delenv("PODIUM_USER")
    assert cli.run("approve", asked).code == 1
    cli.home.mkdir(exist_ok=True)
    (cli.home / "config.yaml").write_text("user: bob\n")
    assert cli.run("approve", asked).code == 2
    (cli.home / "config.yaml").unlink()
    # Nor does another name of the same user of the operating system.
    users = SimpleNamespace(getpwuid=lambda uid: SimpleNamespace(pw_name="bob"))
    monkeypatch.setattr("podium.config.os_user.pwd", users)
    result = cli.run("approve", asked)
    assert (result.code, "under another name" in result.err) == (1, True)
    assert cli.run("approvals", asked, "--json").json["approval"]["status"] == "pending"


def test_another_person_answers_by_a_token_and_the_record_says_how(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PODIUM_USER")
    asked, token = a_chain(cli), cli.new_token("bob", "approver")
    assert cli.run("approve", asked).code == 0
    piped(monkeypatch, f"{token}\n")
    assert cli.run("login", "--token").code == 0
    assert (cli.home / "credentials.json").stat().st_mode & 0o777 == 0o600
    assert cli.run("whoami", "--json").json["authentication"] == "token"
    assert cli.run("approve", asked).code == 0
    granted = cli.run("approvals", asked, "--json").json["approval"]
    proofs = [
        (grant["by"], grant["authentication"], grant["account"]) for grant in granted["grants"]
    ]
    assert proofs == [("ann", "os_user", "ann"), ("bob", "token", "ann")]
    assert "bob for owner (token " in cli.run("approvals", asked).out
    assert "by bob (token)" in cli.run("logs", granted["run_id"]).out
    assert cli.run("logout").code == 0
    assert cli.run("whoami", "--json").json["name"] == "ann"


@pytest.mark.parametrize("how", ["revoked", "expired", "a viewer's", "unknown", "an argument"])
def test_a_token_that_does_not_hold_signs_nobody_in_and_approves_nothing(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.delenv("PODIUM_USER")
    asked = a_chain(cli)
    assert cli.run("approve", asked).code == 0
    book = TokenBook(console_folder(cli.within(_vault)))
    made = datetime.now(UTC) - timedelta(days=2)
    until = made + timedelta(days=1) if how == "expired" else None
    roles = frozenset({ConsoleRole.VIEWER if how == "a viewer's" else ConsoleRole.APPROVER})
    token, kept = book.make("bob", roles, made, until)
    if how == "an argument":
        assert "must not be an argument" in cli.run("login", token).err
    elif how != "unknown":
        vault = cli.within(_vault)
        (cli.home / "credentials.json").write_text(json.dumps({vault.name: token}))
    if how == "revoked":
        book.revoke(kept.id)
    piped(monkeypatch, "pod_0_unknown\n" if how == "unknown" else f"{token}\n")
    if how not in ("a viewer's", "an argument"):
        assert cli.run("login", "--token").code == 1
    assert cli.run("approve", asked).code == 1
    assert cli.run("approvals", asked, "--json").json["approval"]["status"] == "pending"


async def _vault(podium: Podium) -> Path:
    podium.folders.make_state()
    return podium.key_dir


def test_a_label_still_says_who_submits_and_a_yes_beforehand_needs_proof(
    cli: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODIUM_USER", "bob")
    waiting = cli.run("ask", "finalize quote q1", "-M", "execute", "--json")
    assert waiting.json["status"] == "awaiting_approval"
    result = cli.run("ask", "finalize quote q1", "-M", "execute", "--approve", "--json")
    assert "podium login" in result.out
    yes = cli.run("ask", f"APPROVE: {waiting.json['action_id']}", "--json")
    assert "podium login" in yes.out
    refused = cli.run("reject", waiting.json["action_id"], "--why", "no")
    assert (refused.code, "podium login" in refused.err) == (2, True)
