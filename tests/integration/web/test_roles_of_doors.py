"""Whatever a page and the API both do asks for the same role at both."""

from __future__ import annotations

from pathlib import Path

from podium.web.access.tokens import ConsoleRole
from tests.integration.web.console_harness import Stage, console
from tests.integration.web.routes import every_way

OF_OPERATORS, OF_APPROVERS = ConsoleRole.OPERATOR, ConsoleRole.APPROVER
API = "/api/v1"
THING = "abcd1234"
PAIRS = {
    f"/runs/{THING}/cancel": (OF_OPERATORS, f"{API}/runs/{THING}/cancel"),
    f"/runs/{THING}/resume": (OF_OPERATORS, f"{API}/runs/{THING}/resume"),
    f"/runs/{THING}/retry": (OF_OPERATORS, f"{API}/runs/{THING}/retry"),
    f"/blocked/{THING}/resume": (OF_OPERATORS, f"{API}/runs/{THING}/resume"),
    f"/blocked/{THING}/resolve": (OF_APPROVERS, f"{API}/calls/resolve"),
    "/runs": (OF_OPERATORS, f"{API}/runs"),
    "/operator/ask": (OF_OPERATORS, f"{API}/operator/ask"),
    "/operator/undo": (OF_OPERATORS, f"{API}/operator/undo-plan"),
    f"/cards/{THING}/approve": (OF_APPROVERS, f"{API}/approvals/{THING}/approve"),
    f"/cards/{THING}/reject": (OF_APPROVERS, f"{API}/approvals/{THING}/reject"),
    f"/cards/{THING}/resubmit": (OF_APPROVERS, f"{API}/approvals/{THING}/resubmit"),
    "/sense/deploy": (OF_APPROVERS, f"{API}/candidates/{THING}/deploy"),
    "/sense/reject": (OF_APPROVERS, f"{API}/candidates/{THING}/reject"),
}
"""What changes something: the page's path, whose it is, and the API's path."""


async def shut_to(stage: Stage, role: ConsoleRole, paths: set[str]) -> set[str]:
    """The paths that a person with this role alone is refused. Nothing is asked that could be done."""
    async with stage.client(stage.new_token(f"only-{role}", role)) as client:
        codes = {path: (await client.post(path)).status_code for path in sorted(paths)}
    return {path for path, code in codes.items() if code == 403}


async def test_a_page_and_the_api_let_the_same_people_do_the_same_things(tmp_path: Path) -> None:
    paths = {*PAIRS, *(other for _, other in PAIRS.values())}
    async with console(tmp_path) as stage:
        for role in (OF_OPERATORS, OF_APPROVERS):
            refused = await shut_to(stage, role, paths)
            of_others = [(page, api) for page, (whose, api) in PAIRS.items() if whose is not role]
            assert refused == {path for pair in of_others for path in pair}, role


async def test_everything_that_the_api_changes_has_its_pair(tmp_path: Path) -> None:
    async with console(tmp_path) as stage:
        posts = {way.path for way in every_way(stage.context) if way.method == "POST"}
    assert {path for path in posts if path.startswith(API)} == {api for _, api in PAIRS.values()}
    assert set(PAIRS) <= posts
