"""Confinements in the words of each mechanism: pure, so without any kernel."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest

from podium.core.processes import Confinement, ExecRules, Mount
from podium.sandbox.confining import seccomp, view
from podium.sandbox.confining.bubblewrap import options
from podium.sandbox.confining.plan import ConfinementPlan
from podium.sandbox.confining.seatbelt import profile
from podium.sandbox.confining.seccomp import (
    ALLOW,
    NOTIFY,
    ArgumentCondition,
    SyscallRule,
    assemble,
    refused,
)
from podium.sandbox.confining.syscalls import MACHINES, ProcessorAbi
from podium.sandbox.confining.view import ConfinedView, not_for_everybody, reach, visible_folders

WORK = Mount(source="/work", target="/work", writable=True)


def words_of(confinement: Confinement, as_root: bool = False) -> list[str]:
    return options(confinement, "/work", {"HOME": "/home/me"}, disable_userns=True, as_root=as_root)


def binds(words: list[str]) -> list[tuple[str, str, str]]:
    kinds = ("--bind", "--ro-bind", "--bind-try")
    return [
        (word, words[at + 1], words[at + 2])
        for at, word in enumerate(words)
        if word in kinds and words[at + 2].startswith("/work")
    ]


def test_every_wall_holds_whatever_is_requested() -> None:
    words = words_of(Confinement(kind="kernel", network="none"))
    for wall in (
        "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net",
        "--die-with-parent", "--new-session", "--disable-userns",
    ):  # fmt: skip
        assert wall in words
    assert words[words.index("--cap-drop") + 1] == "ALL"
    assert words.index("--remount-ro") > max(at for at, word in enumerate(words) if "bind" in word)


def test_the_machines_switches_and_passwords_are_kept_from_root() -> None:
    words = words_of(Confinement(kind="kernel"), as_root=True)
    threes = [words[at : at + 3] for at in range(len(words))]
    assert ["--ro-bind", "/proc/sys", "/proc/sys"] in threes
    assert ["--ro-bind", "/dev/null", "/etc/shadow"] in threes


def test_what_only_root_may_read_is_kept_from_it_in_every_folder_of_the_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("app/key", "app/read", "closed/any", "gone"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    for name, mode in (("app/key", 0o600), ("app/read", 0o644), ("closed", 0o700), ("gone", 0o600)):
        (tmp_path / name).chmod(mode)
    # The folders of the machine itself are not a test's to write in.
    monkeypatch.setattr(view, "_OWNED", (str(tmp_path),))
    assert len(not_for_everybody(str(tmp_path))) == 3
    (tmp_path / "gone").unlink()
    words = words_of(Confinement(kind="kernel"), as_root=True)
    threes = [words[at : at + 3] for at in range(len(words))]
    assert ["--ro-bind", "/dev/null", str(tmp_path / "app/key")] in threes
    assert ["--tmpfs", str(tmp_path / "closed")] in [three[:2] for three in threes]
    assert not {str(tmp_path / "app/read"), str(tmp_path / "gone")} & set(words)


def test_the_folders_that_hold_an_owners_own_files_are_all_looked_through() -> None:
    assert {"/etc", "/opt", "/usr/local"} <= set(view._OWNED)


def test_only_an_open_network_is_shared() -> None:
    assert "--unshare-net" not in words_of(Confinement(kind="kernel", network="open"))
    assert "--unshare-net" in words_of(Confinement(kind="kernel", network="model-only"))


def test_a_home_is_private_unless_something_is_mounted_there() -> None:
    plain = words_of(Confinement(kind="kernel"))
    assert plain[plain.index("/home/me") - 1] == "--tmpfs"
    home = Mount(source="/state/home", target="/home/me", writable=True)
    assert "--tmpfs" not in _before(
        words_of(Confinement(kind="kernel", mounts=(home,))), "/home/me"
    )


def _before(words: list[str], target: str) -> list[str]:
    return [words[at - 1] for at, word in enumerate(words) if word == target]


def test_folders_above_what_is_pinned_are_held_once_and_before_it() -> None:
    confinement = Confinement(
        kind="kernel", mounts=(WORK,), pinned=("/work/a/b/two", "/work/a/b/one", "/work/top")
    )
    assert binds(words_of(confinement)) == [
        ("--bind", "/work", "/work"),
        ("--bind-try", "/work/a", "/work/a"),
        ("--bind-try", "/work/a/b", "/work/a/b"),
        ("--ro-bind", "/work/a/b/one", "/work/a/b/one"),
        ("--ro-bind", "/work/a/b/two", "/work/a/b/two"),
        ("--ro-bind", "/work/top", "/work/top"),
    ]


def test_what_lies_in_something_pinned_is_not_made_writable_again() -> None:
    confinement = Confinement(kind="kernel", mounts=(WORK,), pinned=("/work/a/b/c/d", "/work/a"))
    assert binds(words_of(confinement)) == [
        ("--bind", "/work", "/work"),
        ("--ro-bind", "/work/a", "/work/a"),
    ]


def test_a_later_mount_is_not_covered_by_what_holds_an_earlier_pin() -> None:
    inner = Mount(source="/cache", target="/work/a/cache")
    confinement = Confinement(kind="kernel", mounts=(WORK, inner), pinned=("/work/a/kept",))
    assert binds(words_of(confinement)) == [
        ("--bind", "/work", "/work"),
        ("--bind-try", "/work/a", "/work/a"),
        ("--ro-bind", "/work/a/kept", "/work/a/kept"),
        ("--ro-bind", "/cache", "/work/a/cache"),
    ]


def test_sources_of_pins_are_looked_for_where_they_are_outside() -> None:
    mount = Mount(source="/state/git", target="/work/.git", writable=True)
    confinement = Confinement(kind="kernel", mounts=(WORK, mount), pinned=("/work/.git/x/config",))
    assert binds(words_of(confinement))[-2:] == [
        ("--bind-try", "/state/git/x", "/work/.git/x"),
        ("--ro-bind", "/state/git/x/config", "/work/.git/x/config"),
    ]


def test_a_path_inside_leads_to_the_last_mount_that_covers_it() -> None:
    inside = ConfinedView((WORK, Mount(source="/other", target="/work/sub")), home="/home/me")
    assert inside.outside("/work/x/../y") == "/work/y"
    assert inside.outside("/work/sub/y") == "/other/y"
    assert inside.outside("/usr/bin/env") == "/usr/bin/env"
    for hidden in ("/tmp/x", "/home/me/x", "/srv", "/workshop"):
        assert inside.outside(hidden) == ""
    assert ConfinedView((Mount(source="/image", target="/"),)).outside("/etc/x") == "/image/etc/x"


def test_programs_are_looked_for_as_the_tree_will_find_them(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "real").write_text("#!/bin/sh\n")
    (tools / "real").chmod(0o755)
    (tools / "tool").symlink_to("/t/real")
    (tools / "lost").symlink_to(tools / "real")
    (tools / "loop").symlink_to("loop")
    inside = ConfinedView((Mount(source=str(tools), target="/t"),))
    assert inside.program("tool", "/", "relative:/t") == "/t/tool"
    assert inside.program("./tool", "/t", "") == "/t/tool"
    for missing in ("lost", "loop", "other"):
        assert inside.program(missing, "/", "/t") == ""


def test_a_plan_crosses_to_the_guard_whole() -> None:
    plan = ConfinementPlan(
        mechanism="bubblewrap", options=["a\0b", "ü"], ports=[1], rules=[{"x": "y"}, []]
    )
    assert vars(ConfinementPlan.decode(plan.encode())) == vars(plan)


def test_without_mounts_a_folder_with_something_pinned_is_opened_entry_by_entry(
    tmp_path: Path,
) -> None:
    for path in ("free", "conf/free", "conf/kept"):
        (tmp_path / path).mkdir(parents=True)
    mount = Mount(source=str(tmp_path), target=str(tmp_path), writable=True)
    confinement = Confinement(
        kind="kernel", mounts=(mount,), pinned=(str(tmp_path / "conf" / "kept"),)
    )
    readable, writable = reach(confinement, "/private", as_root=False)
    assert str(tmp_path) in readable
    opened = [path for path in writable if path.startswith(str(tmp_path))]
    assert opened == [str(tmp_path / "conf" / "free"), str(tmp_path / "free")]


def test_where_nothing_can_be_mounted_what_is_put_back_closes_no_folder(tmp_path: Path) -> None:
    for name in ("pointer", "free", "conf"):
        (tmp_path / name).mkdir()
    mounts = (
        Mount(source=str(tmp_path), target=str(tmp_path), writable=True),
        Mount(source=str(tmp_path / "pointer"), target=str(tmp_path / "pointer"), put_back=True),
    )
    confinement = Confinement(kind="kernel", mounts=mounts)
    _, writable = reach(confinement, "/private", as_root=False)
    assert str(tmp_path) in writable
    pinned = confinement.model_copy(update={"pinned": (str(tmp_path / "conf"),)})
    _, writable = reach(pinned, "/private", as_root=False)
    assert [path for path in writable if path.startswith(str(tmp_path))] == [str(tmp_path / "free")]


def test_the_search_path_keeps_what_can_be_entered(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "link").symlink_to("/usr/bin")
    search_path = f"/usr/bin:/bin:{tmp_path}/bin:{tmp_path}/link:bin:/usrother"
    assert visible_folders(search_path, ["/usr", "/bin"]) == f"/usr/bin:/bin:{tmp_path}/link"


def test_a_profile_for_seatbelt_says_the_same_in_its_words() -> None:
    confinement = Confinement(
        kind="kernel",
        network="listed",
        mounts=(WORK, Mount(source='/odd "name"', target="/odd")),
        pinned=("/work/conf/kept",),
        forwarded_ports=(8080,),
        execs=ExecRules(refused={"sudo": "no"}),
    )
    text = profile(confinement, "/private/tmp/own", [3128])
    assert text.startswith("(version 1)\n(deny default)\n")
    assert '(subpath "/odd \\"name\\"")' in text
    allowed, denied = text.index('(subpath "/work")'), text.rindex('(subpath "/work/conf/kept")')
    assert allowed < denied  # the last rule that fits decides
    assert '(deny file-write-unlink file-write-create\n  (literal "/")' in text
    assert '(literal "/work/conf")' in text
    assert '(remote ip "localhost:3128")\n  (remote ip "localhost:8080")' in text
    assert '(deny process-exec\n  (regex #"/sudo$"))' in text
    assert text.count("(") == text.count(")")
    assert "(allow network*)" in profile(Confinement(kind="kernel", network="open"), "/t")


# Filters are run here by a small machine, so that those of another processor are tested as well.


def verdict(code: bytes, audit: int, number: int, *arguments: int) -> int:
    """Return the kernel's verdict on a call."""
    data = struct.pack("=iIQ6Q", number, audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    value, at = 0, 0
    while True:
        kind, yes, no, given = struct.unpack_from("=HBBI", code, at * 8)
        at += 1
        if kind == 0x20:
            value = struct.unpack_from("=I", data, given)[0]
        elif kind == 0x54:
            value &= given
        elif kind == 0x06:
            return int(given)
        else:
            holds = value == given if kind == 0x15 else value >= given
            at += yes if holds else no


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> ProcessorAbi:
    return MACHINES[request.param]


def test_the_filter_around_mounts_refuses_what_they_do_not_hold(machine: ProcessorAbi) -> None:
    code, call = assemble(seccomp.mounted(), machine), machine.numbers
    judged: dict[tuple[str, tuple[int, ...]], int] = {
        ("execve", ()): NOTIFY,
        ("execveat", ()): NOTIFY,
        ("keyctl", ()): refused(errno.EPERM),
        ("io_uring_setup", ()): refused(errno.ENOSYS),
        (
            "socket",
            (
                1,
                2,
            ),
        ): ALLOW,
        (
            "socket",
            (
                2,
                1,
            ),
        ): ALLOW,
        (
            "socket",
            (
                40,
                1,
            ),
        ): refused(errno.EAFNOSUPPORT),
        (
            "ioctl",
            (
                0,
                0x5412,
            ),
        ): refused(errno.EPERM),
        (
            "ioctl",
            (
                0,
                0x5413,
            ),
        ): ALLOW,
        ("connect", ()): ALLOW,
        ("fchmodat", (0, 0, 0o4755)): refused(errno.EPERM),
        ("fchmodat", (0, 0, 0o2755)): ALLOW,
    }
    for (name, arguments), wanted in judged.items():
        assert verdict(code, machine.audit, call[name], *arguments) == wanted, name


def test_the_filter_beside_landlock_leaves_nothing_to_it_that_it_does_not_know(
    machine: ProcessorAbi,
) -> None:
    code, call = assemble(seccomp.unmounted(network_open=False), machine), machine.numbers
    judged: dict[tuple[str, tuple[int, ...]], int] = {
        ("execve", ()): NOTIFY,
        ("fchmodat", ()): NOTIFY,
        ("utimensat", ()): NOTIFY,
        ("connect", ()): NOTIFY,
        ("shmget", ()): refused(errno.ENOSYS),
        ("file_setattr", ()): refused(errno.ENOSYS),
        (
            "socket",
            (
                1,
                1 | 0o2000000,
            ),
        ): ALLOW,
        (
            "socket",
            (
                1,
                2,
            ),
        ): refused(errno.EACCES),
        (
            "socketpair",
            (
                1,
                2,
            ),
        ): refused(errno.EACCES),
        (
            "socket",
            (
                2,
                1,
            ),
        ): ALLOW,
        (
            "socket",
            (
                10,
                2,
            ),
        ): refused(errno.EACCES),
        (
            "socket",
            (
                2,
                3,
            ),
        ): refused(errno.EACCES),
        (
            "sendto",
            (
                5,
                0,
                0,
                0x20000000,
            ),
        ): refused(errno.EOPNOTSUPP),
        (
            "sendto",
            (
                5,
                0,
                0,
                0x4000,
            ),
        ): ALLOW,
        ("socket", (16, 3, 0)): ALLOW,
        ("socket", (16, 3, 4)): refused(errno.EACCES),
        ("prlimit64", (0,)): ALLOW,
        ("prlimit64", (4711,)): refused(errno.EPERM),
        (
            "setpriority",
            (
                0,
                0,
            ),
        ): ALLOW,
        (
            "setpriority",
            (
                0,
                4711,
            ),
        ): refused(errno.EPERM),
        (
            "setpriority",
            (
                2,
                0,
            ),
        ): refused(errno.EPERM),
        (
            "ioctl",
            (
                3,
                0x40086602,
            ),
        ): refused(errno.EPERM),
    }
    for (name, arguments), wanted in judged.items():
        assert verdict(code, machine.audit, call[name], *arguments) == wanted, (name, arguments)


def test_an_open_network_leaves_datagrams_to_the_internet_open(machine: ProcessorAbi) -> None:
    code = assemble(seccomp.unmounted(network_open=True), machine)
    assert verdict(code, machine.audit, machine.numbers["socket"], 2, 2) == ALLOW
    assert verdict(code, machine.audit, machine.numbers["socket"], 1, 2) == refused(errno.EACCES)


def test_calls_by_the_numbers_of_another_processor_are_not_there(machine: ProcessorAbi) -> None:
    code = assemble(seccomp.mounted(), machine)
    assert verdict(code, 0x40000003, 11) == refused(errno.ENOSYS)
    assert verdict(code, machine.audit, 0x40000000 + 520) == refused(errno.ENOSYS)


def test_conditions_hold_together_and_the_first_rule_that_fits_decides(
    machine: ProcessorAbi,
) -> None:
    rules = [
        SyscallRule(
            "socket",
            refused(1),
            ArgumentCondition(0, (1, 2)),
            ArgumentCondition(1, (5, 6, 7), mask=0xF, among=False),
        ),
        SyscallRule("socket", refused(2), ArgumentCondition(2, (9,))),
        SyscallRule("no_such_call", refused(3)),
    ]
    code, number = assemble(rules, machine), machine.numbers["socket"]
    given = {
        (1, 4, 0): refused(1),
        (2, 0x14, 0): refused(1),
        (2, 0x15, 0): ALLOW,
        (2, 0x15, 9): refused(2),
        (3, 4, 9): refused(2),
        (3, 4, 0): ALLOW,
    }
    for arguments, wanted in given.items():
        assert verdict(code, machine.audit, number, *arguments) == wanted, arguments
    assert verdict(code, machine.audit, machine.numbers["connect"]) == ALLOW
