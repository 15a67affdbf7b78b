"""launchd, systemd and cron: what is written for them, put in force and taken back."""

from __future__ import annotations

import plistlib
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from podium.core.errors import BadInput, NotPossibleNow
from podium.jobs.sense.io import FileRecord, RecordFiles
from podium.jobs.sense.io.cron import Cron, line_of
from podium.jobs.sense.io.installation import (
    home_in,
    not_written_down,
    schedule_of,
    scheduler,
    scheduler_statuses,
)
from podium.jobs.sense.io.launchd import Launchd, plist_of
from podium.jobs.sense.io.record import last_tick
from podium.jobs.sense.io.schedule import Machine, TickSchedule
from podium.jobs.sense.io.systemd import Systemd, service_of, timer_of
from podium.jobs.sense.models import PlannerStatus, SenseMemory
from podium.sandbox import ProcessLauncher
from podium.testing import FixedClock

LABEL = "com.02luka.gmx-clc-orchestrator"
ODD_NAMES = [
    "02luka",
    "with space",
    'it\'s "quoted"',
    "100% %h $HOME $$ `id` & ; | <x>",
    "größe-日本",
    "ends with %",
    "ends with space ",
    "#hash",
]


@dataclass
class Harness:
    """A user with a home, a root, and programs that only write down what they are asked."""

    root: Path
    home: Path
    programs: Path

    def says(self, program: str, script: str) -> None:
        file = self.programs / program
        log = shlex.quote(str(self.programs / f"{program}.log"))
        file.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>{log}\n{script}\n')
        file.chmod(0o755)

    def log_lines(self, program: str) -> list[str]:
        log = self.programs / f"{program}.log"
        return log.read_text().splitlines() if log.exists() else []

    def has_crontab(self, table: str | None = None) -> Path:
        """A crontab that keeps its table in a file, as the real one does."""
        kept = self.programs / "table"
        if table is not None:
            kept.write_text(table)
        place = shlex.quote(str(kept))
        self.says(
            "crontab",
            f"""case $1 in
-l) [ -e {place} ] || {{ echo "no crontab for ann" >&2; exit 1; }}; /bin/cat {place} ;;
-r) /bin/rm {place} ;;
-) /bin/cat >{place} ;;
esac""",
        )
        return kept

    def schedule(self, **intent: object) -> TickSchedule:
        return schedule_of(root=str(self.root), program="/opt/podium/bin/podium", **intent)

    def machine(self, platform: str = "linux") -> Machine:
        path = {"PATH": str(self.programs), "HOME": str(self.home)}
        return Machine(
            launcher=ProcessLauncher(parent_env=path),
            home=self.home,
            config_home=self.home / ".config",
            platform=platform,
            uid=501,
        )


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    made = Harness(tmp_path.resolve() / "root", tmp_path / "home", tmp_path / "programs")
    for folder in (made.root, made.home, made.programs):
        folder.mkdir()
    (made.root / "g/tools").mkdir(parents=True)
    (made.root / "g/tools/gmx_clc_orchestrator.zsh").write_text("#!/bin/sh\n")
    return made


# --- what is scheduled -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intent", "words"),
    [
        ({"root": "/a\nb"}, "rename the folder"),
        ({"root": "/a\tb"}, "rename the folder"),
        ({"root": "/a\udcffb"}, "rename the folder"),
        ({"root": "a/b"}, "not absolute"),
        ({"every_seconds": 1}, "every_seconds"),
        ({"label": "../evil"}, "label"),
        ({"label": ""}, "label"),
        ({"mode": "yolo"}, "mode"),
    ],
)
def test_what_no_scheduler_can_take_is_refused(intent: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        schedule_of(**{"root": "/r", "program": "/p", **intent})


def test_two_roots_of_one_name_have_different_units() -> None:
    names = {TickSchedule(root=root, program="/p").name for root in ("/a/02luka", "/b/02luka", "/")}
    assert len(names) == 3
    assert all(name.startswith("podium-sense-") for name in names)


def test_a_folder_with_a_colon_does_not_split_the_path() -> None:
    schedule = TickSchedule(root="/a:/evil", program="/opt/p/podium", folders=("/x:y", "/opt/node"))
    assert schedule.path.split(":") == [
        *("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin", "/opt/p", "/opt/node")
    ]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_home_that_was_chosen_is_carried_by_every_scheduler(name: str) -> None:
    home = f"/srv/{name}"
    schedule = TickSchedule(root="/r", program="/p", home=home)
    assert plistlib.loads(plist_of(schedule))["EnvironmentVariables"]["PODIUM_HOME"] == home
    escaped = f"PODIUM_HOME={home}".replace('"', '\\"').replace("%", "%%")
    assert f'Environment="{escaped}"\n' in service_of(schedule)
    assert f" PODIUM_HOME={shlex.quote(home)} ".replace("%", "\\%") in line_of(schedule)
    assert "PODIUM_HOME" not in line_of(TickSchedule(root="/r", program="/p"))


def test_home_is_named_by_its_full_path_and_a_database_is_only_mentioned(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert home_in({"PODIUM_HOME": f"{tmp_path}/link"}) == str(tmp_path.resolve())
    assert home_in({"PODIUM_HOME": ""}) is None
    [note] = not_written_down({"PODIUM_DATABASE_URL": "postgresql://me:pw@h/db"})
    assert "not written to the schedule" in note
    assert "pw@h" not in note
    assert not_written_down({}) == ()


# --- launchd -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_plist_says_what_the_table_says(name: str) -> None:
    root = f"/Users/ann/{name}"
    table = plistlib.loads(plist_of(TickSchedule(root=root, program="/opt/podium/bin/podium")))
    assert table == {
        "Label": LABEL,
        "ProgramArguments": ["/bin/zsh", f"{root}/g/tools/gmx_clc_orchestrator.zsh"],
        "WorkingDirectory": root,
        "StartInterval": 300,
        "RunAtLoad": True,
        "ThrottleInterval": 5,
        "EnvironmentVariables": {
            "PATH": f"{root}/.venv/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:/opt/podium/bin",
            "PYTHONPATH": root,
            "GMX_ORCH_MODE": "sensing",
            "PODIUM_SENSE_SCHEDULED": "1",
        },
        "StandardOutPath": f"{root}/logs/gmx_clc_orchestrator.stdout.log",
        "StandardErrorPath": f"{root}/logs/gmx_clc_orchestrator.stderr.log",
    }


@pytest.mark.skipif(not shutil.which("plutil"), reason="plutil is a program of macOS")
@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_plist_passes_plutil(tmp_path: Path, name: str) -> None:
    file = tmp_path / "agent.plist"
    file.write_bytes(plist_of(TickSchedule(root=f"/Users/ann/{name}", program="/opt/podium")))
    lint = subprocess.run(["plutil", "-lint", str(file)], check=False, capture_output=True)
    assert lint.returncode == 0, lint.stdout


async def test_on_macos_the_agent_is_written_and_loaded(harness: Harness) -> None:
    harness.says("launchctl", "exit 0")
    done = await Launchd(harness.machine("darwin")).install(harness.schedule())
    file = harness.home / f"Library/LaunchAgents/{LABEL}.plist"
    assert (done.done, done.loaded, done.written) == (True, True, (str(file),))
    assert file.read_bytes() == plist_of(harness.schedule())
    assert (harness.root / "logs").is_dir()
    assert harness.log_lines("launchctl") == [
        f"bootout gui/501/{LABEL}",
        f"bootstrap gui/501 {file}",
    ]


async def test_a_label_that_is_still_going_is_loaded_when_it_is_gone(harness: Harness) -> None:
    tries = shlex.quote(str(harness.programs / "launchctl.log"))
    harness.says(
        "launchctl", f'[ "$1" = bootout ] || [ $(/usr/bin/wc -l <{tries}) -ge 3 ] || exit 5'
    )
    done = await Launchd(harness.machine("darwin"), pause_seconds=0).install(harness.schedule())
    assert done.loaded
    assert len(harness.log_lines("launchctl")) == 3


async def test_refusal_of_launchctl_is_reported_with_what_to_type(harness: Harness) -> None:
    harness.says("launchctl", 'echo "Bootstrap failed: 5: Input/output error" >&2; exit 5')
    done = await Launchd(harness.machine("darwin"), pause_seconds=0).install(harness.schedule())
    assert (done.done, done.loaded) == (False, False)
    assert "Input/output error" in done.notes[0]
    assert done.by_hand.startswith("launchctl bootstrap gui/501 ")


async def test_elsewhere_the_agent_lies_below_the_root_and_that_is_reported(
    harness: Harness,
) -> None:
    done = await Launchd(harness.machine()).install(harness.schedule())
    assert done.written == (f"{harness.root}/LaunchAgents/{LABEL}.plist",)
    assert (done.done, done.loaded) == (True, False)
    assert "macOS only" in done.notes[0]
    assert not (harness.home / "Library").exists()


async def test_an_agent_without_its_shim_is_not_installed(harness: Harness) -> None:
    (harness.root / "g/tools/gmx_clc_orchestrator.zsh").unlink()
    with pytest.raises(NotPossibleNow, match="podium sense scaffold"):
        await Launchd(harness.machine()).install(harness.schedule())
    assert not (harness.root / "LaunchAgents").exists()


async def test_a_label_of_another_root_is_not_taken_over(harness: Harness) -> None:
    harness.says("launchctl", "exit 0")
    launchd = Launchd(harness.machine("darwin"))
    await launchd.install(harness.schedule())
    other = harness.schedule().model_copy(update={"root": str(harness.root.parent / "other")})
    shutil.copytree(harness.root, other.root)
    with pytest.raises(NotPossibleNow, match="--label"):
        await launchd.install(other)
    assert (await launchd.uninstall(other)).removed == ()
    assert (await launchd.status(harness.schedule())).installed
    assert (await launchd.install(other.model_copy(update={"label": "com.other"}))).loaded


async def test_an_agent_that_somebody_else_wrote_is_kept_beside(harness: Harness) -> None:
    harness.says("launchctl", "exit 0")
    folder = harness.home / "Library/LaunchAgents"
    folder.mkdir(parents=True)
    theirs = plistlib.dumps({"Label": LABEL, "WorkingDirectory": str(harness.root)})
    (folder / f"{LABEL}.plist").write_bytes(theirs)
    launchd = Launchd(harness.machine("darwin"))
    assert not (await launchd.uninstall(harness.schedule())).removed
    done = await launchd.install(harness.schedule())
    assert done.backups == (str(folder / f"{LABEL}.plist.bak"),)
    assert (folder / f"{LABEL}.plist.bak").read_bytes() == theirs
    again = await launchd.install(harness.schedule(every_seconds=600))
    assert again.backups == ()
    assert plistlib.loads((folder / f"{LABEL}.plist").read_bytes())["StartInterval"] == 600


@pytest.mark.parametrize("content", [b"", b"<plist", b"bplist00\x00", b"\xff\xfe", b"<a/>" * 9])
async def test_an_agent_that_cannot_be_read_is_nobodys(harness: Harness, content: bytes) -> None:
    (harness.root / "LaunchAgents").mkdir()
    (harness.root / f"LaunchAgents/{LABEL}.plist").write_bytes(content)
    launchd = Launchd(harness.machine())
    assert not (await launchd.status(harness.schedule())).installed
    assert not (await launchd.uninstall(harness.schedule())).removed
    assert (await launchd.install(harness.schedule())).backups


async def test_uninstalling_an_agent_lets_go_of_it_once(harness: Harness) -> None:
    harness.says("launchctl", "exit 0")
    launchd = Launchd(harness.machine("darwin"))
    await launchd.install(harness.schedule())
    assert len((await launchd.uninstall(harness.schedule())).removed) == 1
    assert harness.log_lines("launchctl")[-1] == f"bootout gui/501/{LABEL}"
    asked = len(harness.log_lines("launchctl"))
    assert (await launchd.uninstall(harness.schedule())).removed == ()
    assert len(harness.log_lines("launchctl")) == asked
    assert not (harness.home / f"Library/LaunchAgents/{LABEL}.plist").exists()


async def test_status_of_an_agent_has_its_last_exit(harness: Harness) -> None:
    harness.says("launchctl", 'echo "	state = waiting"; echo "	last exit code = 7"')
    launchd = Launchd(harness.machine("darwin"))
    assert not (await launchd.status(harness.schedule())).installed
    await launchd.install(harness.schedule())
    status = await launchd.status(harness.schedule())
    assert (status.installed, status.loaded, status.last_exit) == (True, True, 7)


# --- systemd -----------------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed here"
)
@pytest.mark.parametrize("name", [*ODD_NAMES, "back\\slash", "ends with \\"])
def test_the_units_pass_systemds_own_check(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    (root / "logs").mkdir(parents=True)
    program = root / "podium"
    program.write_text("#!/bin/sh\n")
    schedule = TickSchedule(root=str(root), program=str(program))
    for unit, text in (("service", service_of(schedule)), ("timer", timer_of(schedule))):
        (tmp_path / f"{schedule.name}.{unit}").write_text(text)
    service, timer = (tmp_path / f"{schedule.name}.{kind}" for kind in ("service", "timer"))
    # It looks whether the program can be executed, so its path must have been read as it is.
    started = "" if set(name) & set("\"'\\") else f"{program} is not executable"
    assert started in _verified(service, tmp_path)
    program.chmod(0o755)
    assert _verified(service, tmp_path) == ""
    assert _verified(timer, tmp_path) == ""


def _verified(unit: Path, runtime: Path) -> str:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)],
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(runtime),
            "XDG_RUNTIME_DIR": str(runtime),
            "SYSTEMD_UNIT_PATH": f"{unit.parent}:",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_unit_quotes_what_systemd_would_take_for_its_own() -> None:
    root = '/r/50% $HOME "x" \\'
    unit = service_of(TickSchedule(root=root, program="/opt/$p %n/podium", mode="dry-run"))
    lines = unit.splitlines()
    assert (
        r'''ExecStart="/opt/$p %%n/podium" "sense" "--once" "--root" "/r/50%% $$HOME \"x\" \\"'''
        in lines
    )
    assert r'WorkingDirectory=/r/50%% $HOME "x" \/' in lines
    assert r'Environment="PYTHONPATH=/r/50%% $HOME \"x\" \\"' in lines
    assert 'Environment="GMX_ORCH_MODE=dry-run"' in lines
    assert 'Environment="PODIUM_SENSE_SCHEDULED=1"' in lines


async def test_units_are_written_and_switched_on(harness: Harness) -> None:
    harness.says("systemctl", "exit 0")
    done = await Systemd(harness.machine()).install(harness.schedule(every_seconds=77))
    name = harness.schedule().name
    folder = harness.home / ".config/systemd/user"
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.service", f"{name}.timer"]
    assert "OnUnitActiveSec=77\n" in (folder / f"{name}.timer").read_text()
    assert (done.done, done.loaded) == (True, True)
    assert harness.log_lines("systemctl")[1:] == [
        "--user daemon-reload",
        f"--user enable {name}.timer",
        f"--user restart {name}.timer",
    ]


async def test_without_a_user_manager_the_units_wait_and_that_is_reported(harness: Harness) -> None:
    harness.says("systemctl", 'echo "Failed to connect to bus" >&2; exit 1')
    done = await Systemd(harness.machine()).install(harness.schedule())
    assert (done.done, done.loaded, len(done.written)) == (True, False, 2)
    assert "Failed to connect to bus" in done.notes[0]
    assert done.by_hand.startswith("systemctl --user daemon-reload && ")
    status = await Systemd(harness.machine()).status(harness.schedule())
    assert (status.installed, status.loaded, status.last_exit) == (True, None, None)


async def test_a_timer_that_is_refused_is_no_success(harness: Harness) -> None:
    harness.says("systemctl", '[ "$2" != enable ] || { echo "Unit is masked." >&2; exit 1; }')
    done = await Systemd(harness.machine()).install(harness.schedule())
    assert (done.done, done.loaded) == (False, False)
    assert "Unit is masked." in done.notes[0]


async def test_uninstalling_units_leaves_those_of_others(harness: Harness) -> None:
    harness.says("systemctl", "exit 0")
    systemd = Systemd(harness.machine())
    assert (await systemd.uninstall(harness.schedule())).removed == ()
    await systemd.install(harness.schedule())
    folder = harness.home / ".config/systemd/user"
    (folder / "mine.service").write_text("[Service]\n")
    service = folder / f"{harness.schedule().name}.service"
    service.write_text("[Service]\n# changed hands\n")
    done = await systemd.uninstall(harness.schedule())
    assert done.removed == (str(folder / f"{harness.schedule().name}.timer"),)
    assert "not removed" in done.notes[0]
    assert sorted(path.name for path in folder.iterdir()) == ["mine.service", service.name]
    assert f"--user disable --now {harness.schedule().name}.timer" in harness.log_lines("systemctl")
    assert (await systemd.uninstall(harness.schedule())).removed == ()


async def test_units_that_nobody_manages_are_taken_back_with_what_switched_them_on(
    harness: Harness,
) -> None:
    systemd = Systemd(harness.machine())
    await systemd.install(harness.schedule())
    wants = harness.home / ".config/systemd/user/timers.target.wants"
    wants.mkdir()
    (wants / f"{harness.schedule().name}.timer").symlink_to(f"../{harness.schedule().name}.timer")
    assert len((await systemd.uninstall(harness.schedule())).removed) == 2
    assert list(wants.iterdir()) == []


async def test_status_of_units_has_the_last_exit_of_the_service(harness: Harness) -> None:
    systemd = Systemd(harness.machine())
    harness.says("systemctl", "exit 0")
    await systemd.install(harness.schedule())
    harness.says(
        "systemctl",
        "echo ActiveState=active; echo ExecMainStatus=7; echo ExecMainExitTimestampMonotonic=9",
    )
    status = await systemd.status(harness.schedule())
    assert (status.loaded, status.last_exit) == (True, 7)
    harness.says(
        "systemctl",
        "echo ActiveState=inactive; echo ExecMainStatus=0; echo ExecMainExitTimestampMonotonic=0",
    )
    status = await systemd.status(harness.schedule())
    assert (status.loaded, status.last_exit) == (False, None)


async def test_units_go_where_a_linked_configuration_leads(harness: Harness) -> None:
    (harness.home / "dotfiles").mkdir()
    (harness.home / ".config").symlink_to("dotfiles")
    await Systemd(harness.machine()).install(harness.schedule())
    assert len(list((harness.home / "dotfiles/systemd/user").iterdir())) == 2


# --- cron --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "when"),
    [
        (60, "* * * * *"),
        (300, "*/5 * * * *"),
        (1200, "*/20 * * * *"),
        (3600, "0 * * * *"),
    ],
)
def test_whole_minutes_that_divide_an_hour_are_crons(seconds: int, when: str) -> None:
    line = line_of(TickSchedule(root="/r", program="/p", every_seconds=seconds))
    assert line.startswith(f"{when} cd /r && ")


@pytest.mark.parametrize("seconds", [30, 90, 420, 2700, 7200, 86_400])
def test_other_times_are_left_to_systemd(seconds: int) -> None:
    with pytest.raises(BadInput, match="systemd"):
        line_of(TickSchedule(root="/r", program="/p", every_seconds=seconds))


@pytest.mark.parametrize("root", ["/a\\b", "/" + "long/" * 200])
def test_paths_that_crons_read_differently_are_left_to_systemd(root: str) -> None:
    with pytest.raises(BadInput, match="systemd"):
        line_of(TickSchedule(root=root, program="/p"))


@pytest.mark.parametrize("name", ODD_NAMES)
def test_the_line_runs_podium_on_the_root_whatever_its_name(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    (root / "logs").mkdir(parents=True)
    program = root / "podium"
    text = "$GMX_ORCH_MODE $PODIUM_SENSE_SCHEDULED"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "{text}" "$PWD" "$PYTHONPATH" "$@"\n')
    program.chmod(0o755)
    line = line_of(TickSchedule(root=str(root), program=str(program), mode="supervised"))
    assert line.count("\n") == 1
    command = line.split(maxsplit=5)[5].rstrip("\n")
    # What cron does with a line: an escaped percent sign is one, a bare one would be a new line.
    assert "%" not in command.replace("\\%", "")
    subprocess.run(["/bin/sh", "-c", command.replace("\\%", "%")], check=True, timeout=120)
    assert (root / "logs/gmx_clc_orchestrator.stdout.log").read_text().splitlines() == [
        *("supervised 1", str(root), str(root), "sense", "--once", "--root", str(root)),
    ]
    assert (root / "logs/gmx_clc_orchestrator.stderr.log").read_text() == ""


async def test_all_other_lines_of_the_table_stay(harness: Harness) -> None:
    theirs = "MAILTO=ann\n# a note\n0 4 * * * backup --to /mnt # podium-sense-else\n"
    table = harness.has_crontab(theirs.rstrip("\n"))
    cron = Cron(harness.machine())
    assert (await cron.install(harness.schedule())).loaded
    assert table.read_text() == theirs + line_of(harness.schedule())
    await cron.install(harness.schedule(every_seconds=600))
    assert table.read_text() == theirs + line_of(harness.schedule(every_seconds=600))
    assert (await cron.status(harness.schedule())).installed
    assert (await cron.uninstall(harness.schedule())).removed == ("crontab",)
    assert table.read_text() == theirs
    log_lines = len(harness.log_lines("crontab"))
    assert (await cron.uninstall(harness.schedule())).removed == ()
    assert harness.log_lines("crontab")[log_lines:] == ["-l"]


async def test_a_table_that_was_not_there_is_not_there_afterwards(harness: Harness) -> None:
    table = harness.has_crontab()
    cron = Cron(harness.machine())
    assert not (await cron.status(harness.schedule())).installed
    await cron.install(harness.schedule())
    assert table.read_text() == line_of(harness.schedule())
    await cron.uninstall(harness.schedule())
    assert not table.exists()


async def test_a_table_that_cannot_be_read_is_never_written(harness: Harness) -> None:
    harness.says("crontab", 'echo "crontabs/ann: Permission denied" >&2; exit 1')
    cron = Cron(harness.machine())
    for done in (await cron.install(harness.schedule()), await cron.uninstall(harness.schedule())):
        assert not done.done
        assert "Permission denied" in done.notes[0]
        assert harness.schedule().name in done.by_hand
    assert set(harness.log_lines("crontab")) == {"-l"}
    assert "Permission denied" in (await cron.status(harness.schedule())).why


async def test_a_table_that_is_not_taken_is_no_success(harness: Harness) -> None:
    harness.says("crontab", '[ "$1" = -l ] || { echo "bad minute" >&2; exit 1; }')
    done = await Cron(harness.machine()).install(harness.schedule())
    assert not done.done
    assert done.by_hand == line_of(harness.schedule()).rstrip("\n")


async def test_without_cron_the_line_is_printed(harness: Harness) -> None:
    cron = Cron(harness.machine())
    done = await cron.install(harness.schedule())
    assert not done.done
    assert "not installed" in done.notes[0]
    assert done.by_hand == line_of(harness.schedule()).rstrip("\n")
    assert (await cron.uninstall(harness.schedule())).done


# --- how it stands -----------------------------------------------------------------------------


async def test_one_scheduler_in_trouble_does_not_hide_the_others(harness: Harness) -> None:
    (harness.root / "LaunchAgents").symlink_to("/etc")
    harness.has_crontab(line_of(harness.schedule()))
    launchd, systemd, cron = await scheduler_statuses(harness.schedule(), harness.machine())
    assert "link" in launchd.why
    assert (systemd.installed, cron.installed) == (False, True)


def test_the_last_tick_is_read_from_the_loops_memory(harness: Harness) -> None:
    assert last_tick(harness.root) is None
    files = RecordFiles(log="logs/a.log", parser_log="logs/b.log", telemetry="c.jsonl")
    record = FileRecord(harness.root, files, clock=FixedClock(), redact=str)
    record.remember(SenseMemory(ticks=12, idle_ticks=9, status=PlannerStatus.MOCK))
    found = last_tick(harness.root)
    assert found is not None
    assert (found.ticks, found.idle_ticks, found.status) == (12, 9, "MOCK")
    assert found.at.timestamp() == pytest.approx(
        (harness.root / ".podium/sense/memory.json").stat().st_mtime
    )


@pytest.mark.parametrize("content", ["", "{", "[]", '{"ticks": "many"}', "\x00"])
def test_a_memory_that_cannot_be_read_is_no_tick(harness: Harness, content: str) -> None:
    (harness.root / ".podium/sense").mkdir(parents=True)
    (harness.root / ".podium/sense/memory.json").write_text(content)
    assert last_tick(harness.root) is None


def test_every_scheduler_shows_what_it_would_write_and_writes_nothing(harness: Harness) -> None:
    before = sorted(harness.root.rglob("*"))
    for name, files in (("launchd", 1), ("systemd", 2), ("cron", 1)):
        for platform in ("linux", "darwin"):
            machine = harness.machine(platform)
            assert len(scheduler(name, machine).preview(harness.schedule())) == files  # type: ignore[arg-type]
    assert sorted(harness.root.rglob("*")) == before
    assert list(harness.home.iterdir()) == []
