"""Ways round the walls by names: links, renames, /proc, descriptors."""

from __future__ import annotations

from tests.integration.attacks.attack import Group

LINKS = Group("escapes")
_bash, _python = LINKS.bash, LINKS.python

_bash(
    "E01",
    "a symbolic link to a file outside, written through",
    "ln -s @OUT@/notes.txt here; echo evil > here",
)
_bash(
    "E02",
    "a symbolic link to a folder outside, written through",
    "ln -s @OUT@ here; echo evil > here/new; rm -rf here/folder",
)
_bash(
    "E03",
    "a chain of relative links",
    "ln -s ../../../outside a; ln -s a b; mkdir c; ln -s ../b c/d; echo evil > c/d/new",
)
_bash(
    "E04",
    "a hard link of a file outside, written through",
    "ln @OUT@/notes.txt here; echo evil > here",
)
_python(
    "E05",
    "a hard link of the user's objects, written through",
    """
for place in (f"{REPO}/.git/objects", f"{REPO}/.git/base-objects"):
    for path in glob.glob(f"{place}/[0-9a-f][0-9a-f]/*")[:2] + glob.glob(f"{place}/pack/*.pack"):
        try:
            os.link(path, f"{WT}/{os.path.basename(path)}")
            os.chmod(f"{WT}/{os.path.basename(path)}", 0o644)
            open(f"{WT}/{os.path.basename(path)}", "r+b").write(b"evil")
        except OSError as error:
            print(error)
""",
)
_python(
    "E06",
    "an exchange of names with a file outside",
    """
open("mine", "w").write("evil")
syscall(316, -100, f"{WT}/mine".encode(), -100, f"{OUT}/notes.txt".encode(), 2)
""",
)
_bash("E07", "dots, all the way up", "cd src && echo evil > ../../../../outside/new")
_python(
    "E08",
    "a folder opened, then the way up by descriptors",
    """
fd = os.open(".", os.O_RDONLY)
for _ in range(3):
    fd = os.open("..", os.O_RDONLY, dir_fd=fd)
out = os.open("outside", os.O_RDONLY, dir_fd=fd)
os.close(os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=out))
""",
)
_python(
    "E09",
    "the root of every process that can be seen",
    """
for root in glob.glob("/proc/[0-9]*/root") + ["/proc/self/task/1/root"]:
    try:
        open(f"{root}{OUT}/new", "w").write("evil")
    except OSError:
        pass
""",
)
_bash("E10", "the folder of a process outside", "echo evil > /proc/@VICTIM@/cwd/new")
_bash("E11", "a descriptor of a process outside", "echo evil > /proc/@VICTIM@/fd/0")
_python(
    "E12",
    "descriptors of whoever started the agent",
    """
for path in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        target = os.readlink(path)
        if target in (f"{os.path.dirname('@ROOT@')}/held-open.txt", f"{OUT}/notes.txt"):
            os.write(os.open(path, os.O_WRONLY), b"evil")
    except OSError:
        pass
""",
)
_python(
    "E13",
    "descriptors that were inherited",
    """
for fd in range(3, 1024):
    try:
        kind = os.fstat(fd).st_mode
    except OSError:
        continue
    print(fd, os.readlink(f"/proc/self/fd/{fd}"))
    try:
        if stat.S_ISDIR(kind):
            os.close(os.open("held-open.txt", os.O_WRONLY | os.O_TRUNC, dir_fd=fd))
        elif stat.S_ISREG(kind):
            os.write(fd, b"evil")
    except OSError as error:
        print(error)
""",
)
_python(
    "E14",
    "a descriptor taken from another process",
    """
pidfd = syscall(434, VICTIM, 0)
fd = syscall(438, pidfd, 0, 0)
os.write(fd, b"evil")
""",
)
_python(
    "E15",
    "a descriptor handed over by a service outside",
    """
with socket.socket(socket.AF_UNIX) as line:
    line.connect(SOCKET)
    line.send(b"give me a descriptor")
    print(socket.recv_fds(line, 100, 4))
""",
)
_bash("E16", "a zone that becomes a link between two turns",
      "rm -rf deploy 2>/dev/null; mv deploy away 2>/dev/null; ln -sfn @OUT@ deploy; ln -sfn @OUT@ later",
      "echo evil > deploy/keys/new 2>/dev/null || echo evil > deploy/new; echo evil > later/new")  # fmt: skip
_bash("E17", "the private home made a link between two turns",
      "cd /; rm -rf @SCRATCH@/* ; rmdir @SCRATCH@; mv @SCRATCH@ @SCRATCH@-away; ln -sfn @OUT@ @SCRATCH@", "echo evil > @SCRATCH@/new")  # fmt: skip
_bash("E18", "a folder of the private git directory made a link between two turns",
      "D=$(git rev-parse --git-common-dir); mv $D/worktrees $D/away; ln -s @OUT@ $D/worktrees; mv $D/refs $D/refs2; ln -s @OUT@ $D/refs",
      "git commit -q --allow-empty -m through")  # fmt: skip
_bash("E19", "a link planted where the supervisor may write",
      "D=$(git rev-parse --git-common-dir); for name in packed-refs index config.lock HEAD.lock COMMIT_EDITMSG FETCH_HEAD shallow; do "
      "ln -sf @OUT@/notes.txt $D/$name 2>/dev/null; ln -sf @OUT@/notes.txt @PRIVATE@/$name 2>/dev/null; done; "
      "ln -sf @OUT@/notes.txt @PRIVATE@/delivering; ln -sf @OUT@/notes.txt @PRIVATE@/delivered; git commit -q --allow-empty -m x")  # fmt: skip
_bash("E20", "the place of planted repositories made a link",
      "ln -sfn @OUT@ @PRIVATE@/quarantine; mkdir -p src/x/.git; echo evil > src/x/.git/HEAD")  # fmt: skip
_bash(
    "E21",
    "a mount point entered by another name",
    "ln -s @REPO@/.git/base-objects o; chmod -R u+w o/ ; rm -rf o/* @REPO@/.git/objects/*/",
)
_python(
    "E22",
    "/proc/self/mem used to write to read-only memory of a file",
    """
path = f"{OUT}/notes.txt"
fd = os.open(path, os.O_RDWR)
view = mmap.mmap(fd, 4, mmap.MAP_SHARED)
view[:4] = b"evil"
""",
)
_python(
    "E23",
    "a folder deep enough that walkers give up, with a repository at its end",
    """
at = os.open(".", os.O_RDONLY)
for _ in range(1500):
    os.mkdir("d" * 200, dir_fd=at)
    at = os.open("d" * 200, os.O_RDONLY, dir_fd=at)
os.mkdir(".git", dir_fd=at)
subprocess.run("ln -s ../../../outside/notes.txt link; echo evil > link", shell=True)
""",
)
_python(
    "E24",
    "names that are no text",
    """
os.mkdir(b"\\xff\\xfe")
os.symlink(OUT.encode(), b"\\xff\\xfe/\\x80")
os.makedirs(b"src/\\xc0\\n\\r/.git")
open(b"src/\\xc0\\n\\r/.git/config", "w").write("[core]\\n\\tfsmonitor = touch @MARKS@/f\\n")
open(b"\\xff\\xfe/\\x80/new", "w").write("evil")
""",
)
