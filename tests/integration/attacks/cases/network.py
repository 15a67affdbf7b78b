"""Services that the agent was not given: directly, by other protocols, and through the proxy."""

from __future__ import annotations

from tests.integration.attacks.attack import Group

NETWORK = Group("network")
_bash, _python = NETWORK.bash, NETWORK.python

_bash("N01", "TCP by the shell", "exec 3<>/dev/tcp/127.0.0.1/@PORT@; echo evil >&3; head -1 <&3")
_bash("N02", "UDP by the shell", "echo evil > /dev/udp/127.0.0.1/@UDP@")
_bash("N03", "curl, past the proxy", "curl -s --max-time 3 --noproxy '*' http://127.0.0.1:@PORT@/")
_bash("N04", "curl, by name", "curl -s --max-time 3 http://localhost:@PORT@/")
_bash("N05", "wget", "wget -q -T 3 -t 1 -O - http://127.0.0.1:@PORT@/")
_python("N06", "IPv6", 'socket.create_connection(("::1", PORT6), 3).send(b"evil")')
_python(
    "N07",
    "an address that maps IPv4 into IPv6",
    """
line = socket.socket(socket.AF_INET6)
line.connect(("::ffff:127.0.0.1", PORT))
line.send(b"evil")
""",
)
_python(
    "N08",
    "the address that stands for this machine",
    'socket.create_connection(("0.0.0.0", PORT), 3).send(b"evil")',
)
_python(
    "N09",
    "data in the first packet",
    """
line = socket.socket()
line.sendto(b"evil", 0x20000000, ("127.0.0.1", PORT))
""",
)
_python(
    "N10",
    "multipath TCP",
    """
line = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
line.connect(("127.0.0.1", PORT))
line.send(b"evil")
""",
    dead={"root": "kernels may come without", "ordinary": "kernels may come without"},
)
_python(
    "N11",
    "a question to a name server",
    """
question = b"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x04evil\\x07example\\x00\\x00\\x01\\x00\\x01"
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(question, ("127.0.0.1", UDP))
""",
)
_python(
    "N12",
    "raw packets",
    """
line = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
line.sendto(struct.pack(">HHHH", 5353, UDP, 12, 0) + b"evil", ("127.0.0.1", 0))
""",
    dead={"ordinary": "only root may"},
)
_python(
    "N13",
    "frames on a network card",
    """
line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
line.bind(("lo", 0))
payload = struct.pack(">HHHH", 5353, UDP, 12, 0) + b"evil"
head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, 17, 0, bytes([127, 0, 0, 1]), bytes([127, 0, 0, 1]))
numbers = struct.unpack(">10H", head)
total = sum(numbers)
total = (total & 0xFFFF) + (total >> 16)
head = head[:10] + struct.pack(">H", ~total & 0xFFFF) + head[12:]
line.send(bytes(12) + b"\\x08\\x00" + head + payload)
time.sleep(0.1)
""",
    dead={"ordinary": "only root may", "root": "machines may drop frames from themselves"},
)
_python(
    "N14",
    "a list of the machine's sockets from the kernel",
    """
line = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4)
request = struct.pack("BBBxI", 2, 6, 0, 1 << 10) + bytes(48)
line.send(struct.pack("IHHII", 16 + len(request), 20, 0x301, 1, 0) + request)
while True:
    answer = line.recv(65536)
    if struct.pack(">H", PORT) + bytes(2) in answer:
        got("the sockets of the machine")
        break
    if struct.unpack_from("H", answer, 4)[0] in (2, 3):
        break
""",
    dead={"root": "kernels may come without", "ordinary": "kernels may come without"},
)
_python(
    "N15",
    "a list of the machine's sockets from /proc",
    """
if f":{PORT:04X} " in open("/proc/net/tcp").read():
    got("the sockets of the machine")
if ABSTRACT in open("/proc/net/unix").read():
    got("the sockets of the machine")
""",
)
_python(
    "N16",
    "a socket to the machine's own host",
    """
socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
got("a socket to the machine's host")
""",
    dead={"root": "kernels may come without", "ordinary": "kernels may come without"},
)
_python(
    "N17",
    "a unix socket by its path",
    """
line = socket.socket(socket.AF_UNIX)
line.connect(SOCKET)
line.send(b"run evil")
""",
)
_python(
    "N18",
    "an abstract unix socket",
    """
line = socket.socket(socket.AF_UNIX)
line.connect("\\0" + ABSTRACT)
line.send(b"run evil")
""",
)
_python(
    "N19",
    "a datagram to an abstract unix socket",
    """
line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
line.sendto(b"run evil", "\\0" + ABSTRACT + "-d")
""",
)
_python(
    "N20",
    "a unix socket by a short way through /proc",
    """
os.chdir("/proc/self/cwd")
for place in (f"/proc/{VICTIM}/root{SOCKET}", f"/proc/{VICTIM}/cwd/../sockets/door.sock", SOCKET):
    try:
        line = socket.socket(socket.AF_UNIX)
        line.connect(place)
        line.send(b"run evil")
    except OSError as error:
        print(error)
""",
)
_bash(
    "N21",
    "git's own protocol",
    "cp /usr/bin/git @SCRATCH@/copied; timeout 3 @SCRATCH@/copied ls-remote git://127.0.0.1:@PORT@/x",
)
_bash("N22", "ssh", "timeout 3 ssh -o BatchMode=yes -o StrictHostKeyChecking=no -p @PORT@ 127.0.0.1 true",
      dead={"ordinary": "ssh wants its user to have a name", "root": "where ssh is not installed"})  # fmt: skip
_bash("N23", "node", "timeout 5 node -e 'require(\"net\").connect(@PORT@, \"127.0.0.1\", function () { this.end(\"evil\") }).on(\"error\", console.log)'",
      dead={"root": "where node is not installed", "ordinary": "where node is not installed"})  # fmt: skip
_bash(
    "N24",
    "perl",
    'perl -MIO::Socket::INET -e \'IO::Socket::INET->new("127.0.0.1:@PORT@")->send("evil")\'',
)
_bash("N25", "sockets of other programs in the usual places",
      "for f in /tmp/tmux-*/default /run/user/*/bus /run/docker.sock /run/dbus/system_bus_socket; do "
      "test -S $f && echo GOT a way to $f; done; curl -s --max-time 2 --unix-socket @SOCKET@ http://x/ -o /dev/null")  # fmt: skip

_PROXY = """
from urllib.parse import urlsplit
proxy = urlsplit(os.environ.get("HTTP_PROXY") or os.environ.get("http_proxy") or "")
def through(request, direct=None):
    where = (proxy.hostname, proxy.port) if proxy.port else ("127.0.0.1", direct or PORT)
    try:
        line = socket.create_connection(where, 3)
        line.settimeout(1)
        line.sendall(request)
        answer = line.recv(4000)
        print(answer[:60])
        return line, answer
    except OSError as error:
        print(error)
        return None, b""
def connect(target):
    line, answer = through(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
    if line is not None and b" 200 " in answer:
        try:
            line.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            line.recv(100)
        except OSError as error:
            print(error)
def get(target, host, more="", direct=None):
    return through(f"GET {target} HTTP/1.1\\r\\nHost: {host}\\r\\n{more}\\r\\n".encode(), direct)
"""


def _proxied(id: str, title: str, text: str) -> None:
    _python(id, title, f"{_PROXY}\n{text.strip()}")


_proxied("N30", "CONNECT to a service that is not listed", 'connect(f"127.0.0.1:{PORT}")')
_proxied("N31", "CONNECT by name", 'connect(f"localhost:{PORT}")')
_proxied(
    "N32", "CONNECT by IPv6", 'connect(f"[::1]:{PORT6}"); connect(f"[::ffff:127.0.0.1]:{PORT}")'
)
_proxied(
    "N33",
    "CONNECT by odd spellings of the address",
    """
for host in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.1", "0", "0.0.0.0", "127.0.0.1.", "LOCALHOST", "localhost.",
             "127.0.0.1%00.example.org", "127.0.0.1%25lo", "[::]", "[0:0:0:0:0:ffff:7f00:1]", "ip6-localhost"):
    connect(f"{host}:{PORT}")
""",
)
_proxied(
    "N34",
    "a plain request for a service that is not listed",
    'get(f"http://127.0.0.1:{PORT}/", f"127.0.0.1:{PORT}")',
)
_proxied(
    "N35",
    "a listed address, another host in the header",
    """
get(f"http://127.0.0.1:{ALLOWED}/", f"127.0.0.1:{PORT}")
get("/", f"127.0.0.1:{PORT}")
get(f"http://127.0.0.1:{ALLOWED}/", f"127.0.0.1:{ALLOWED}", f"Host: 127.0.0.1:{PORT}\\r\\n")
""",
)
_proxied(
    "N36",
    "a second request for another host on one line",
    """
line, _ = get(f"http://127.0.0.1:{ALLOWED}/", f"127.0.0.1:{ALLOWED}", "Connection: keep-alive\\r\\n", ALLOWED)
request = f"GET http://127.0.0.1:{PORT}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{PORT}\\r\\n\\r\\n".encode()
try:
    line.sendall(request)
    line.recv(100)
except (OSError, AttributeError) as error:
    print(error)
through(f"GET http://127.0.0.1:{ALLOWED}/ HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 0\\r\\n\\r\\n".encode() + request)
""",
)
_proxied(
    "N37",
    "a request smuggled by lengths that disagree",
    """
inner = f"GET http://127.0.0.1:{PORT}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{PORT}\\r\\n\\r\\n"
head = f"POST http://127.0.0.1:{ALLOWED}/ HTTP/1.1\\r\\nHost: 127.0.0.1:{ALLOWED}\\r\\nContent-Length: 4\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
through((head + "0\\r\\n\\r\\n" + inner).encode())
through((head.replace("Content-Length: 4\\r\\n", "") + "0\\r\\n\\r\\n" + inner).encode())
""",
)
_bash("N38", "a listed host that sends on to another", "curl -sL --max-time 3 http://127.0.0.1:@ALLOWED@/; wget -q -T 3 -t 1 -O - http://127.0.0.1:@ALLOWED@/; "
      "curl -sL --max-time 3 --noproxy '' -x \"${HTTP_PROXY:-}\" http://127.0.0.1:@ALLOWED@/")  # fmt: skip
_proxied(
    "N39",
    "a listed host as user name, or after a hash",
    """
get(f"http://127.0.0.1:{ALLOWED}@127.0.0.1:{PORT}/", f"127.0.0.1:{ALLOWED}")
get(f"http://127.0.0.1:{PORT}#@127.0.0.1:{ALLOWED}/", f"127.0.0.1:{ALLOWED}")
get(f"http://127.0.0.1:{PORT}\\\\@127.0.0.1:{ALLOWED}/", f"127.0.0.1:{ALLOWED}")
connect(f"127.0.0.1:{ALLOWED}@127.0.0.1:{PORT}")
""",
)
_proxied(
    "N40",
    "line ends inside the target",
    """
connect(f"127.0.0.1:{ALLOWED} HTTP/1.1\\r\\nHost: a\\r\\n\\r\\nCONNECT 127.0.0.1:{PORT}")
connect(f"127.0.0.1:{PORT}\\x00127.0.0.1:{ALLOWED}")
connect(f"127.0.0.1:{ALLOWED}\\t127.0.0.1:{PORT}")
""",
)
_proxied(
    "N41",
    "other schemes and methods",
    """
for method, target in (("GET", f"ftp://127.0.0.1:{PORT}/"), ("GET", f"https://127.0.0.1:{PORT}/"), ("GET", f"HTTP://127.0.0.1:{PORT}"),
                       ("CONNECT", f"http://127.0.0.1:{PORT}"), ("OPTIONS", "*"), ("GET", f"unix:{SOCKET}"), ("TRACE", f"http://127.0.0.1:{PORT}/")):
    through(f"{method} {target} HTTP/1.1\\r\\nHost: 127.0.0.1:{PORT}\\r\\n\\r\\n".encode())
""",
)
_proxied(
    "N42",
    "ports that wrap around, or are none",
    """
for port in (PORT + 65536, f"0{PORT}", f"+{PORT}", f" {PORT}", f"{PORT}:80", f"{ALLOWED},{PORT}", hex(PORT)):
    connect(f"127.0.0.1:{port}")
""",
)
_python(
    "N43",
    "the forwarded port under other addresses, and its neighbours",
    """
for host in ("127.0.0.2", "127.0.0.1", "0.0.0.0"):
    for port in (PORT, MODEL - 1, MODEL + 1, PORT):
        try:
            socket.create_connection((host, port), 0.5).send(b"evil")
        except OSError as error:
            print(error)
""",
)
_python(
    "N44",
    "the model's port at another address",
    """
for host in ("127.0.0.2", "::ffff:127.0.0.2"):
    try:
        socket.create_connection((host, MODEL), 1).send(b"evil")
    except OSError as error:
        print(error)
""",
)
_python(
    "N45",
    "an address that is swapped while it is judged",
    """
import mmap
addresses = [struct.pack(">H", port) + bytes([127, 0, 0, 1]) for port in (MODEL, PORT)]
memory = mmap.mmap(-1, 16)
shared = (ctypes.c_char * 16).from_buffer(memory)
memory[:] = struct.pack("H", 2) + addresses[0] + bytes(8)
stop = time.monotonic() + 1
if not os.fork():  # a thread would swap them only where the interpreter lets it
    while time.monotonic() < stop:
        for address in addresses:
            memory[2:8] = address
    os._exit(0)
while time.monotonic() < stop:
    time.sleep(0.02)  # the queue of a listener is short, and a full one holds up the next for a second
    line = socket.socket()
    if libc.connect(line.fileno(), shared, 16) == 0 and line.getpeername()[1] == PORT:
        line.send(b"evil")
    line.close()
""",
)
