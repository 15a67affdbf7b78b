"""Files that the agent was not given: written, removed, changed in any way, or read."""

from __future__ import annotations

from tests.integration.attacks.attack import Group

FILES = Group("files")
_bash, _python = FILES.bash, FILES.python

_bash("F01", "a file of the checkout", "echo evil >> @REPO@/README")
_bash("F02", "a new file in the checkout", "echo evil > @REPO@/conftest.py")
_bash("F03", "the user's .bashrc", "echo 'touch @MARKS@/shell' >> @HOME@/.bashrc")
_bash("F04", "the user's ssh keys", "echo ssh-ed25519 EVIL >> @HOME@/.ssh/authorized_keys")
_bash(
    "F05",
    "settings of the user's tools",
    'echo \'{"hook": "evil"}\' > @HOME@/.config/tool/settings.json',
)
_bash("F06", "a folder outside removed", "rm -rf @OUT@/folder")
_bash("F07", "a file outside emptied", ": > @OUT@/notes.txt")
_bash("F08", "a file outside moved away", "mv @OUT@/notes.txt ./mine")
_bash("F09", "an own file moved over one outside", "echo evil > mine; mv -f mine @OUT@/tool.sh")
_bash("F10", "permissions taken", "chmod 000 @OUT@/notes.txt")
_bash("F11", "permissions given", "chmod 777 @OUT@ @HOME@/.ssh/id_ed25519")
_bash("F12", "times set", "touch -d 2001-01-01 @OUT@/notes.txt")
_python("F13", "an extended attribute", 'os.setxattr(f"{OUT}/notes.txt", "user.evil", b"1")')
_python(
    "F14",
    "inode flags",
    """
fd = os.open(f"{OUT}/notes.txt", os.O_RDONLY)
flags = struct.unpack("l", fcntl.ioctl(fd, 0x80086601, b"\\0" * 8))[0]
fcntl.ioctl(fd, 0x40086602, struct.pack("l", flags | 0x80))
""",
)
_python("F15", "the owner", "os.chown(f'{OUT}/notes.txt', os.getuid(), os.getgid())")
_bash("F16", "a folder made outside", "mkdir -p @OUT@/evil/deep")
_bash("F17", "a link in place of a file", "ln -sfn /etc/passwd @OUT@/notes.txt")
_bash("F18", "the other task's worktree", "echo evil >> @OTHER@/README; rm -rf @OTHER@/src")
_bash(
    "F19",
    "the other task's private folder",
    "rm -rf @OTHER_PRIVATE@/git; echo evil > @OTHER_PRIVATE@/record.json",
)
_bash("F20", "the own record", "echo '{}' > @PRIVATE@/record.json")
_bash(
    "F21",
    "the own private settings",
    "printf '[core]\\n\\tfsmonitor = touch @MARKS@/f\\n' >> @PRIVATE@/config",
)
_bash(
    "F22",
    "what the supervisor remembers of deliveries",
    "mkdir -p @PRIVATE@; git rev-parse HEAD~2 > @STATE@/evil; rm -f @STATE@/journal.db",
)
_bash("F23", "the journal", "echo evil >> @STATE@/journal.db")
_bash("F24", "a file in a forbidden zone", "echo evil > conf/prod/key")
_bash("F25", "a new file in a forbidden zone", "echo evil > conf/prod/new")
_bash(
    "F26", "a forbidden zone that was not there", "mkdir -p deploy/keys; echo evil > deploy/keys/id"
)
_bash("F27", "a forbidden zone replaced by renaming what is above it",
      "mv conf conf2; mkdir -p conf/prod; echo evil > conf/prod/key")  # fmt: skip
_bash("F28", "a forbidden zone removed", "rm -rf conf deploy")
_bash(
    "F29",
    "permissions of a forbidden zone",
    "chmod 777 conf/prod conf/prod/key; touch conf/prod/key",
)
_bash(
    "F30",
    "a forbidden zone by git",
    "git rm -q -r --cached conf; git checkout HEAD~3 -- conf/prod; printf x > conf/prod/key",
)
_bash("F31", "the worktree moved", "cd ..; mv task-1 elsewhere")
_bash("F32", "the worktree's .git removed", "rm -f .git")
_python(
    "F33",
    "memory mapped from a file",
    """
fd = os.open(f"{OUT}/notes.txt", os.O_RDWR)
mmap.mmap(fd, 4)[:4] = b"evil"
""",
)
_python(
    "F34",
    "ftruncate, fallocate, copy_file_range, sendfile",
    """
mine = os.open("mine", os.O_RDWR | os.O_CREAT)
os.write(mine, b"evil")
for name, act in {
    "truncate": lambda: os.truncate(f"{OUT}/notes.txt", 3),
    "fallocate": lambda: os.posix_fallocate(os.open(f"{OUT}/two.txt", os.O_RDWR | os.O_CREAT), 0, 100),
    "copy": lambda: os.copy_file_range(mine, os.open(f"{OUT}/tool.sh", os.O_WRONLY), 4, 0),
    "sendfile": lambda: os.sendfile(os.open(f"{HOME}/.npmrc", os.O_WRONLY), mine, 0, 4),
}.items():
    try:
        act()
    except OSError as error:
        print(name, error)
""",
)
_python(
    "F35",
    "a file without a name, linked outside",
    """
fd = os.open(WT, os.O_TMPFILE | os.O_RDWR, 0o644)
os.write(fd, b"evil")
if libc.linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, f"{OUT}/evil".encode(), 0x400):
    raise OSError(ctypes.get_errno(), "linkat")
""",
)
_python(
    "F36",
    "a file found by its handle",
    """
handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
mount = ctypes.c_int()
at = os.open(OUT, os.O_RDONLY | os.O_DIRECTORY)
if libc.name_to_handle_at(at, b"notes.txt", handle, ctypes.byref(mount), 0):
    raise OSError(ctypes.get_errno())
fd = libc.open_by_handle_at(at, handle, os.O_RDWR)
if fd < 0:
    raise OSError(ctypes.get_errno(), "open_by_handle_at")
os.write(fd, b"evil")
""",
    dead={"ordinary": "only root may open files by handle"},
)
_bash("F37", "a pipe in place of a file", "rm -f @OUT@/notes.txt; mkfifo @OUT@/notes.txt")
_python("F38", "shared memory by its file", 'open("@SHM_FILE@", "w").write("evil")')
_python(
    "F39",
    "shared memory by its number",
    """
libc.shmat.restype = ctypes.c_void_p
address = libc.shmat(SHM, None, 0)
if address not in (None, ctypes.c_void_p(-1).value):
    ctypes.memmove(address, b"evil", 4)
""",
)
_bash("F40", "the user's private key, read", "cat @HOME@/.ssh/id_ed25519")
_bash("F41", "the other task's secrets, read", "cat @OTHER_PRIVATE@/home/token")
_bash("F42", "the journal, read", "cat @STATE@/journal.db")
_bash("F43", "the machine's passwords, read", "test -s /etc/shadow && grep -q : /etc/shadow && echo GOT shadow",
      dead={"ordinary": "only root may read them"})  # fmt: skip
_bash("F44", "a file among the system's own", "touch @SYSTEM_FILE@",
      dead={"ordinary": "only root may write there"})  # fmt: skip
_bash("F45", "an archive with a way out",
      "mkdir -p a; echo evil > a/x; tar -cPf t.tar --transform 's,^a/x,@OUT@/from-tar,' a/x; tar -xPf t.tar")  # fmt: skip
_bash("F46", "a patch with a way out",
      "printf -- '--- /dev/null\\n+++ ../../../outside/from-patch\\n@@ -0,0 +1 @@\\n+evil\\n' | git apply --unsafe-paths -p0 --directory=")  # fmt: skip
_python(
    "F47",
    "a raw device of the disk",
    """
number = os.stat("/").st_dev
os.mknod("disk", 0o600 | stat.S_IFBLK, number)
try:
    os.close(os.open("disk", os.O_RDONLY))
    got("the raw disk")
finally:
    os.unlink("disk")
""",
    dead={"ordinary": "only root makes devices", "root": "machines may forbid devices to root too"},
)
_bash(
    "F48",
    "a device left in the worktree",
    "mknod zero c 1 5",
    dead={"ordinary": "only root makes devices"},
)
_bash("F49", "a setuid program left in the worktree", "cp /usr/bin/true mine; chmod 6755 mine")
_bash(
    "F50", "a setgid program left in the worktree", "cp /usr/bin/true src/mine; chmod 2755 src/mine"
)
_python(
    "F51",
    "a setuid program made with that mode at once",
    """
os.umask(0)
os.write(os.open("src/mine", os.O_WRONLY | os.O_CREAT, 0o6755), open("/usr/bin/true", "rb").read())
""",
    dead={"ordinary": "writing takes the bit away"},
)
_python(
    "F52",
    "the same by a call whose mode is hidden in memory",
    """
os.umask(0)
how = struct.pack("QQQ", os.O_WRONLY | os.O_CREAT, 0o6755, 0)
os.write(syscall(437, -100, b"src/mine", how, len(how)), open("/usr/bin/true", "rb").read())
""",
    dead={"ordinary": "writing takes the bit away"},
)
_bash("F53", "a file that the user cannot remove", "mkdir -p src/x; echo > src/x/y; chmod 2777 src/x; chattr +i src/x/y; chattr +a src/x; lsattr src/x | grep -q -- '-i-' && echo GOT an immutable file; chattr -i src/x/y; chattr -a src/x",
      dead={"ordinary": "only root may"})  # fmt: skip

_REPOSITORY = (
    "mkdir -p @SCRATCH@/evil/objects @SCRATCH@/evil/refs; echo 'ref: refs/heads/x' > @SCRATCH@/evil/HEAD; "
    "printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch @MARKS@/fsmonitor\\n' > @SCRATCH@/evil/config; "
)
_bash(
    "F54",
    "the worktree's .git replaced by a folder",
    _REPOSITORY + "rm -rf .git; cp -r @SCRATCH@/evil .git",
)
_bash(
    "F55",
    "the worktree's .git replaced by a link",
    _REPOSITORY + "rm -rf .git; ln -s @SCRATCH@/evil .git",
)
_bash("F56", "the worktree's .git replaced by a pipe", "rm -rf .git; mkfifo .git")
_bash(
    "F57",
    "the worktree's .git replaced, and the worktree closed so that it stays",
    _REPOSITORY + "rm -rf .git; cp -r @SCRATCH@/evil .git; chmod 500 .git .",
)
