"""Attempts of the canary from inside. A program of its own: it is handed to an interpreter as text.

It prints the names of all that it could do although it may not, and ends with 0.
"""

SCRIPT = r"""
import ctypes, fcntl, os, socket, sys

inner, outer, hidden, abstract, outside_pid = sys.argv[1:6]
libc = ctypes.CDLL(None, use_errno=True)
done = []

def attempt(name, act):
    try:
        if act() is not False:
            done.append(name)
    except OSError:
        pass

def write(path):
    with open(path, "a") as file:
        file.write("canary")

def link():
    os.link(outer + "/file", inner + "/linked")
    write(inner + "/linked")

def through_symlink():
    os.symlink(outer, inner + "/way")
    write(inner + "/way/file")

def mount(path):
    return libc.mount(b"none", path.encode(), None, 4096 | 32, None) == 0

def own_namespace():
    child = os.fork()
    if child == 0:
        entered = libc.unshare(0x10000000 | 0x20000) == 0
        os._exit(0 if entered and mount(outer) and write(outer + "/file") is None else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def connect(address):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)

def start(program):
    child = os.fork()
    if child == 0:
        try:
            os.execv(program, [program])
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def survive():
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            lock = open(inner + "/lock", "w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(write_end, b"x")
            while True:
                libc.pause()
        os._exit(0)
    os.wait()
    os.read(read_end, 1)
    return False

write(inner + "/file")
attempt("write to a file outside", lambda: write(outer + "/file"))
attempt("make a file outside", lambda: write(outer + "/new"))
attempt("write by a hard link", link)
attempt("write by a symbolic link", through_symlink)
attempt("change the mode of a file outside", lambda: os.chmod(outer + "/file", 0o600))
attempt("change the times of a file outside", lambda: os.utime(outer + "/file", (1, 1)))
attempt("set an attribute of a file outside", lambda: os.setxattr(outer + "/file", "user.x", b"x"))
attempt("rename a file outside", lambda: os.rename(outer + "/file", outer + "/renamed"))
attempt("remove a file outside", lambda: os.unlink(outer + "/other"))
attempt("remount", lambda: mount("/") or mount(outer))
attempt("mount in namespaces of its own", own_namespace)
attempt("read what was not mounted", lambda: open(hidden + "/secret").close())
attempt("connect to a socket file", lambda: connect(hidden + "/socket"))
attempt("connect to an abstract socket", lambda: connect("\0" + abstract))
attempt("signal a process outside", lambda: os.kill(int(outside_pid), 0))
attempt("change the limits of a process outside",
        lambda: libc.prlimit(int(outside_pid), 7, None, ctypes.create_string_buffer(16)) == 0)
attempt("start a program that is refused", lambda: start("/bin/true"))
attempt("change a switch of the kernel",
        lambda: os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)))
survive()
print("\n".join(["attempted", *done]))
"""
