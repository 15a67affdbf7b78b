"""One process: what it gets, what is kept of it, and what is refused."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import sys
import tracemalloc
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow, ToolMissing, UserMustAct
from podium.core.processes import Confinement, Mount, ProcessLimits, ProcessSpec
from podium.sandbox import LauncherSettings, ProcessLauncher
from podium.sandbox.orphans import TAG_VARIABLE
from tests.unit.sandbox.trees import alive, new_token, python

DUMP = ProcessSpec(argv=("env",), cwd="/")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these look into /proc")

KNOWN = {"OTHER_KEY": "opened"}
PARENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/home/someone",
    "LC_ALL": "C.UTF-8",
    "GH_TOKEN": "not for children",
    "EDITOR": "ed",
}


async def test_a_child_gets_the_allowed_variables_and_no_other() -> None:
    ended = await ProcessLauncher(parent_env=PARENT).run(DUMP)
    assert _names(ended.stdout) == {"HOME", "LC_ALL", "PATH", TAG_VARIABLE}


async def test_a_child_gets_what_its_spawn_names_and_sets() -> None:
    code = "import os; print(os.environ['EDITOR'], os.environ['HOME'], 'ABSENT' in os.environ)"
    spawn = python(code, env={"HOME": "/elsewhere"}, inherit_env=("EDITOR", "ABSENT"))
    ended = await ProcessLauncher(parent_env=PARENT).run(spawn)
    assert ended.stdout == b"ed /elsewhere False\n"


async def test_the_allow_list_can_be_made_narrower() -> None:
    settings = LauncherSettings(allowed_names=("PATH",), allowed_prefixes=())
    ended = await ProcessLauncher(settings, parent_env=PARENT).run(DUMP)
    assert _names(ended.stdout) == {"PATH", TAG_VARIABLE}


async def test_a_secret_is_resolved_where_the_process_starts() -> None:
    launcher = ProcessLauncher(resolve_secret={"API_KEY": "opened"}.__getitem__)
    spawn = python("import os; print(os.environ['KEY'])", env={"KEY": "secret://API_KEY"})
    assert (await launcher.run(spawn)).stdout == b"opened\n"


@pytest.mark.parametrize(
    "launcher", [ProcessLauncher(), ProcessLauncher(resolve_secret=KNOWN.__getitem__)]
)
async def test_an_unknown_secret_stops_the_start(launcher: ProcessLauncher) -> None:
    spawn = python("print('ran')", env={"KEY": "secret://API_KEY"})
    with pytest.raises(UserMustAct, match=r"'KEY' needs the secret 'API_KEY'"):
        await launcher.run(spawn)


@pytest.mark.parametrize(("name", "value"), [("A=B", "x"), ("", "x"), ("A", "x\0y")])
async def test_a_variable_that_no_system_can_hold_is_refused(name: str, value: str) -> None:
    with pytest.raises(BadInput, match="variable"):
        await ProcessLauncher().run(python("print('ran')", env={name: value}))


async def test_exit_code_and_both_outputs_are_kept_apart() -> None:
    code = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    ended = await ProcessLauncher().run(python(code))
    assert (ended.exit_code, ended.signal) == (3, None)
    assert (ended.stdout, ended.stderr) == (b"out\n", b"err\n")


async def test_signal_that_ended_a_program_is_reported() -> None:
    ended = await ProcessLauncher().run(python("import os; os.kill(os.getpid(), 6)"))
    assert (ended.exit_code, ended.signal) == (None, signal.SIGABRT)


async def test_a_flood_of_output_is_counted_and_does_not_fill_the_memory() -> None:
    code = "import sys\nfor _ in range(50): sys.stdout.buffer.write(b'x' * 1_000_000)"
    spawn = python(code, limits=ProcessLimits(output_bytes=1000))
    tracemalloc.start()
    try:
        ended = await ProcessLauncher().run(spawn)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert ended.exit_code == 0
    assert ended.stdout == b"x" * 1000
    assert ended.stdout_dropped_bytes == 50_000_000 - 1000
    assert peak_bytes < 4_000_000


async def test_every_output_has_its_own_room() -> None:
    code = "import sys; sys.stdout.write('o' * 10); sys.stderr.write('e' * 3)"
    ended = await ProcessLauncher().run(python(code, limits=ProcessLimits(output_bytes=4)))
    assert (ended.stdout, ended.stdout_dropped_bytes) == (b"oooo", 6)
    assert (ended.stderr, ended.stderr_dropped_bytes) == (b"eee", 0)


async def test_output_that_is_no_text_arrives_as_it_was() -> None:
    code = r"import sys; sys.stdout.buffer.write(b'\xff\xfe\x00\xc3(')"
    assert (await ProcessLauncher().run(python(code))).stdout == b"\xff\xfe\x00\xc3("


async def test_arguments_arrive_as_they_were_given() -> None:
    odd = "two words, 'quotes', $HOME, a\nline, \u20ac"
    code = "import os, sys; sys.stdout.buffer.write(os.fsencode(sys.argv[1]))"
    assert (await ProcessLauncher().run(python(code, odd))).stdout == odd.encode()


async def test_a_huge_input_goes_through_while_output_comes_back() -> None:
    data = os.urandom(1 << 20) * 20
    code = "import sys, shutil; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"
    limits = ProcessLimits(output_bytes=len(data))
    ended = await ProcessLauncher().run(python(code, stdin=data, limits=limits))
    assert hashlib.sha256(ended.stdout).digest() == hashlib.sha256(data).digest()


async def test_a_program_that_does_not_read_its_input_is_no_trouble() -> None:
    ended = await ProcessLauncher().run(python("print('done')", stdin=b"x" * 5_000_000))
    assert ended.stdout == b"done\n"


async def test_a_program_without_input_sees_its_end_at_once() -> None:
    ended = await ProcessLauncher().run(python("import sys; print(repr(sys.stdin.read()))"))
    assert ended.stdout == b"''\n"


async def test_a_program_has_a_session_without_terminal_and_the_signals_as_usual() -> None:
    code = """
import os, signal
print(os.getsid(0) == os.getpid())
try: os.open("/dev/tty", os.O_RDWR)
except OSError: print("no terminal")
with open("/proc/self/status") as f: print([l.split()[1] for l in f if l.startswith("SigBlk")])
"""
    ended = await ProcessLauncher().run(python(code))
    assert ended.stdout.decode().splitlines() == ["True", "no terminal", "['0000000000000000']"]
    shell = ProcessSpec(argv=("sh", "-c", "kill -PIPE $$; echo ignored"), cwd="/")
    assert (await ProcessLauncher().run(shell)).signal == signal.SIGPIPE


async def test_a_program_has_no_descriptor_beside_the_three() -> None:
    ended = await ProcessLauncher().run(python("import os; print(os.listdir('/proc/self/fd'))"))
    assert ended.stdout.count(b"'") == 8  # the three, and the listing's own


async def test_a_program_cannot_gain_privileges() -> None:
    ended = await ProcessLauncher().run(
        ProcessSpec(argv=("grep", "NoNewPrivs", "/proc/self/status"), cwd="/")
    )
    assert ended.stdout.split() == [b"NoNewPrivs:", b"1"]


async def test_a_memory_limit_holds() -> None:
    code = "data = bytearray(400_000_000)"
    spawn = python(code, limits=ProcessLimits(memory_bytes=300_000_000))
    ended = await ProcessLauncher().run(spawn)
    assert ended.exit_code == 1
    assert b"MemoryError" in ended.stderr


async def test_a_limit_on_files_holds(tmp_path: Path) -> None:
    spawn = ProcessSpec(
        argv=("sh", "-c", "head -c 100000 /dev/zero > big"),
        cwd=str(tmp_path),
        limits=ProcessLimits(file_bytes=4096),
    )
    await ProcessLauncher().run(spawn)
    assert (tmp_path / "big").stat().st_size == 4096


async def test_a_program_starts_in_its_folder(tmp_path: Path) -> None:
    ended = await ProcessLauncher().run(ProcessSpec(argv=("pwd",), cwd=str(tmp_path)))
    assert ended.stdout.decode().strip() == str(tmp_path)


async def test_a_relative_program_is_looked_for_in_its_folder(tmp_path: Path) -> None:
    _script(tmp_path / "tool", "#!/bin/sh\necho here")
    ended = await ProcessLauncher().run(ProcessSpec(argv=("./tool",), cwd=str(tmp_path)))
    assert ended.stdout == b"here\n"


async def test_a_folder_on_the_search_path_that_is_not_absolute_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _script(tmp_path / "planted", "#!/bin/sh\necho planted")
    monkeypatch.chdir(tmp_path)
    launcher = ProcessLauncher(parent_env={"PATH": ".::/bin"})
    with pytest.raises(ToolMissing, match="'planted'"):
        await launcher.run(ProcessSpec(argv=("planted",), cwd=str(tmp_path)))


async def test_a_program_that_is_not_there_is_named() -> None:
    with pytest.raises(ToolMissing, match="program 'no-such-program' not found"):
        await ProcessLauncher().run(ProcessSpec(argv=("no-such-program",), cwd="/"))


async def test_a_program_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    with pytest.raises(ToolMissing, match=r"tool' is not executable; run `chmod \+x`"):
        await ProcessLauncher().run(ProcessSpec(argv=("./tool",), cwd=str(tmp_path)))


@pytest.mark.parametrize("text", ["#!/no/such/interpreter\n", "\x7fELF but not really"])
async def test_a_program_the_system_cannot_execute_is_named(tmp_path: Path, text: str) -> None:
    _script(tmp_path / "tool", text)
    with pytest.raises(ToolMissing, match=r"'\./tool' cannot be executed"):
        await ProcessLauncher().run(ProcessSpec(argv=("./tool",), cwd=str(tmp_path)))


async def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    with pytest.raises(NotPossibleNow, match=f"cannot start in '{gone}'"):
        await ProcessLauncher().run(ProcessSpec(argv=("pwd",), cwd=gone))


async def test_names_the_system_cannot_even_look_up_are_refused_in_words() -> None:
    endless = "x" * 5000
    with pytest.raises(ToolMissing, match="program 'xxx"):
        await ProcessLauncher().run(ProcessSpec(argv=(endless,), cwd="/"))
    with pytest.raises(NotPossibleNow, match="cannot start in '/xxx"):
        await ProcessLauncher().run(ProcessSpec(argv=("pwd",), cwd=f"/{endless}"))


async def test_arguments_beyond_what_the_system_takes_are_refused_in_words() -> None:
    with pytest.raises(BadInput, match="too long; pass the text on stdin"):
        await ProcessLauncher().run(ProcessSpec(argv=("true", "x" * 4_000_000), cwd="/"))


async def test_an_argument_with_a_nul_is_refused() -> None:
    with pytest.raises(BadInput, match="NUL"):
        await ProcessLauncher().run(ProcessSpec(argv=("true", "a\0b"), cwd="/"))


@pytest.mark.parametrize(
    "confinement",
    [
        Confinement(network="none"),
        Confinement(mounts=(Mount(source="/", target="/"),)),
        Confinement(hosts=("example.org",)),
        Confinement(forwarded_ports=(8080,)),
    ],
)
async def test_what_only_a_kernel_can_hold_is_refused_without_one(confinement: Confinement) -> None:
    token = new_token()
    spawn = python("import time; time.sleep(1000)", token, confinement=confinement)
    with pytest.raises(NotPossibleNow, match="is of kind 'none', which enforces nothing"):
        await ProcessLauncher().start(spawn)
    assert alive(token) == []


async def test_starts_and_failed_starts_leave_no_descriptor_open(tmp_path: Path) -> None:
    _script(tmp_path / "tool", "#!/no/such/interpreter\n")
    launcher = ProcessLauncher()
    await launcher.run(python("print('warm')"))
    before = sorted(os.listdir("/proc/self/fd"))
    await launcher.run(python("print('done')", stdin=b"x" * 1_000_000))
    with pytest.raises(ToolMissing):
        await launcher.run(ProcessSpec(argv=("./tool",), cwd=str(tmp_path)))
    await asyncio.sleep(0)
    assert sorted(os.listdir("/proc/self/fd")) == before


async def test_seconds_and_pid_are_the_programs_own() -> None:
    process = await ProcessLauncher().start(python("import os; print(os.getpid())"))
    ended = await process.wait()
    assert int(ended.stdout) == process.pid
    assert ended.seconds > 0


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _names(dump: bytes) -> set[str]:
    return {line.partition("=")[0] for line in dump.decode().splitlines()}
