"""Files that a Podium shows to the programs that it confines."""

from __future__ import annotations

import os
from pathlib import Path

from podium.app.app import open_podium
from podium.config.configuration import load_configuration
from podium.core.processes import Confinement, Mount, ProcessSpec
from tests.integration.sandbox.terminals import on_terminal


async def test_programs_of_the_project_on_the_search_path_run_and_show_nothing_else_of_it(
    tmp_path: Path,
) -> None:
    project, work, home = (tmp_path / name for name in ("project", "work", "home"))
    for folder in (project / "bin", project / "lib", work, home):
        folder.mkdir(parents=True)
    tool, secret = project / "bin/tool", project / "lib/secret"
    tool.write_text(f"#!/bin/sh\necho ran; cat {secret}\n")
    tool.chmod(0o755)
    secret.write_text("hidden")
    path = f"{tool.parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
    environ = {"PATH": path, "HOME": str(home), "PODIUM_HOME": str(tmp_path / "own")}
    mount = Mount(source=str(work), target=str(work), writable=True)
    fence = Confinement(kind="kernel", mounts=(mount,))
    spawn = ProcessSpec(argv=("tool",), cwd=str(work), confinement=fence)
    async with open_podium(load_configuration(environ, project=project), environ) as podium:
        ended = await podium.launcher.run(spawn)
        command = await podium.launcher.on_terminal(spawn)
    assert ended.stdout.strip() == b"ran"
    with on_terminal(command) as terminal:
        await terminal.exit_code()
    assert terminal.text.splitlines()[0] == "ran"
    assert "hidden" not in terminal.text
