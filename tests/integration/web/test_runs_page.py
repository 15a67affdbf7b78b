"""The list of runs: filtered, paged, live, and the place where runs are started."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from playwright.async_api import Browser, expect

from podium.app.app import Podium
from podium.core.events import NoteTaken, RunStarted
from podium.core.work import Failure, Run, RunStatus
from podium.ports import RunQuery, Transaction
from podium.web.access.tokens import ConsoleRole
from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    visitor,
)
from tests.integration.web.console_harness import console
from tests.integration.web.run_past import git


async def add_runs(
    podium: Podium, how_many: int, task: str = "task", **fields: object
) -> list[str]:
    """So many runs, the newest first."""
    now = podium.clock.now()
    payload = {"flow": "pipeline", "status": RunStatus.SUCCEEDED, "created_at": now, **fields}
    runs = [
        Run.model_validate({"id": podium.ids.new("run"), "task": f"{task} {number}", **payload})
        for number in range(how_many)
    ]

    def work(tx: Transaction) -> None:
        for run in runs:
            tx.add_run(run)
            tx.append(run.id, NoteTaken(text="made"))

    await (await podium.store()).write(work)
    return [run.id for run in runs][::-1]


async def test_pages_of_the_list_lead_to_older_runs_and_back(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        ids = await add_runs(stage.podium, 45)
        first = (await client.get("/runs")).text
        assert ids[0] in first
        assert ids[39] in first
        assert ids[40] not in first
        assert f"/runs?before={ids[39]}" in first
        second = (await client.get("/runs", params={"before": ids[39]})).text
        assert ids[39] not in second.replace(f"before={ids[39]}", "")
        assert ids[44] in second
        assert ">Older<" not in second
        assert ">Newest<" in second


async def test_runs_are_chosen_by_state_flow_and_words(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        (fine,) = await add_runs(stage.podium, 1, "mend the roof")
        failure = Failure(kind="TimedOut", message="nobody answered")
        (bad,) = await add_runs(
            stage.podium, 1, "paint it", status=RunStatus.FAILED, failure=failure, flow="duet"
        )
        (lost,) = await add_runs(
            stage.podium, 1, "lost", status=RunStatus.RUNNING, owner="wrk_gone", flow="sense"
        )

        async def found(**asked: str) -> set[str]:
            answer = await client.get("/runs", params=asked)
            assert answer.status_code == 200
            return {run_id for run_id in (fine, bad, lost) if f'id="{run_id}"' in answer.text}

        assert await found() == {fine, bad, lost}
        assert await found(status="failed") == {bad}
        assert await found(status="interrupted") == {lost}
        assert await found(status="running") == set()
        assert await found(flow="duet") == {bad}
        assert await found(text="ROOF") == {fine}
        assert await found(text="%") == set()
        page = (await client.get("/runs")).text
        assert "TimedOut: nobody answered" in page
        assert "process is gone" in page
        assert (await client.get("/runs", params={"status": "nice"})).status_code == 422


async def test_a_program_that_looks_for_words_goes_from_portion_to_portion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many runs as are read at a time would take the test minutes to make.
    monkeypatch.setattr("podium.app.run_overview.MAX_READ", 4)
    async with console(tmp_path) as stage, stage.client() as client:
        (rare,) = await add_runs(stage.podium, 1, "hapax")
        await add_runs(stage.podium, 10)
        seen, asked = list[int](), {"text": "hapax"}
        while True:
            response = (await client.get("/api/v1/runs", params=asked)).json()
            seen.append(len(response["runs"]))
            if response["before"] is None:
                break
            asked = {**asked, "before": response["before"]}
        assert seen == [0, 0, 1]
        assert response["runs"][0]["run"]["id"] == rare
        found = (await client.get("/api/v1/runs", params={"text": "task", "limit": 3})).json()
        assert len(found["runs"]) == 3
        assert found["before"] == found["runs"][-1]["run"]["id"]


@pytest.mark.soak
@needs_browser
async def test_a_page_looks_through_older_runs_by_itself_until_all_were_read(
    tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.app.run_overview.MAX_READ", 4)  # as above
    async with console(tmp_path) as stage:
        old = await add_runs(stage.podium, 2, "hapax <b>")
        await add_runs(stage.podium, 10)
        async with visitor(browser, stage, phone=True) as page:
            await page.goto("/runs?text=hapax")
            await page.get_by_text("No more runs").wait_for()
            assert await page.locator("tr[data-run]").count() == 2
            await expect(page.locator(f"#{old[0]}")).to_contain_text("hapax <b>")
            await picture(page, "runs-words-phone")
            await refuse_barriers(page)
            await refuse_sideways(page)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("filled", "text"),
    [
        ({"flow": "none"}, "unknown flow"),
        ({"flow": "playbook", "text": "p.md", "option_inputs": "nothing"}, "NAME=VALUE"),
        ({"flow": "playbook", "text": "../../x.md"}, "outside the project"),
    ],
)
async def test_a_form_that_cannot_be_meant_is_answered_in_words(
    tmp_path: Path, filled: dict[str, str], text: str
) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        answer = await client.post("/runs", data=filled)
        assert answer.status_code == 422
        assert text in answer.text
        runs = await (await stage.podium.store()).read(lambda view: view.runs(RunQuery()))
        assert runs == []


async def test_who_may_not_approve_cannot_start_a_run_with_a_yes_to_its_plan(
    tmp_path: Path,
) -> None:
    async with console(tmp_path) as stage:
        token = stage.new_token("otto", ConsoleRole.OPERATOR)
        async with stage.client(token) as client:
            assert "option_approve" not in (await client.get("/runs")).text
            filled = {"flow": "operator", "text": "mend it", "option_approve": "yes"}
            answer = await client.post("/runs", data=filled)
            assert answer.status_code == 403
            assert "is not an approver" in answer.text
        async with stage.client() as client:
            assert "option_approve" in (await client.get("/runs")).text


async def test_what_a_project_has_is_chosen_from_and_not_written(tmp_path: Path) -> None:
    agents = {"player": {"kind": "scripted", "script": "s.yaml"}, "<b>": {"kind": "claude"}}
    flows = {"pipeline": {"modes": {"hotfix": "develop"}}, "duet": {"pairs": {"night": {}}}}
    settings = {"agents": agents, "flows": flows}
    async with console(tmp_path, yaml=yaml.safe_dump(settings)) as stage, stage.client() as client:
        page = (await client.get("/runs")).text
        chosen = dict(re.findall(r'<select id="(\w+-\w+)".*?>(.*?)</select>', page))
        values = {name: re.findall(r'value="([^"]*)"', item) for name, item in chosen.items()}
        assert {"direct", "bugfix", "hotfix"} <= set(values["pipeline-mode"])
        assert '"direct" selected' in chosen["pipeline-mode"]
        assert values["pipeline-agent"] == ["", "&lt;b&gt;", "player"]
        assert values["playbook-agent"] == ["", "&lt;b&gt;", "player"]
        assert "roofing" in values["operator-pack"]
        pairs = re.findall(r'type="checkbox" name="option_pairs" value="(\w+)"', page)
        assert pairs == ["main", "night"]
        filled = {"flow": "duet", "text": "look", "option_pairs": ["noon", "main"]}
        answer = await client.post("/runs", data=filled)
        assert answer.status_code == 422
        assert "there is no pair &#39;noon&#39;" in answer.text


async def test_a_flow_that_podium_yaml_has_wrong_is_written_about_and_the_page_is_there(
    tmp_path: Path,
) -> None:
    wrong = {"flows": {"pipeline": {"modes": {"hotfix": "no such stage"}}}}
    async with console(tmp_path, yaml=yaml.safe_dump(wrong)) as stage, stage.client() as client:
        page = (await client.get("/runs")).text
        assert '<input id="pipeline-mode"' in page


@needs_browser
async def test_the_list_is_live_and_a_run_is_started_from_it(
    tmp_path: Path, browser: Browser
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "script.yaml").write_text(yaml.safe_dump({"turns": []}))
    agents = {"player": {"kind": "scripted", "script": "script.yaml"}}
    (project / "podium.yaml").write_text(yaml.safe_dump({"agents": agents}))
    (project / ".gitignore").write_text(".podium/\n")
    git(project, "init", "-q", "-b", "main")
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    async with console(tmp_path) as stage:
        (shown,) = await add_runs(stage.podium, 1, status=RunStatus.QUEUED, queue="default")
        for phone in (False, True):
            async with visitor(browser, stage, phone=phone, dark=phone) as page:
                await page.goto("/runs")
                await refuse_barriers(page)
                await refuse_sideways(page)
                await page.get_by_text("Start a run").click()
                await page.get_by_text("Playbook", exact=True).click()
                await page.get_by_text("Operator", exact=True).last.click()
                await picture(page, f"runs-start-{'phone' if phone else 'desktop'}")
                await refuse_barriers(page)
                await refuse_sideways(page)
        async with visitor(browser, stage) as page, visitor(browser, stage) as other:
            await other.goto("/runs")
            await expect(other.locator(f"#{shown} .tag")).to_have_text("queued")
            await page.goto("/runs")
            await page.get_by_text("Start a run").click()
            await page.get_by_text("Pipeline", exact=True).click()
            await page.get_by_label("Task: what to build").fill("Add a <b>farewell</b>")
            await page.get_by_role("button", name="Start").first.click()
            await expect(page.locator("h1")).to_have_text("Add a <b>farewell</b>")
            await expect(page.locator("#head")).to_contain_text("Requested by")
            await expect(other.locator("#runs")).to_contain_text("Add a <b>farewell</b>")
            store = await stage.podium.store()
            run = await store.read(lambda view: view.run(shown))
            assert run is not None
            cancelled = run.model_copy(update={"status": RunStatus.CANCELLED})

            def change(tx: Transaction) -> None:
                tx.save_run(cancelled)
                tx.append(shown, RunStarted(owner="w", fence=1))

            await store.write(change)
            await expect(other.locator(f"#{shown} .tag")).to_have_text("cancelled")
            await page.get_by_text("Cancel…").click()
            await page.get_by_label("Reason (recorded)").fill("wrong branch")
            await page.get_by_role("button", name="Cancel this run").click()
            await expect(page.locator("#state")).to_have_text("cancelled")
            await expect(page.locator("#log")).to_contain_text("wrong branch")
