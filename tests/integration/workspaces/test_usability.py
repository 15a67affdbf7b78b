"""Everyday work of people and tools inside, under every kind of confinement that this machine has."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from podium.core.processes import ProcessExit, ProcessSpec
from podium.git.workspace import GitWorkspace
from podium.policy import exec_rules
from podium.sandbox import ProcessLauncher
from tests.integration.workspaces.workspace_harness import Place, git
from tests.soaking import in_soak

pytestmark = pytest.mark.parametrize("name", ["bubblewrap", in_soak("landlock")])

SERVER = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def answer():
    line, _ = server.accept()
    line.sendall(line.recv(100).upper())
    line.close()
threading.Thread(target=answer).start()
client = socket.create_connection(server.getsockname())
client.sendall(b"hello")
print(client.recv(100).decode())
"""
TERMINAL = """
import os, pty, termios
child, master = pty.fork()
if child == 0:
    os.execvp("sh", ["sh", "-c", "stty size >/dev/null; test -t 0 && echo a terminal"])
said = b""
try:
    while piece := os.read(master, 1000):
        said += piece
except OSError:
    pass
print(said.decode().strip(), os.waitpid(child, 0)[1])
"""
POOL = """
from multiprocessing import Pool
if __name__ == "__main__":
    with Pool(2) as pool:
        print(sum(pool.map(abs, [-1, -2, -3])))
"""


class Bench:
    """A workspace under one mechanism, with the rules that an agent's commands have."""

    def __init__(self, place: Place, workspace: GitWorkspace) -> None:
        self.place = place
        self.workspace = workspace

    async def run(self, script: str) -> ProcessExit:
        confinement = await self.workspace.confinement()
        return await self.place.launcher.run(
            ProcessSpec(
                argv=("bash", "-ec", script),
                cwd=self.workspace.record.path,
                confinement=confinement.model_copy(update={"execs": exec_rules()}),
            )
        )

    async def says(self, script: str) -> str:
        ended = await self.run(script)
        assert ended.exit_code == 0, (ended.stdout + ended.stderr).decode()
        return ended.stdout.decode().strip()


@pytest.fixture
async def bench(tmp_path: Path, name: str) -> Bench:
    trials = {trial.mechanism.name: trial for trial in await ProcessLauncher().survey()}
    if name not in trials or not trials[name].works:
        pytest.skip(f"{name} does not confine on this machine")
    place = Place(tmp_path, ProcessLauncher(mechanism=trials[name].mechanism))
    return Bench(place, await place.make())


async def test_folders_and_files_can_be_made_at_the_top(bench: Bench) -> None:
    script = (
        "mkdir -p node_modules/.bin node_modules/x; echo 1 > node_modules/x/index.js; "
        "ln -s ../x/index.js node_modules/.bin/x; echo {} > package.json; mv package.json p.json; "
        "cp p.json package.json; rm p.json; sed -i s/hello/bye/ README; cat node_modules/.bin/x README; ls"
    )
    assert (await bench.says(script)).split() == [
        "1", "bye", "README", "conf", "node_modules", "package.json", "src",
    ]  # fmt: skip


async def test_git_is_at_home(bench: Bench) -> None:
    script = (
        "echo 1 > top; echo 2 >> src/lib; git add -A; git status --short; git diff --cached --stat | tail -1; "
        "git commit -qm one; git log --oneline | wc -l; git stash list; git symbolic-ref --short HEAD; "
        "git rev-parse --show-toplevel; cd src; git show --stat HEAD | tail -1; git config user.name"
    )
    top = bench.workspace.record.path
    assert (await bench.says(script)).splitlines() == [
        "M  src/lib", "A  top", " 2 files changed, 2 insertions(+)", "3", "podium/t1", top,
        " 2 files changed, 2 insertions(+)", "Uma User",
    ]  # fmt: skip
    assert (await bench.workspace.deliver()).paths == ("src/lib", "top")


@pytest.mark.soak
async def test_a_pointer_that_was_replaced_stops_nobody(bench: Bench, name: str) -> None:
    seen = await bench.workspace.begin_turn()
    planted = (
        "rm -f .git && mkdir -p .git/objects .git/refs && echo ref: refs/heads/x > .git/HEAD && "
        "printf '[core]\\n\\tfsmonitor = touch evil\\n' > .git/config"
    )
    await bench.run(planted)
    await bench.says("echo 1 > top; git add top; git commit -qm one")
    await bench.run(planted)
    ended = await bench.workspace.end_turn(seen)
    assert ended.moved_away == ((".git", ".git") if name == "landlock" else ())
    assert git(bench.workspace.record.path, "status", "--porcelain") == "?? top"
    assert not Path(bench.workspace.record.path, "evil").exists()
    assert (await bench.workspace.deliver()).paths == ("top",)


async def test_folders_are_copied_and_packed_with_all_they_have(bench: Bench) -> None:
    script = (
        "chmod 750 src; touch -d 2001-02-03 src/app; cp -a src copy; stat -c %a copy; "
        "stat -c %y copy/app | cut -c-10; tar czf src.tgz src; mkdir out; tar xzf src.tgz -C out; "
        "diff -r src out/src && echo same; stat -c %y out/src/app | cut -c-10"
    )
    response = await bench.says(script)
    assert response.split() == ["750", "2001-02-03", "same", "2001-02-03"]


async def test_a_virtual_environment_of_python(bench: Bench) -> None:
    script = (
        "python3 -m venv --without-pip .venv; .venv/bin/python -c 'import sys; print(sys.prefix)'"
    )
    assert await bench.says(script) == f"{bench.workspace.record.path}/.venv"


@pytest.mark.skipif(not shutil.which("gcc"), reason="no gcc")
async def test_a_c_program_is_built_and_run(bench: Bench) -> None:
    source = '#include <stdio.h>\nint main(void) { puts("hello"); }\n'
    assert await bench.says(f"cat > a.c <<'E'\n{source}E\ngcc -o a a.c; ./a") == "hello"


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
async def test_javascript_runs_and_writes(bench: Bench) -> None:
    code = "const f=require('fs'); f.mkdirSync('dist'); f.writeFileSync('dist/a','1'); console.log(f.readdirSync('dist')[0])"
    assert await bench.says(f'node -e "{code}"') == "a"


async def test_a_server_of_its_own_answers(bench: Bench) -> None:
    assert await bench.says(f"python3 - <<'E'\n{SERVER}\nE") == "HELLO"


async def test_a_terminal_of_its_own(bench: Bench) -> None:
    assert await bench.says(f"python3 - <<'E'\n{TERMINAL}\nE") == "a terminal 0"


async def test_work_is_spread_over_processes(bench: Bench, name: str) -> None:
    ended = await bench.run(f"cat > pool.py <<'E'\n{POOL}\nE\npython3 pool.py")
    if name == "landlock":
        # Its semaphores lie where those of all the user's programs do.
        assert b"Permission" in ended.stderr
    else:
        assert ended.stdout.strip() == b"6"


async def test_temporary_files_go_to_a_folder_of_its_own(bench: Bench) -> None:
    response = await bench.says("f=$(mktemp); echo 1 > $f; cat $f; echo $f")
    assert response.split()[0] == "1"
    assert not Path(response.split()[1]).exists()
