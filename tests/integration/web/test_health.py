"""Cost and health: what was spent against budgets, what waits, what failed, and what the machine lacks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from podium.app.costs import Sum
from podium.core.decisions import Usage
from podium.core.events import RunFailed, UsageRecorded
from podium.core.work import Failure, RunStatus
from podium.ports import Transaction
from podium.web.pages.health import day_plot, ranked
from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    stop_timers,
    visitor,
)
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.pending_items import add_approval, add_run
from tests.unit.contract.nouns import a_queued_run, a_run

PATIENT_MS = 60_000
EVIL = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
BUDGETS = "budgets: {day: {usd: 2}, run: {usd: 1}}\n"


async def fill(stage: Stage) -> None:
    """Spending beyond the budget, a queue that nobody serves, and a failure, all in hostile words."""
    now = stage.podium.clock.now()
    failure = Failure(kind=f"Kind{EVIL}", message=f"it broke {EVIL}")
    spent = a_run(flow=f"flow{EVIL}", status=RunStatus.FAILED, failure=failure, finished_at=now)

    def work(tx: Transaction) -> None:
        tx.add_run(spent)
        tx.append(spent.id, RunFailed(failure=failure))
        tx.add_run(a_queued_run(task=EVIL, created_at=now - timedelta(hours=1)))
        for source, usd in ((f"agent:dev{EVIL}", 2.25), ("tool:fetch", 0.25)):
            usage = Usage(input_tokens=1_000, output_tokens=50, usd=usd, turns=1)
            tx.append(spent.id, UsageRecorded(source=source, usage=usage))

    await (await stage.podium.store()).write(work)


@pytest.mark.soak
@needs_browser
async def test_spending_queues_and_causes_are_shown_and_the_doctor_comes_when_asked(
    tmp_path: Path,
    browser: Browser,
) -> None:
    async with console(tmp_path, yaml=BUDGETS) as stage:
        await fill(stage)
        async with visitor(browser, stage) as page:
            await page.goto("/health")
            main = page.locator("main")
            for words in (
                "$2.50",
                "Today's budget is spent",
                "no worker is running",
                f"it broke {EVIL}",
            ):
                await expect(main).to_contain_text(words, timeout=PATIENT_MS)
            await expect(main).to_contain_text(f"agent:dev{EVIL}"[:50])
            assert await page.locator("rect.bar.over").count() == 1
            assert await page.title() != "owned"
            await picture(page, "health")
            await refuse_barriers(page)
            await page.get_by_role("button", name="Run checks").click()
            await expect(page.locator("#doctor")).to_contain_text("sandbox", timeout=PATIENT_MS)
            await picture(page, "health-doctor")
        async with visitor(browser, stage, phone=True, dark=True) as page:
            await page.goto("/health")
            await expect(page.locator("main")).to_contain_text("it broke", timeout=PATIENT_MS)
            await expect(page.locator("main")).to_contain_text("$2.50", timeout=PATIENT_MS)
            await expect(page.locator("main")).to_contain_text(
                "no worker is running", timeout=PATIENT_MS
            )
            await picture(page, "health-phone-dark")
            await refuse_sideways(page)
            await refuse_barriers(page)


@pytest.mark.soak
@needs_browser
async def test_a_page_that_is_open_shows_what_is_spent_and_what_fails_meanwhile(
    tmp_path: Path,
    browser: Browser,
) -> None:
    async with (
        console(tmp_path, yaml=BUDGETS) as stage,
        visitor(browser, stage) as page,
    ):
        await stop_timers(page)
        await page.goto("/health")
        main = page.locator("main")
        for words in ("Nothing was spent", "No run has failed", "Nothing is waiting"):
            await expect(main).to_contain_text(words, timeout=PATIENT_MS)
        await fill(stage)
        run = await add_run(stage.podium)
        for _ in range(2):
            await add_approval(stage.podium, run)
        for words in ("$2.50", "it broke", "2 items are waiting for a person"):
            await expect(main).to_contain_text(words, timeout=PATIENT_MS)


async def test_a_new_project_has_nothing_to_show_and_says_so(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        assert "Nothing was spent" in (await client.get("/health/costs")).text
        assert "No run has failed" in (await client.get("/health/causes")).text
        viewer = stage.client(stage.new_token("vera"))
        async with viewer as other:
            assert (await other.get("/health/doctor")).status_code == 403
            assert "Examine" not in (await other.get("/health")).text


def test_the_highest_of_days_and_budget_fits_into_the_plot() -> None:
    days = [Sum(name="2031-05-03", usd=3.0, records=1), Sum(name="2031-05-04")]
    assert [usd for _, usd in day_plot(days, None).lines] == [0, 1.25, 2.5, 3.75, 5.0]
    plot = day_plot(days, 6.0)
    assert [usd for _, usd in plot.lines] == [0, 2.5, 5.0, 7.5, 10.0]
    assert plot.limit_y is not None
    assert plot.lines[-1][0] < plot.limit_y < plot.bars[0].y
    assert plot.bars[1].height == 0
    assert not any(bar.is_over for bar in plot.bars)
    assert day_plot(days, 2.0).bars[0].is_over


@pytest.mark.parametrize(("usd", "percents"), [((4.0, 1.0), [100, 25]), ((0.0, 0.0), [100, 50])])
def test_bars_are_shares_of_dollars_or_else_of_tokens(
    usd: tuple[float, float], percents: list[float]
) -> None:
    sums = [Sum(name="a", usd=usd[0], tokens=20), Sum(name="b", usd=usd[1], tokens=10)]
    assert [item.percent for item in ranked(sums)] == percents
