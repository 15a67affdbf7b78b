"""The inbox in a browser: cards are shown whole, answered once, and leave."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from playwright.async_api import Browser

from podium.core.decisions import Approval, ApprovalStatus, Tier
from podium.core.work import RunStatus
from podium.testing import retry_until
from podium.web.access.tokens import ConsoleRole
from tests.integration.web.browser import (
    needs_browser,
    picture,
    refuse_barriers,
    refuse_sideways,
    visitor,
)
from tests.integration.web.console_harness import console
from tests.integration.web.pending_items import (
    HOSTILE,
    add_approval,
    add_doubt,
    add_run,
    approval_now,
)

EDIT = {
    "path": "src/app.py",
    "find": "def total(items):\n    return sum(items)\n",
    "replace": "def total(items):\n    # Prices are in cents.\n    return sum(items) / 100\n",
}
QUESTION = {"question": "Which database shall it be?", "choices": ["SQLite", "PostgreSQL"]}


@needs_browser
async def test_cards_show_what_will_happen_by_risk_on_desktop_and_phone_in_light_and_dark(
    tmp_path: Path,
    browser: Browser,
) -> None:
    async with console(tmp_path) as stage:
        podium = stage.podium
        run = await add_run(podium, "Make the totals right")
        await add_approval(podium, run, "replace_in_file", EDIT)
        await add_approval(podium, run, "ask_human", QUESTION, tier=Tier.T0)
        await add_approval(
            podium, run, "run_command", {"command": "git push origin main"}, tier=Tier.T3,
            approvers=("leads", "owners"), reason="it leaves the machine",
        )  # fmt: skip
        await add_doubt(podium)
        await add_run(podium, "Tidy the docs", status=RunStatus.NEEDS_HUMAN)
        async with visitor(browser, stage) as page:
            await page.goto("/")
            assert await page.title() == "(5) Inbox · project · Podium"
            tiers = await page.locator("article .tag.tier").all_text_contents()
            assert tiers == ["T3", "T1", "T0"]
            assert "git push origin main" in await page.locator("pre.command").inner_text()
            added = await page.locator(".diff .add").all_inner_texts()
            assert any("Prices are in cents." in line for line in added)
            assert await page.locator(".why-not").first.inner_text() == (
                "The next approval must come from a member of leads. You are not a member."
            )
            await refuse_barriers(page)
            await refuse_sideways(page)
            await picture(page, "inbox-desktop")
            await page.keyboard.press("j")
            await page.keyboard.press("j")
            focused = await page.evaluate("document.activeElement.querySelector('h2').innerText")
            assert focused == "replace_in_file"
        for dark in (False, True):
            async with visitor(browser, stage, phone=True, dark=dark) as page:
                await page.goto("/")
                await refuse_sideways(page)
                if dark:
                    await refuse_barriers(page)
                await picture(page, f"inbox-phone-{'dark' if dark else 'light'}")


@pytest.mark.soak
@needs_browser
async def test_answers_are_given_on_the_page_and_an_open_page_hears_of_them(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as stage:
        podium = stage.podium
        run = await add_run(podium)
        asked = await add_approval(podium, run, "ask_human", QUESTION, tier=Tier.T0)
        refused = await add_approval(podium, run, tier=Tier.T2)
        async with visitor(browser, stage) as page:
            await page.goto("/")
            question = page.locator(f"#card-{asked.id}")
            await question.get_by_label("PostgreSQL").check()
            await question.get_by_role("button", name="Answer").click()
            await question.locator(".tag.good").wait_for()
            answered = await approval_now(podium, asked.id)
            assert (answered.status, answered.said) == (ApprovalStatus.GRANTED, "PostgreSQL")

            card = page.locator(f"#card-{refused.id}")
            await card.get_by_label("Reason for rejecting").fill("not before <b>Monday</b>")
            await card.get_by_role("button", name="Reject").click()
            await card.locator(".tag.bad").wait_for()
            output = await approval_now(podium, refused.id)
            assert (output.status, output.why) == (
                ApprovalStatus.REJECTED,
                "not before <b>Monday</b>",
            )
            assert "not before <b>Monday</b>" in await card.inner_text()
            focus = await page.evaluate("document.activeElement.id")
            assert focus == f"card-{refused.id}"

            late = await add_approval(podium, run, tier=Tier.T2)
            await page.locator(f"#card-{late.id}").wait_for()
            await page.wait_for_function("document.title.startsWith('(1)')")
            news = await page.locator("#inbox-news").inner_text()
            assert news == "1 more card is waiting."


@pytest.mark.soak
@needs_browser
async def test_two_browsers_approve_one_card_and_the_second_is_shown_by_whom(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as stage:
        approval = await add_approval(stage.podium, await add_run(stage.podium))
        kim = stage.new_token("kim", ConsoleRole.APPROVER)
        async with (
            visitor(browser, stage) as first,
            visitor(browser, stage, token=kim, phone=True) as second,
        ):
            # The second page hears of nothing, as one behind a bad connection.
            await second.route("**/live/inbox", lambda route: route.fulfill(status=404))
            await second.route("**/inbox/cards", lambda route: route.fulfill(status=404))
            for page in (first, second):
                await page.goto("/")
            card = f"#card-{approval.id}"
            await first.locator(card).get_by_role("button", name="Approve").click()
            await first.locator(f"{card} .tag.good").wait_for()
            await second.locator(card).get_by_role("button", name="Approve").click()
            output = second.locator(f"{card} .note")
            await output.wait_for()
            words = await output.inner_text()
            assert words.startswith("Already approved by sam at ")
            assert words.endswith("Your answer changed nothing.")
            assert await second.locator(f"{card} button").count() == 0
            await picture(second, "inbox-second")
        known = await approval_now(stage.podium, approval.id)
        assert [grant.by for grant in known.grants] == ["sam"]


@pytest.mark.soak
@needs_browser
async def test_an_open_page_sees_what_somebody_else_answered(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as stage:
        approval = await add_approval(stage.podium, await add_run(stage.podium))
        async with (
            visitor(browser, stage) as page,
            stage.client() as program,
        ):
            await page.goto("/")
            card = page.locator(f"#card-{approval.id}")
            await card.get_by_role("button", name="Approve").wait_for()
            answer = await program.post(
                f"/cards/{approval.id}/approve", data={"digest": approval.digest}
            )
            assert answer.status_code == 303
            await card.locator(".tag.good").wait_for()
            await page.wait_for_function("!document.title.startsWith('(')")
            assert await page.locator(".empty").inner_text() == "Nothing is waiting for you."


@needs_browser
async def test_words_of_agents_are_text_wherever_a_card_shows_them(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as stage:
        podium = stage.podium
        run = await add_run(podium, HOSTILE, flow="pipeline")
        await add_approval(
            podium, run, "write_file", {"path": HOSTILE, "content": HOSTILE}, reason=HOSTILE
        )
        await add_approval(podium, run, "run_command", {"command": HOSTILE})
        await add_approval(podium, run, HOSTILE, {HOSTILE: HOSTILE}, approvers=(HOSTILE,))
        choices = {"question": HOSTILE, "choices": [HOSTILE, "b"]}
        await add_approval(podium, run, "ask_human", choices, tier=Tier.T0)
        await add_doubt(podium, HOSTILE)
        async with visitor(browser, stage) as page:
            await page.goto("/")
            for opened in await page.locator("summary").all():
                await opened.click()
            await page.locator(".editing textarea").nth(2).wait_for()
            assert await page.locator("main script, main img").count() == 0
            assert "pwned" not in await page.title()
            text = await page.locator("main").inner_text()
            assert text.count("<script>document.title") >= 8
            assert "\x1b" not in text
            assert "\u202e" not in text
            await refuse_barriers(page)
            await refuse_sideways(page)
            await picture(page, "inbox-hostile")


@pytest.mark.soak
@needs_browser
async def test_a_call_in_doubt_is_settled_with_one_of_two_answers(
    tmp_path: Path, browser: Browser
) -> None:
    async with console(tmp_path) as stage:
        run = await add_doubt(stage.podium)
        async with visitor(browser, stage, phone=True) as page:
            await page.goto("/")
            card = page.locator(f"#card-{run.id}")
            await card.get_by_role("button", name="It did not happen").click()
            await card.get_by_text("Recorded: the call did not happen.").wait_for()
            assert await card.get_by_role("button", name="Resume").count() == 1
        store = await stage.podium.store()
        [call] = await store.read(lambda view: view.calls(run.id))
        assert call.status == "refused"


@pytest.mark.soak
async def test_an_expired_card_says_so_and_takes_no_answer(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client(**{"hx-request": "true"}) as client:
        approval = await add_approval(stage.podium, await add_run(stage.podium), seconds=-5)
        shown = await client.get(f"/cards/{approval.id}")
        assert "without an answer. Nothing was done" in shown.text
        assert approval.id not in (await client.get("/")).text
        answer = await client.post(
            f"/cards/{approval.id}/approve", data={"digest": approval.digest}
        )
        assert "Too late: its time ran out" in answer.text


async def test_a_yes_to_something_else_than_was_shown_is_refused(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        approval = await add_approval(stage.podium, await add_run(stage.podium))
        path = f"/cards/{approval.id}/approve"
        answer = await client.post(path, data={"digest": "sha256:other"})
        assert answer.status_code == 409
        assert "does not match what you were shown" in answer.text
        assert (await client.post(path)).status_code == 422
        assert (await approval_now(stage.podium, approval.id)).status is ApprovalStatus.PENDING


async def test_who_may_only_look_sees_why_and_is_refused(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        approval = await add_approval(stage.podium, await add_run(stage.podium))
        async with stage.client(stage.new_token("vera", ConsoleRole.VIEWER)) as client:
            shown = (await client.get("/")).text
            assert "sign in with a token that has the approver role" in shown
            assert "Approve" not in shown
            for act in ("approve", "reject", "resubmit"):
                answer = await client.post(f"/cards/{approval.id}/{act}", data={"why": "no"})
                assert answer.status_code == 403
        assert (await approval_now(stage.podium, approval.id)).status is ApprovalStatus.PENDING


async def test_several_are_answered_at_once_only_when_they_are_of_one_tier(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client(**{"hx-request": "true"}) as client:
        podium = stage.podium
        run = await add_run(podium)
        low = [await add_approval(podium, run) for _ in range(2)]
        other = await add_approval(podium, run, tier=Tier.T2)
        high = [await add_approval(podium, run, tier=Tier.T3) for _ in range(2)]

        async def answered(*approvals: Approval, answer: str = "approve") -> httpx.Response:
            chosen = [f"{approval.id} {approval.digest}" for approval in approvals]
            data = {"chosen": chosen, "answer": answer}
            return await client.post("/inbox/answer", data=data)

        mixed = await answered(low[0], other)
        assert mixed.status_code == 422
        assert "select cards of one tier" in mixed.text
        risky = await answered(*high)
        assert risky.status_code == 422
        assert "one by one" in risky.text
        first = await client.post(f"/cards/{low[0].id}/reject", data={"why": "no"})
        assert first.status_code == 200
        both = await answered(*low)
        assert both.text.count("not done") == 1
        assert both.text.count(">done<") == 1
        assert (await approval_now(podium, low[1].id)).status is ApprovalStatus.GRANTED
        for item in (other, *high):
            assert (await approval_now(podium, item.id)).status is ApprovalStatus.PENDING
        assert (await answered(answer="approve")).status_code == 422
        assert (await answered(other, answer="reject")).status_code == 422


@pytest.mark.soak
@needs_browser
async def test_one_tier_is_selected_together_on_the_page(tmp_path: Path, browser: Browser) -> None:
    async with console(tmp_path) as stage:
        podium = stage.podium
        run = await add_run(podium)
        low = [await add_approval(podium, run) for _ in range(2)]
        other = await add_approval(podium, run, tier=Tier.T2)
        async with visitor(browser, stage, phone=True) as page:
            await page.goto("/")
            box = "#card-{} input[name=chosen]"
            assert not await page.locator("#bulk").is_visible()
            for item in low:
                await page.locator(box.format(item.id)).check()
            assert await page.locator(box.format(other.id)).is_disabled()
            assert await page.locator("#bulk-count").inner_text() == "2 selected, T1:"
            await refuse_sideways(page)
            await picture(page, "inbox-bulk")
            await page.get_by_role("button", name="Approve selected").click()
            await page.locator(".report li").nth(1).wait_for()
            await refuse_barriers(page)
        for item in low:

            async def granted(approval_id: str = item.id) -> bool:
                known = await approval_now(podium, approval_id)
                return known.status is ApprovalStatus.GRANTED

            assert await retry_until(granted)


async def test_a_chain_is_noted_yes_by_yes_and_one_person_counts_once(tmp_path: Path) -> None:
    text = "approvers: {leads: [sam], owners: [kim]}\n"
    async with console(tmp_path, yaml=text) as stage:
        run = await add_run(stage.podium)
        asked = await add_approval(stage.podium, run, approvers=("leads", "owners"))
        yes = {"digest": asked.digest}
        path = f"/cards/{asked.id}/approve"
        kim = stage.new_token("kim", ConsoleRole.APPROVER)
        headers = {"hx-request": "true"}
        async with stage.client(**headers) as sam, stage.client(kim, **headers) as other:
            assert (await other.post(path, data=yes)).status_code == 409
            noted = await sam.post(path, data=yes)
            assert "It still needs an approval by owners." in noted.text
            assert "You have already approved this." in noted.text
            assert (await sam.post(path, data=yes)).status_code == 409
            assert "approved by sam" in (await other.get(f"/cards/{asked.id}")).text
            assert "Approved." in (await other.post(path, data=yes)).text
        known = await approval_now(stage.podium, asked.id)
        assert [grant.by for grant in known.grants] == ["sam", "kim"]


async def test_a_run_whose_host_died_waits_for_somebody_to_go_on(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        lost = await add_run(
            stage.podium, "left behind", status=RunStatus.RUNNING, owner="wrk_gone"
        )
        shown = (await client.get("/")).text
        assert f'id="card-{lost.id}"' in shown
        assert "the process that hosted it is gone" in shown
        viewer = stage.new_token("vera", ConsoleRole.VIEWER)
        async with stage.client(viewer) as other:
            assert "Continue</button>" not in (await other.get("/")).text
            assert (await other.post(f"/blocked/{lost.id}/resume")).status_code == 403
            body = {"call": f"{lost.id}:x:0", "happened": "yes"}
            assert (await other.post(f"/blocked/{lost.id}/resolve", data=body)).status_code == 403
        wrong = {"call": "run_other:x:0", "happened": "yes"}
        assert (await client.post(f"/blocked/{lost.id}/resolve", data=wrong)).status_code == 422


async def test_what_an_answer_names_must_be_there_and_fit(tmp_path: Path) -> None:
    async with console(tmp_path) as stage, stage.client() as client:
        approval = await add_approval(stage.podium, await add_run(stage.podium))
        for path in ("/cards/apr_nothing", "/cards/apr_nothing/edit", "/cards/apr_nothing/part"):
            assert (await client.get(path)).status_code == 404
        no = f"/cards/{approval.id}/reject"
        for why in ("", "  ", "x" * 5_000):
            assert (await client.post(no, data={"why": why})).status_code == 422
        short = f"/cards/{approval.id[-12:]}/reject"
        assert (await client.post(short, data={"why": "no"})).status_code == 404
        many = {"chosen": ["a b"] * 60, "answer": "approve"}
        assert (await client.post("/inbox/answer", data=many)).status_code == 422
        asked = await add_approval(
            stage.podium, await add_run(stage.podium), "ask_human", QUESTION, tier=Tier.T0
        )
        odd = {"digest": asked.digest, "said": "9"}
        assert (await client.post(f"/cards/{asked.id}/approve", data=odd)).status_code == 422
        for item in (approval, asked):
            assert (await approval_now(stage.podium, item.id)).status is ApprovalStatus.PENDING
        own = {"digest": asked.digest, "said": "SQLite", "own_words": " MongoDB "}
        assert (await client.post(f"/cards/{asked.id}/approve", data=own)).status_code < 400
        assert (await approval_now(stage.podium, asked.id)).said == "MongoDB"
