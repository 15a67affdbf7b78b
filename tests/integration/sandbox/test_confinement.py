"""A confined tree reaches what it was given and nothing else, against the real kernel.

Every test runs under each mechanism, as the user who runs the tests; when that is root, the whole file
runs once more as an ordinary user.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from podium.core.errors import NotPossibleNow, ToolMissing, WorkspaceTampered
from podium.core.processes import Mount
from podium.sandbox import ProcessLauncher
from tests.integration.sandbox.confined import Place, achieved, picture

ROOT = Path(__file__).parents[3]


async def test_what_is_given_can_be_changed(launcher: ProcessLauncher, place: Place) -> None:
    script = "echo more >> file && mkdir -p a/b && mv file a/b && ln -s b a/c && chmod 700 a && touch -d @5 a/c/file"
    ended = await launcher.run(place.sh(script))
    assert (ended.exit_code, ended.stderr) == (0, b"")
    moved = place.given / "a" / "b" / "file"
    assert moved.read_text() == "as it wasmore\n"
    assert moved.stat().st_mtime == 5
    assert (place.given / "a").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("where", ["seen", "outside"])
async def test_files_elsewhere_stay_as_they_are(
    launcher: ProcessLauncher, place: Place, where: str
) -> None:
    folder = getattr(place, where)
    before = picture(folder)
    code = """
there = sys.argv[3]
attempt("write", lambda: write(there + "/file"))
attempt("truncate", lambda: os.truncate(there + "/file", 0))
attempt("make", lambda: write(there + "/new"))
attempt("remove", lambda: os.unlink(there + "/file"))
attempt("rename", lambda: os.rename(there + "/file", there + "/else"))
attempt("take", lambda: os.rename(there + "/file", given + "/taken"))
attempt("replace", lambda: os.rename(given + "/file", there + "/file"))
attempt("mode", lambda: os.chmod(there + "/file", 0o777))
attempt("times", lambda: os.utime(there + "/file", (1, 1)))
attempt("owner", lambda: os.chown(there + "/file", 4242, 4242))
attempt("attribute", lambda: os.setxattr(there + "/file", "user.x", b"x"))
attempt("link", lambda: os.link(there + "/file", given + "/linked"))
attempt("write by the link", lambda: write(given + "/linked") if os.path.exists(given + "/linked") else False)
os.symlink(there, given + "/way")
attempt("write by a way", lambda: write(given + "/way/file"))
attempt("mode by a way", lambda: os.chmod(given + "/way/file", 0o777))
def flags():
    import fcntl
    with open(there + "/file") as file:
        fcntl.ioctl(file, 0x40086602, struct.pack("l", 0x80))
attempt("flags", flags)
def by_descriptor():
    file = os.open(there + "/file", os.O_RDONLY)
    os.fchmod(file, 0o777)
attempt("mode by descriptor", by_descriptor)
def reopened():
    file = os.open(there + "/file", os.O_RDONLY)
    write(f"/proc/self/fd/{file}")
attempt("reopen", reopened)
"""
    ended = await launcher.run(place.attempts(code, str(folder)))
    assert achieved(ended) == []
    assert picture(folder) == before


async def test_what_was_not_mounted_is_not_to_be_read(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = """
attempt("read", lambda: open(outside + "/file").close())
attempt("list", lambda: os.listdir(outside))
attempt("passwords", lambda: open("/etc/shadow").close())
"""
    assert achieved(await launcher.run(place.attempts(code))) == []


async def test_ways_by_proc_lead_nowhere(launcher: ProcessLauncher, place: Place) -> None:
    before = picture(place.outside)
    code = """
pid = sys.argv[3]
attempt("root", lambda: write(f"/proc/{pid}/root{outside}/file"))
attempt("own root", lambda: write(f"/proc/1/root{outside}/file"))
attempt("folder", lambda: os.listdir(f"/proc/{pid}/cwd"))
attempt("memory", lambda: open(f"/proc/{pid}/mem", "r+b").close())
attempt("environment", lambda: open(f"/proc/{pid}/environ").read() and None)
attempt("switches", lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)))
attempt("sysrq", lambda: os.close(os.open("/proc/sysrq-trigger", os.O_WRONLY)))
"""
    assert achieved(await launcher.run(place.attempts(code, str(os.getpid())))) == []
    assert picture(place.outside) == before


async def test_processes_outside_are_out_of_reach(launcher: ProcessLauncher, place: Place) -> None:
    with subprocess.Popen(["sleep", "1000"]) as victim:
        code = """
pid = int(sys.argv[3])
attempt("signal", lambda: os.kill(pid, 0))
attempt("kill", lambda: os.kill(pid, signal.SIGKILL))
attempt("kill all", lambda: os.kill(-pid, signal.SIGKILL))
attempt("trace", lambda: libc.ptrace(16, pid, 0, 0) == 0)
attempt("limits", lambda: libc.prlimit(pid, 7, struct.pack("QQ", 5, 5), None) == 0)
attempt("nice", lambda: os.setpriority(os.PRIO_PROCESS, pid, 19))
attempt("processor", lambda: os.sched_setaffinity(pid, {0}))
"""
        ended = await launcher.run(place.attempts(code, str(victim.pid)))
        still_there = victim.poll() is None
        priority = os.getpriority(os.PRIO_PROCESS, victim.pid)
        victim.kill()
    assert achieved(ended) == []
    assert still_there
    assert priority == os.getpriority(os.PRIO_PROCESS, 0)


async def test_mounts_and_namespaces_of_its_own_give_it_nothing(
    launcher: ProcessLauncher, place: Place
) -> None:
    before = picture(place.seen)
    code = """
seen = sys.argv[3].encode()
BIND, REMOUNT = 4096, 32
def remount():
    return libc.mount(None, seen, None, BIND | REMOUNT, None) == 0
attempt("remount", remount)
attempt("bind", lambda: libc.mount(given.encode(), seen, None, BIND, None) == 0)
attempt("unmount", lambda: libc.umount2(seen, 2) == 0)
attempt("chroot", lambda: libc.chroot(given.encode()) == 0)
def with_namespaces():
    pid = os.fork()
    if pid == 0:
        if libc.unshare(0x10000000 | 0x20000) != 0:
            os._exit(1)
        remount() or libc.umount2(seen, 2)
        try:
            write(sys.argv[3] + "/file")
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitpid(pid, 0)[1] == 0
attempt("with namespaces", with_namespaces)
attempt("set-uid", lambda: libc.setuid(0) == 0 and os.getuid() != int(sys.argv[4]))
"""
    ended = await launcher.run(place.attempts(code, str(place.seen), str(os.getuid())))
    assert achieved(ended) == []
    assert picture(place.seen) == before


async def test_sockets_outside_do_not_answer(launcher: ProcessLauncher, place: Place) -> None:
    abstract = f"podium-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as by_file, socket.socket(socket.AF_UNIX) as by_name:
        for server, address in (
            (by_file, str(place.outside / "socket")),
            (by_name, "\0" + abstract),
        ):
            server.bind(address)
            server.listen()
        code = """
def connect(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as line:
        line.connect(address)
attempt("file", lambda: connect(outside + "/socket"))
attempt("abstract", lambda: connect("\\0" + sys.argv[3]))
attempt("datagram", lambda: connect("\\0" + sys.argv[3], socket.SOCK_DGRAM))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM).close())
attempt("packet", lambda: socket.socket(17, socket.SOCK_RAW).close())
"""
        assert achieved(await launcher.run(place.attempts(code, abstract))) == []


async def test_a_socket_that_was_mounted_answers(launcher: ProcessLauncher, place: Place) -> None:
    path = place.outside / "socket"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        mounted = (Mount(source=str(path), target=str(path), writable=True),)
        code = """
line = socket.socket(socket.AF_UNIX)
line.connect(outside + "/socket")
line.sendall(b"hello")
"""
        ended = await launcher.run(
            place.attempts(code, confinement=place.confinement(mounts=mounted))
        )
        assert achieved(ended) == []
        line, _ = server.accept()
        with line:
            assert line.recv(100) == b"hello"


async def test_without_a_network_nothing_answers(launcher: ProcessLauncher, place: Place) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("127.0.0.1", 0))
        datagrams.setblocking(False)
        ports = (str(server.getsockname()[1]), str(datagrams.getsockname()[1]))
        code = """
port, datagram_port = map(int, sys.argv[3:5])
def tcp(host, family=socket.AF_INET):
    with socket.socket(family) as line:
        line.settimeout(2)
        line.connect((host, port))
def fast():
    with socket.socket() as line:
        return line.sendto(b"x", 0x20000000, ("127.0.0.1", port)) > 0
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.sendto(b"x", ("127.0.0.1", datagram_port))
attempt("tcp", lambda: tcp("127.0.0.1"))
attempt("tcp 6", lambda: tcp("::ffff:127.0.0.1", socket.AF_INET6))
attempt("fast open", fast)
udp_went = attempt("udp", udp)
done = [name for name in done if name != "udp"]  # sent into a loopback of its own where it has one
"""
        assert achieved(await launcher.run(place.attempts(code, *ports))) == []
        with pytest.raises(BlockingIOError):
            datagrams.recv(10)


async def test_nothing_can_be_typed_into_a_terminal(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = """
import fcntl
def type_in():
    pid = os.fork()
    if pid == 0:
        try:
            os.login_tty(os.openpty()[1])
            fcntl.ioctl(0, 0x5412, b"x")
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0
attempt("type", type_in)
"""
    assert achieved(await launcher.run(place.attempts(code))) == []


async def test_calls_beside_files_and_processes_are_refused(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = """
machine = os.uname().machine
keyctl, uring = (250, 425) if machine == "x86_64" else (219, 425)
attempt("keys", lambda: libc.syscall(keyctl, 0, -3, 1) >= 0)
attempt("uring", lambda: libc.syscall(uring, 1, ctypes.create_string_buffer(200)) >= 0)
"""
    assert achieved(await launcher.run(place.attempts(code))) == []


async def test_no_program_is_left_behind_that_makes_its_caller_this_user(
    launcher: ProcessLauncher, place: Place
) -> None:
    code = """
attempt("mode", lambda: os.chmod(given + "/file", 0o4755))
attempt("by descriptor", lambda: os.fchmod(os.open(given + "/file", os.O_RDONLY), 0o6755))
attempt("from a folder", lambda: os.chmod("file", 0o4755, dir_fd=os.open(given, os.O_RDONLY)))
os.chmod(given + "/file", 0o755)
"""
    assert achieved(await launcher.run(place.attempts(code))) == []
    assert (place.given / "file").stat().st_mode & 0o7777 == 0o755


async def test_no_descriptor_of_podium_is_handed_in(
    launcher: ProcessLauncher, place: Place
) -> None:
    ended = await launcher.run(place.sh("ls /proc/self/fd"))
    assert ended.stdout.split() == [b"0", b"1", b"2", b"3"]  # the last is the listing's own


async def test_what_is_pinned_stays_and_so_do_the_names_above_it(
    launcher: ProcessLauncher, place: Place
) -> None:
    kept = place.given / "conf" / "prod" / "kept"
    kept.mkdir(parents=True)
    (kept / "file").write_text("as it was")
    (place.given / "conf" / "free").write_text("free")
    code = """
kept = given + "/conf/prod/kept"
attempt("write", lambda: write(kept + "/file"))
attempt("make", lambda: write(kept + "/new"))
attempt("mode", lambda: os.chmod(kept + "/file", 0o777))
attempt("rename", lambda: os.rename(kept, kept + "2"))
attempt("rename above", lambda: os.rename(given + "/conf/prod", given + "/conf/prod2"))
attempt("rename far above", lambda: os.rename(given + "/conf", given + "/conf2"))
attempt("remove", lambda: os.rmdir(kept))
write(given + "/conf/free")
"""
    confinement = place.confinement(pinned=(str(kept),))
    ended = await launcher.run(place.attempts(code, confinement=confinement))
    assert achieved(ended) == []
    assert (kept / "file").read_text() == "as it was"
    assert (place.given / "conf" / "free").read_text() == "freechanged"


@pytest.mark.parametrize("link", ["conf", "conf/kept"])
async def test_a_link_where_something_is_pinned_stops_the_start(
    launcher: ProcessLauncher, place: Place, link: str
) -> None:
    (place.outside / "kept").mkdir()
    path = place.given / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(place.outside)
    confinement = place.confinement(pinned=(str(place.given / "conf" / "kept"),))
    with pytest.raises(WorkspaceTampered, match="is no longer a plain file or folder"):
        await launcher.run(place.sh("true", confinement=confinement))


async def test_a_program_it_cannot_see_is_named_with_the_remedy(
    launcher: ProcessLauncher, place: Place
) -> None:
    with pytest.raises(ToolMissing, match="program 'no-such-thing' not found"):
        await launcher.run(place.spawn("no-such-thing"))


async def test_a_folder_that_is_not_there_is_named(launcher: ProcessLauncher, place: Place) -> None:
    with pytest.raises(NotPossibleNow, match="the folder does not exist inside the sandbox"):
        await launcher.run(place.sh("true", cwd=str(place.given / "nowhere")))


async def test_a_script_whose_interpreter_is_missing_never_starts(
    launcher: ProcessLauncher, place: Place
) -> None:
    script = place.given / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    with pytest.raises(ToolMissing, match="cannot be executed"):
        await launcher.run(place.spawn("./script"))


async def test_temporary_and_home_folders_are_its_own_and_go_with_it(
    launcher: ProcessLauncher, place: Place
) -> None:
    script = 'mktemp > where && echo x > ~/mine && [ "$(ls -A ~ | wc -l)" -le 2 ]'
    ended = await launcher.run(place.sh(script))
    assert (ended.exit_code, ended.stderr) == (0, b"")
    assert not Path((place.given / "where").read_text().strip()).exists()
    assert not Path("~/mine").expanduser().exists()


async def test_a_home_that_is_given_stays(launcher: ProcessLauncher, place: Place) -> None:
    home = place.given / "home"
    home.mkdir()
    confinement = place.confinement(home=str(home))
    ended = await launcher.run(place.sh('echo x > "$HOME/mine"', confinement=confinement))
    assert ended.exit_code == 0
    assert (home / "mine").exists()


@pytest.mark.soak  # every attack in tests/attacks is tried as one
def test_an_ordinary_user_is_confined_as_well() -> None:
    if os.geteuid() != 0:
        pytest.skip("this is an ordinary user already")
    python = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
    if not python.exists():
        pytest.skip(f"no {python}, which other users may run")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        ran = _tests_of_an_ordinary_user(python, folder)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]


def _tests_of_an_ordinary_user(python: Path, folder: str) -> subprocess.CompletedProcess[str]:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": folder,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *packages]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={folder}/t"]
    files = sorted(map(str, Path(__file__).parent.glob("test_confining*.py")))
    return subprocess.run(
        [str(python), "-m", "pytest", *options, *files],
        cwd=ROOT,
        env=environment,
        user=4242,
        group=4242,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
