"""A working Podium: rooms that fit together, built when asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from podium.app.app import Podium, open_podium
from podium.app.approvals import approve
from podium.app.flow_registry import LazyFlow
from podium.app.receipts import verify_receipts
from podium.config.configuration import load_configuration
from podium.core.decisions import CallOutcome, Effect, Refusal
from podium.core.errors import (
    BadInput,
    ConfigInvalid,
    NoSandbox,
    NotPossibleNow,
    ToolMissing,
    UserMustAct,
)
from podium.core.job import FlowSpec
from podium.core.processes import ProcessSpec
from podium.core.work import RunStatus
from podium.engine import FlowDefinition
from podium.ports import Flow, FlowBody, FlowContext

ENVIRON = {"PATH": "/usr/bin:/bin", "JAVA_HOME": "/java", "LICENCE": "abc", "TERM": "xterm"}


def configured(folder: Path, text: str = "", user: str = "") -> Podium:
    project, home = folder / "project", folder / "home"
    project.mkdir()
    home.mkdir()
    (project / "podium.yaml").write_text(text)
    (home / "config.yaml").write_text(user)
    environ = {**ENVIRON, "HOME": str(home), "PODIUM_HOME": str(home)}
    return Podium(load_configuration(environ, project=project), environ)


@pytest.fixture
async def podium(tmp_path: Path) -> AsyncIterator[Podium]:
    podium = configured(tmp_path)
    yield podium
    await podium.close()


async def test_a_podium_that_is_asked_for_nothing_makes_nothing(podium: Podium) -> None:
    await podium.close()
    assert [path.name for path in podium.folders.project.iterdir()] == ["podium.yaml"]


async def test_rooms_are_built_once(podium: Podium) -> None:
    assert await podium.store() is await podium.store()
    assert await podium.engine() is await podium.hosting_engine()
    assert podium.gate is podium.gate
    assert podium.launcher is podium.launcher


async def test_callers_at_the_same_time_get_one_engine_that_knows_every_flow(
    podium: Podium,
) -> None:
    askers = (podium.engine(), podium.hosting_engine(), podium.engine(), podium.hosting_engine())
    engines = await asyncio.gather(*askers)
    assert len({id(engine) for engine in engines}) == 1
    # A flow that nobody registered is refused before anything is queued.
    assert (await engines[0].start("call", {"tool": "x"}, queue="q")).flow == "call"


async def test_a_call_passes_gate_toolbox_and_receipts_from_end_to_end(podium: Podium) -> None:
    toolbox = await podium.toolbox()
    call = toolbox.normalise(
        "write_file", {"path": "a.txt", "content": "hello"}, run_id="run_x", step_key="s", index=0
    )
    outcome = await toolbox.perform(call)
    assert isinstance(outcome, CallOutcome)
    assert outcome.ok, outcome.error
    assert (podium.folders.project / "a.txt").read_text() == "hello"
    verdict = await verify_receipts(await podium.store(), await podium.verifier())
    assert (verdict.receipts, verdict.sound) == (1, True)


async def test_what_must_be_asked_for_is_done_after_the_yes_and_not_before(podium: Podium) -> None:
    toolbox = await podium.toolbox()
    call = toolbox.normalise(
        "write_file", {"path": "podium.yaml", "content": ""}, run_id="run_x", step_key="s", index=0
    )
    refusal = await toolbox.perform(call)
    assert isinstance(refusal, Refusal)
    assert refusal.decision.effect is Effect.ASK
    assert refusal.approval_id is not None
    store = await podium.store()
    await approve(store, podium.clock, podium.ids, refusal.approval_id, by="ann")
    outcome = await toolbox.perform(call)
    assert isinstance(outcome, CallOutcome)
    assert outcome.ok, outcome.error


async def test_the_key_of_the_receipts_lies_outside_the_project(podium: Podium) -> None:
    assert not podium.key_dir.is_relative_to(podium.folders.project)
    assert podium.key_dir.is_relative_to(podium.folders.user_state)


async def test_a_project_that_was_moved_still_finds_its_receipts(tmp_path: Path) -> None:
    before = configured(tmp_path, "")
    await before.store()
    await before.close()
    vault = before.key_dir
    moved = before.folders.project.rename(tmp_path / "elsewhere")
    after = load_configuration({"PODIUM_HOME": str(before.folders.user_config)}, project=moved)
    assert after.folders.key_dir == vault


async def test_children_see_what_the_users_file_hands_on_and_no_more(tmp_path: Path) -> None:
    user = "environment: {inherit: [JAVA_HOME, LICENCE], deny: [TERM]}\n"
    podium = configured(tmp_path, "environment: {deny: [LICENCE]}\n", user)
    ended = await podium.launcher.run(ProcessSpec(argv=("env",), cwd=str(tmp_path)))
    names = {line.partition("=")[0] for line in ended.stdout.decode().splitlines()}
    assert {"PATH", "JAVA_HOME"} <= names
    assert not {"LICENCE", "TERM", "PODIUM_HOME"} & names


async def test_a_confinement_that_is_set_and_cannot_be_had_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.sandbox.confining.canary.candidates", list)
    podium = configured(tmp_path)
    root = str(podium.folders.project)
    fence = await podium.confinement_provider.confinement(root)
    with pytest.raises(NoSandbox, match="sandbox: none"):
        await podium.launcher.run(ProcessSpec(argv=("touch", "ran"), cwd=root, confinement=fence))
    assert not (podium.folders.project / "ran").exists()


async def test_a_declared_secret_is_taken_from_the_environment_or_asked_for(tmp_path: Path) -> None:
    podium = configured(tmp_path, user="secrets: [LICENCE, NOWHERE]\n")
    assert podium.resolve_secret("LICENCE") == "abc"
    with pytest.raises(UserMustAct, match="secret 'NOWHERE' is not set"):
        podium.resolve_secret("NOWHERE")


async def test_a_variable_that_nobody_declared_a_secret_is_not_handed_out(podium: Podium) -> None:
    with pytest.raises(
        UserMustAct, match=r"'LICENCE' is not declared.*`secrets: \[LICENCE\]` to"
    ) as at:
        podium.resolve_secret("LICENCE")
    assert str(podium.folders.user_file) in str(at.value)


async def test_a_project_takes_secrets_away_and_never_adds_any(tmp_path: Path) -> None:
    podium = configured(tmp_path, "secrets: [JAVA_HOME]\n", "secrets: [LICENCE]\n")
    for name in ("LICENCE", "JAVA_HOME"):
        with pytest.raises(UserMustAct, match="is not declared"):
            podium.resolve_secret(name)


async def test_a_declared_secret_is_hidden_whatever_its_name(tmp_path: Path) -> None:
    podium = configured(tmp_path, user="secrets: [JAVA_HOME]\n")
    podium.environ = {"JAVA_HOME": "ordinary-name-77"}
    assert podium.redactor.text("it is ordinary-name-77") == "it is [redacted:JAVA_HOME]"


async def test_the_user_alone_says_that_a_value_is_no_secret(tmp_path: Path) -> None:
    environ = {"DEMO_PASSWORD": "open-demo-77", "SHOP_PASSWORD": "real-shop-88"}
    text = "open-demo-77 real-shop-88"
    folders = [tmp_path / "by the project", tmp_path / "by the user"]
    for folder in folders:
        folder.mkdir()
    podium = configured(folders[0], "not_secret: [DEMO_PASSWORD, SHOP_PASSWORD]\n")
    podium.environ = environ
    assert podium.redactor.text(text) == "[redacted:DEMO_PASSWORD] [redacted:SHOP_PASSWORD]"
    user = "not_secret: [DEMO_PASSWORD, SHOP_PASSWORD]\nsecrets: [SHOP_PASSWORD]\n"
    podium = configured(folders[1], user=user)
    podium.environ = environ
    assert podium.redactor.text(text) == "open-demo-77 [redacted:SHOP_PASSWORD]"


async def test_a_text_with_a_secret_in_it_is_recognised(tmp_path: Path) -> None:
    podium = configured(tmp_path, "redact: ['internal-[0-9]{6}']\n")
    assert podium.looks_secret("see internal-123456") is not None
    assert podium.looks_secret("plain words") is None


async def test_a_token_known_by_its_shape_gives_no_name_that_could_be_referred_to(
    podium: Podium,
) -> None:
    assert podium.looks_secret(f"ghp_{'a1B2' * 9}") == "NAME"


async def test_a_program_that_is_missing_is_named_without_every_folder_of_the_path(
    podium: Podium, tmp_path: Path
) -> None:
    with pytest.raises(ToolMissing) as caught:
        await podium.launcher.run(ProcessSpec(argv=("no-such-program",), cwd=str(tmp_path)))
    assert "program 'no-such-program' not found on PATH" in str(caught.value)
    assert "/usr/bin" not in str(caught.value)
    there = tmp_path / "not-to-be-run"
    there.touch(mode=0o600)
    own = {"PATH": str(tmp_path)}
    with pytest.raises(ToolMissing, match="chmod"):
        await podium.launcher.run(ProcessSpec(argv=(there.name,), cwd=str(tmp_path), env=own))


async def test_a_policy_fault_names_its_file_and_line(tmp_path: Path) -> None:
    podium = configured(
        tmp_path, "policy:\n  rules:\n    - {name: x, zone: nowhere, decision: deny}\n"
    )
    with pytest.raises(ConfigInvalid, match=r"podium\.yaml:3:\d+: policy\.rules\[0\]\.zone"):
        _ = podium.gate


async def test_flows_of_the_table_can_be_hosted(tmp_path: Path) -> None:
    async def body(ctx: FlowContext, _input: object) -> str:
        return "done"

    async def build(podium: Podium) -> Flow:
        return FlowDefinition("tiny", body)

    configuration = configured(tmp_path).configuration
    async with open_podium(configuration, ENVIRON, flows={"tiny": build}) as podium:
        engine = await podium.hosting_engine()
        run = await engine.start("tiny")
        assert (await engine.finish(run.id)).status is RunStatus.SUCCEEDED


BUILT: list[str] = []


async def build_counted(podium: Podium) -> FlowBody:
    """Built by `test_flow_is_built_by_its_first_run…`: fails the first time."""
    BUILT.append(podium.folders.project.name)
    await asyncio.sleep(0)
    if len(BUILT) == 1:
        raise BadInput("a setting is wrong")

    async def body(ctx: FlowContext, _input: object) -> str:
        return "done"

    return body


def lazily(name: str, spec: FlowSpec) -> Callable[[Podium], Awaitable[Flow]]:
    async def build(podium: Podium) -> Flow:
        return LazyFlow(name, spec, podium)

    return build


async def test_flow_is_built_by_its_first_run_and_again_after_a_failure(tmp_path: Path) -> None:
    BUILT.clear()
    spec = FlowSpec(f"{__name__}:build_counted", "", f"{__name__}:build_counted")
    flows = {"counted": lazily("counted", spec)}
    async with open_podium(configured(tmp_path).configuration, ENVIRON, flows=flows) as podium:
        engine = await podium.hosting_engine()
        assert BUILT == []
        failed = await engine.finish((await engine.start("counted")).id)
        assert failed.failure is not None
        assert failed.failure.message == "a setting is wrong"
        runs = [await engine.start("counted") for _ in range(3)]
        ended = [await engine.finish(run.id) for run in runs]
        assert {run.status for run in ended} == {RunStatus.SUCCEEDED}
        assert len(BUILT) == 2, "runs that begin together share one build"


async def test_flow_that_cannot_be_loaded_is_named_before_a_worker_takes_runs(
    tmp_path: Path,
) -> None:
    spec = FlowSpec("no_such_module:build", "no_such_module:Input", "no_such_module:build")
    flows = {"lost": lazily("lost", spec)}
    async with open_podium(configured(tmp_path).configuration, ENVIRON, flows=flows) as podium:
        engine = await podium.hosting_engine()
        with pytest.raises(NotPossibleNow, match=r"flow 'lost' cannot be loaded from 'no_such_mod"):
            await podium.load_flows()
        with pytest.raises(NotPossibleNow, match="install its package again"):
            await engine.start("lost")


async def test_wrong_options_of_a_flow_are_refused_before_any_run_is_taken(tmp_path: Path) -> None:
    configuration = configured(
        tmp_path, "flows: {pipeline: {stages: {plan: {review: no}}}}\n"
    ).configuration
    async with open_podium(configuration, ENVIRON) as podium:
        with pytest.raises(ConfigInvalid, match="unknown key 'review'"):
            await podium.hosting_engine()
