"""Other processes, namespaces, mounts and the kernel's own doors."""

from __future__ import annotations

from tests.integration.attacks.attack import Group

PROCESSES = Group("escapes")
_bash, _python = PROCESSES.bash, PROCESSES.python

_bash("E30", "a process outside killed", "kill -9 @VICTIM@")
_bash("E31", "a process outside stopped", "kill -STOP @VICTIM@")
_bash("E32", "a process group outside killed", "kill -9 -- -@VICTIM@")
_python(
    "E33",
    "a signal by a descriptor of the process",
    "syscall(424, syscall(434, VICTIM, 0), 9, None, 0)",
)
_python(
    "E34",
    "memory of a process outside, by ptrace",
    """
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
if libc.ptrace(16, VICTIM, None, None):
    raise OSError(ctypes.get_errno(), "attach")
os.waitpid(VICTIM, 0x40000000)
fields = open(f"/proc/{VICTIM}/stat").read().rpartition(")")[2].split()
libc.ptrace(4, VICTIM, int(fields[47]), 0x6C697665)
libc.ptrace(17, VICTIM, None, None)
""",
)
_python(
    "E35",
    "memory of a process outside, by its file",
    """
fields = open(f"/proc/{VICTIM}/stat").read().rpartition(")")[2].split()
with open(f"/proc/{VICTIM}/mem", "r+b", buffering=0) as memory:
    memory.seek(int(fields[47]))
    memory.write(b"evil")
""",
)
_python(
    "E36",
    "memory of a process outside, by process_vm_writev",
    """
fields = open(f"/proc/{VICTIM}/stat").read().rpartition(")")[2].split()
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
data = ctypes.create_string_buffer(b"evil", 4)
ours = Vector(ctypes.cast(data, ctypes.c_void_p), 4)
theirs = Vector(int(fields[47]), 4)
syscall(311, VICTIM, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
""",
)
_bash("E37", "limits of a process outside", "prlimit --pid @VICTIM@ --nofile=7:7")
_bash("E38", "priority of a process outside", "renice -n 15 -p @VICTIM@")
_bash("E39", "processors of a process outside", "taskset -cp 0 @VICTIM@",
      dead={"root": "where there is one processor", "ordinary": "where there is one processor"})  # fmt: skip
_bash("E40", "scheduling of a process outside", "chrt -i -p 0 @VICTIM@")
_bash("E41", "I/O priority of a process outside", "ionice -c 3 -p @VICTIM@")
_bash("E42", "who dies first when memory runs out", "echo 1000 > /proc/@VICTIM@/oom_score_adj")
_bash("E43", "other settings of a process outside",
      "echo evil > /proc/@VICTIM@/comm; echo 0x7f > /proc/@VICTIM@/coredump_filter; echo 99 > /proc/@VICTIM@/timerslack_ns")  # fmt: skip
_bash("E44", "a process outside, under a debugger",
      "gdb -q -batch -p @VICTIM@ -ex 'call (int)kill((int)getpid(), 9)' 2>&1 | tail -2; kill -9 @VICTIM@ 2>&1")  # fmt: skip
_bash("E45", "own user namespace, everything mounted anew and writable",
      "unshare -Urm bash -c 'mount -o remount,rw,bind / ; mount -o remount,rw / ; echo evil > @OUT@/new; "
      "mount -o remount,rw,bind @REPO@/.git/base-objects; rm -rf @REPO@/.git/base-objects/*'")  # fmt: skip
_bash("E46", "the forbidden zone unmounted in an own namespace",
      "unshare -Urm bash -c 'umount -l @WT@/conf/prod; umount -l @WT@/conf; umount -l @WT@; echo evil > @WT@/conf/prod/key'")  # fmt: skip
_bash("E47", "remounted without a namespace of its own",
      "unshare -m true && unshare -m bash -c 'mount -o remount,rw,bind @WT@/conf/prod; echo evil > @WT@/conf/prod/key'; "
      "mount -o remount,rw,bind @WT@/conf/prod && echo evil > @WT@/conf/prod/key",
      dead={"ordinary": "only root mounts without a user namespace"})  # fmt: skip
_python(
    "E48",
    "the new mount calls, in an own user namespace",
    """
os.unshare = lambda flags: libc.unshare(flags) and (_ for _ in ()).throw(OSError(ctypes.get_errno()))
uid, gid = os.getuid(), os.getgid()
os.unshare(0x10000000 | 0x00020000)
for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
    try:
        open(f"/proc/self/{name}", "w").write(text)
    except OSError as error:
        print(name, error)
for place in (OUT, f"{REPO}/.git/base-objects", f"{WT}/conf/prod"):
    try:
        tree = syscall(428, -100, place.encode(), 1 | 0x8000)
        attributes = struct.pack("QQQQ", 0, 1, 0, 0)
        syscall(442, tree, b"", 0x1000 | 0x8000, attributes, len(attributes))
        os.close(os.open("new", os.O_WRONLY | os.O_CREAT, dir_fd=tree))
    except OSError as error:
        print(place, error)
""",
)
_bash("E49", "into the namespaces of a process outside",
      "nsenter -t @VICTIM@ -a touch @OUT@/new || nsenter -t @VICTIM@ -U -m --preserve-credentials touch @OUT@/new || "
      "cp /usr/bin/touch mine && ./mine @OUT@/new")  # fmt: skip
_python(
    "E50",
    "into the parent of the own namespaces",
    """
for kind, flag in (("user", 0x10000000), ("pid", 0x20000000), ("mnt", 0x20000)):
    for request in (0xB701, 0xB702):
        try:
            fd = os.open(f"/proc/self/ns/{kind}", os.O_RDONLY)
            if libc.setns(fcntl.ioctl(fd, request), 0):
                print(kind, os.strerror(ctypes.get_errno()))
        except OSError as error:
            print(kind, error)
open(f"{OUT}/new", "w").write("evil")
""",
)
_bash("E51", "chroot and out again",
      "mkdir -p jail; chroot jail true; python3 -c 'import os; os.chroot(\"jail\"); [os.chdir(\"..\") for _ in range(50)]; "
      "os.chroot(\".\"); open(\"@OUT@/new\", \"w\")'", dead={"ordinary": "only root may chroot"})  # fmt: skip
_python(
    "E52",
    "a folder made by io_uring",
    """
parameters = ctypes.create_string_buffer(120)
ring = syscall(425, 4, parameters)
fields = struct.unpack_from("10I10I10I", parameters.raw)
size = fields[0]
sq, cq = fields[10:20], fields[20:30]
submission = mmap.mmap(ring, sq[6] + size * 4, offset=0)
entries = mmap.mmap(ring, size * 64, offset=0x10000000)
path = ctypes.create_string_buffer(f"{OUT}/new".encode())
entries[0:64] = struct.pack("BBHiQQIIQQQQ", 37, 0, 0, -100, 0, ctypes.addressof(path), 0o755, 0, 0, 0, 0, 0)
submission[sq[6]:sq[6] + 4] = struct.pack("I", 0)
submission[sq[1]:sq[1] + 4] = struct.pack("I", 1)
syscall(426, ring, 1, 1, 1, None, 0)
""",
)
_python(
    "E53",
    "a key in the user's keyring",
    "syscall(248, b'user', f'podium-{NONCE}'.encode(), b'evil', 4, -4)",
)
_python(
    "E54",
    "a key in the session's keyring",
    "syscall(248, b'user', f'podium-{NONCE}'.encode(), b'evil', 4, -3)",
)
_python(
    "E55",
    "typing into the user's terminal",
    """
if os.fork() == 0:
    os.setsid()
    fd = os.open(TTY, os.O_RDWR)
    for letter in b"rm -rf /\\n":
        fcntl.ioctl(fd, 0x5412, bytes([letter]))
    os._exit(0)
os.wait()
""",
)
_bash("E56", "writing to the user's terminal", "printf '\\033]0;evil\\007' > @TTY@")
_python(
    "E57",
    "any terminal that can be seen",
    """
for path in glob.glob("/dev/pts/*") + ["/dev/tty"]:
    if path == TTY:
        os.write(os.open(path, os.O_WRONLY | os.O_NOCTTY), b"evil")
""",
)
_bash("E58", "a program with more rights than its caller",
      "python3 - <<'X'\nimport subprocess, time\np = subprocess.Popen(['su', '-'], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)\n"
      "time.sleep(0.1)\nuids = open(f'/proc/{p.pid}/status').read().split('Uid:')[1].split()[:3]\n"
      "print('GOT root by su' if uids[1] == '0' and uids[0] != '0' else uids)\np.kill()\nX",
      dead={"root": "root has all rights before"})  # fmt: skip
_bash(
    "E59",
    "a process that lives on",
    "setsid bash -c 'sleep 300; echo @NONCE@ > @OUT@/new' >/dev/null 2>&1 & disown; sleep 0.05",
)
_bash("E60", "a process that lives on, deaf, forked twice, without variables",
      "(trap '' TERM HUP INT; setsid env -i python3 -c 'import os,time,signal; signal.signal(15, 1); os.fork() and os._exit(0); time.sleep(300)' @NONCE@ "
      ">/dev/null 2>&1 </dev/null &) ; sleep 0.2")  # fmt: skip
_bash("E61", "a process that lives on in a process namespace of its own",
      "(setsid unshare -Urpf --kill-child=KILL sleep 300.0@UID@ @NONCE@ & setsid unshare -Urpf bash -c 'exec -a @NONCE@ sleep 300' &) >/dev/null 2>&1; "
      "(setsid bash -c 'exec -a @NONCE@ sleep 300' >/dev/null 2>&1 &) ; sleep 0.2")  # fmt: skip
_bash("E62", "the agent's keeper stopped", "kill -STOP $PPID; kill -STOP 1; kill -9 $PPID; echo evil > @OUT@/new",
      spares="it would stop whoever runs the suite")  # fmt: skip
_bash("E63", "everybody in reach killed", "kill -9 -1; echo evil > @OUT@/new",
      spares="it would end the session of whoever runs the suite")  # fmt: skip
_python(
    "E64",
    "switches of the kernel",
    """
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
             "/proc/sys/fs/binfmt_misc/register", "/proc/sys/vm/drop_caches"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        got(path)
    except OSError as error:
        print(error)
""",
    dead={"ordinary": "only root may"},
)
_python(
    "E65",
    "devices of the machine",
    """
for path in ("/dev/mem", "/dev/kmsg", "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop-control", "/dev/fuse", "/dev/kvm", "/dev/net/tun"):
    try:
        os.close(os.open(path, os.O_RDWR))
        got(path)
    except OSError as error:
        print(error)
""",
    dead={"ordinary": "machines may have none that everybody may open"},
)
_python(
    "E66",
    "control groups",
    """
for place in glob.glob("/sys/fs/cgroup") + glob.glob("/sys/fs/cgroup/*/"):
    try:
        os.mkdir(f"{place}/podium-{NONCE}")
        os.rmdir(f"{place}/podium-{NONCE}")
        got("a control group")
        break
    except OSError as error:
        print(error)
""",
    dead={"ordinary": "only root may"},
)
_python(
    "E67",
    "programs in the kernel",
    """
instructions = struct.pack("<BBhiBBhi", 0xB7, 0, 0, 0, 0x95, 0, 0, 0)
code, licence = ctypes.create_string_buffer(instructions), ctypes.create_string_buffer(b"GPL")
given = struct.pack("<IIQQ", 1, 2, ctypes.addressof(code), ctypes.addressof(licence)) + bytes(100)
syscall(321, 5, given, len(given))
got("bpf")
""",
    dead={"ordinary": "machines may keep it for root", "root": "kernels may come without"},
)
_python(
    "E68",
    "counters of a process outside",
    """
attributes = struct.pack("<IIQ", 1, 112, 1) + bytes(96)
syscall(298, attributes, VICTIM, -1, -1, 0)
got("perf_event_open")
""",
    dead={"ordinary": "machines may keep it for root", "root": "kernels may come without"},
)
_python(
    "E69",
    "name of the machine",
    """
name = socket.gethostname().encode()
if libc.sethostname(name, len(name)) == 0:
    got("the name of the machine")
""",
    dead={"ordinary": "only root may"},
)
_python(
    "E70",
    "the user's semaphores and queues",
    """
for line in open("/proc/sysvipc/shm").read().splitlines()[1:]:
    if int(line.split()[1]) == SHM:
        libc.shmctl(SHM, 0, None)
        libc.shmat.restype = ctypes.c_void_p
        ctypes.memmove(libc.shmat(SHM, None, 0), b"evil", 4)
""",
)
_bash("E71", "variables of a process outside, read", "tr '\\0' '\\n' < /proc/@VICTIM@/environ")
_bash(
    "E72",
    "arguments of a process outside, read",
    "tr '\\0' ' ' < /proc/@VICTIM@/cmdline | grep -q /outside/victim && echo GOT its arguments",
)
_python(
    "E73",
    "permissions of a file outside, by a link that is swapped while it is judged",
    """
import threading
open("src/own", "w")
os.symlink(f"{OUT}/notes.txt", "src/out")
stop = time.monotonic() + 1
def swap():
    while time.monotonic() < stop:
        syscall(316, -100, b"src/own", -100, b"src/out", 2)
threading.Thread(target=swap).start()
while time.monotonic() < stop:
    for act in (lambda: os.chmod("src/own", 0o777), lambda: os.utime("src/own", (1, 1)), lambda: os.setxattr("src/own", "user.x", b"1")):
        try:
            act()
        except OSError:
            pass
""",
)
_python(
    "E74",
    "permissions and times of the machine's devices",
    """
for path in ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"):
    for act in (
        lambda: os.chmod(path, stat.S_IMODE(os.stat(path).st_mode)),
        lambda: os.chown(path, 0, -1),
        lambda: os.utime(path, (os.stat(path).st_atime, os.stat(path).st_mtime)),
    ):
        try:
            act()
            got(path)
        except OSError as error:
            print(error)
""",
    dead={"ordinary": "they belong to root"},
)
