"""One tool call: judged, executed, recorded with a receipt, and the receipt verified."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from podium.app.app import Podium, open_podium
from podium.app.receipts import verify_receipts
from podium.config.configuration import load_configuration
from podium.core.decisions import Refusal


async def call(podium: Podium, number: int, tool: str, **arguments: object) -> None:
    toolbox = await podium.toolbox()
    wanted = toolbox.normalise(
        tool, dict(arguments), run_id="run_example", step_key="only", index=number
    )
    outcome = await toolbox.perform(wanted)
    if isinstance(outcome, Refusal):
        print(f"{tool}: refused. {outcome.say}")
    else:
        print(f"{tool}: {'done' if outcome.ok else outcome.error}")


async def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        environ = {**os.environ, "PODIUM_HOME": str(Path(name) / "home")}
        project = Path(name) / "project"
        project.mkdir()
        async with open_podium(load_configuration(environ, project=project), environ) as podium:
            await call(podium, 0, "write_file", path="notes.txt", content="hello\n")
            await call(podium, 1, "run_command", command="git push --force")
            await call(podium, 2, "run_command", command="curl https://example.com")
            verdict = await verify_receipts(await podium.store(), await podium.verifier())
            print(f"{verdict.receipts} receipt, sound: {verdict.sound}")


if __name__ == "__main__":
    asyncio.run(main())
