"""Objects: the user's own harmed, or bad ones brought into his branch."""

from __future__ import annotations

from tests.integration.attacks.attack import Group

OBJECTS = Group("git")
_bash, _python = OBJECTS.bash, OBJECTS.python

CRAFTING = """
# A copy: rules for programs know git by its file, and what they do not know must be held all the same.
shutil.copy("/usr/bin/git", f"{SCRATCH}/copied")
def git(*words, data=None):
    done = subprocess.run([f"{SCRATCH}/copied", *words], input=data, capture_output=True)
    if done.returncode:
        print(words, done.stderr.decode())
    return done.stdout.strip().decode()
def tree(*entries):
    raw = b"".join(mode + b" " + name + b"\\0" + bytes.fromhex(hash) for mode, name, hash in entries)
    return git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", data=raw)
def commit(tree, *more):
    made = git("commit-tree", "-p", "HEAD", *more, "-m", "crafted", tree)
    git("update-ref", "HEAD", made)
    for folder in (f"{REPO}/.git", f"{PRIVATE}/git"):
        try:
            with open(f"{folder}/@BRANCH@", "w") as file:
                file.write(made + "\\n")
        except OSError as error:
            print(error)
def entries(of="HEAD^{tree}"):
    rows = [row.split(None, 3) for row in git("ls-tree", of).splitlines()]
    return [(mode.lstrip("0").encode(), name.encode(), hash) for mode, _, hash, name in rows]
def added(mode, name, hash):
    whole = [*entries(), (mode, name, hash)]
    return tree(*sorted(whole, key=lambda entry: entry[1] + (b"/" if entry[0] == b"40000" else b"")))
blob = git("hash-object", "-w", "--stdin", data=b"planted\\n")
config = git("hash-object", "-w", "--stdin", data=b"[core]\\n\\tfsmonitor = touch @MARKS@/fsmonitor\\n")
"""

_bash("G70", "gc that loses the user's dangling work",
      "git reflog expire --expire=now --all; git gc -q --prune=now")  # fmt: skip
_bash("G71", "the user's objects deleted", "rm -rf @REPO@/.git/objects/?? @REPO@/.git/objects/pack")
_python(
    "G72",
    "an object overwritten in place, wherever it can be seen",
    """
for folder in (f"{REPO}/.git/objects", f"{REPO}/.git/base-objects"):
    for path in glob.glob(f"{folder}/[0-9a-f][0-9a-f]/*")[:3] + glob.glob(f"{folder}/pack/*.pack"):
        try:
            os.chmod(path, 0o644)
            open(path, "r+b").write(b"broken")
        except OSError as error:
            print(path, error)
""",
)
_bash(
    "G73",
    "the user's objects borrowed from elsewhere",
    "mkdir -p @REPO@/.git/objects/info; echo @WT@/objects > @REPO@/.git/objects/info/alternates",
)
_bash("G74", "a commit graph of lies",
      "git -C @REPO@ commit-graph write --reachable; printf junk >> @REPO@/.git/objects/info/commit-graph")  # fmt: skip
_bash("G75", "shallow and grafts",
      "git rev-parse HEAD~1 > @REPO@/.git/shallow; mkdir -p @REPO@/.git/info; "
      "git rev-parse HEAD > @REPO@/.git/info/grafts")  # fmt: skip
_bash(
    "G76",
    "objects planted in the user's store",
    "echo planted | git -C @REPO@ hash-object -w --stdin",
)
_bash("G77", "the user's store repacked", "git -C @REPO@ repack -qadf")
_python(
    "G78",
    "a forbidden path committed by plumbing",
    CRAFTING
    + """
prod = [(b"100644", b"key", blob)]
whole = [entry for entry in entries() if entry[1] != b"conf"]
conf = tree((b"40000", b"prod", tree(*prod)))
commit(tree(*sorted([*whole, (b"40000", b"conf", conf)], key=lambda entry: entry[1])))
""",
)
_python(
    "G79",
    "a forbidden path that is not there yet, committed by plumbing",
    CRAFTING
    + """
keys = tree((b"100644", b"id", blob))
commit(added(b"40000", b"deploy", tree((b"40000", b"keys", keys))))
""",
)
_python(
    "G80",
    "a forbidden path in a commit that the next one takes back",
    CRAFTING
    + """
clean = git("rev-parse", "HEAD^{tree}")
commit(added(b"40000", b"deploy", tree((b"40000", b"keys", tree((b"100644", b"id", blob))))))
commit(clean)
""",
)
_python(
    "G81",
    "a tree with .git in it",
    CRAFTING
    + """
commit(added(b"40000", b".git", tree((b"100644", b"config", config))))
""",
)
_python(
    "G82",
    "the same as .GIT, for file systems that do not mind",
    CRAFTING
    + """
commit(added(b"40000", b".GIT", tree((b"100644", b"config", config))))
""",
)
_python(
    "G83",
    "the same under its short name on Windows",
    CRAFTING
    + """
commit(added(b"40000", b"git~1", tree((b"100644", b"config", config))))
""",
)
_python(
    "G84",
    "the same with a letter that HFS+ ignores",
    CRAFTING
    + """
commit(added(b"40000", ".g\\u200cit".encode(), tree((b"100644", b"config", config))))
""",
)
_python(
    "G85",
    "a tree with .. in it",
    CRAFTING
    + """
commit(added(b"40000", b"..", tree((b"100644", b"evil", blob))))
""",
)
_python(
    "G86",
    "a name with slashes that leads out",
    CRAFTING
    + """
commit(added(b"100644", b"../../../outside/evil", blob))
""",
)
_python(
    "G87",
    "a tree with a name twice",
    CRAFTING
    + """
commit(tree(*sorted([*entries(), (b"100644", b"src", blob)], key=lambda entry: entry[1])))
""",
)
_python(
    "G88",
    "a link that leads out, committed",
    CRAFTING
    + """
commit(added(b"120000", b"way-out", git("hash-object", "-w", "--stdin", data=OUT.encode())))
""",
)
_python(
    "G89",
    "a link with dots that leads out, committed",
    CRAFTING
    + """
commit(added(b"120000", b"way-out", git("hash-object", "-w", "--stdin", data=b"src/../../../outside")))
""",
)
_python(
    "G90",
    "a link to .git, committed",
    CRAFTING
    + """
commit(added(b"120000", b"a-link", git("hash-object", "-w", "--stdin", data=b".git/../../../..")))
""",
)
_python(
    "G91",
    "a commit with a broken head",
    CRAFTING
    + """
git("commit", "-q", "--allow-empty", "-m", "so that the ref is there")
raw = f"tree {git('rev-parse', 'HEAD^{tree}')}\\nparent {git('rev-parse', 'HEAD')}\\nauthor broken\\n\\nx\\n".encode()
made = git("hash-object", "-t", "commit", "-w", "--literally", "--stdin", data=raw)
for folder in (f"{REPO}/.git", f"{PRIVATE}/git"):
    try:
        open(f"{folder}/@BRANCH@", "w").write(made + "\\n")
    except OSError as error:
        print(error)
""",
)
_bash("G92", "a submodule whose update runs a program",
      "printf '[submodule \"x\"]\\n\\tpath = x\\n\\turl = -u./x\\n\\tupdate = !touch @MARKS@/submodule\\n' > .gitmodules; "
      "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),x; git add .gitmodules; git commit -qm module")  # fmt: skip
_python(
    "G93",
    "the own branch's ref replaced by a link to a file of the user",
    """
for folder in (f"{REPO}/.git", f"{PRIVATE}/git"):
    path = f"{folder}/@BRANCH@"
    try:
        if os.path.lexists(path):
            os.unlink(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink("refs/heads/main", path)
    except OSError as error:
        print(error)
subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "through the link"])
""",
)
_python(
    "G94",
    "the own branch's ref replaced by a pipe, to hang who reads it",
    """
for folder in (f"{REPO}/.git", f"{PRIVATE}/git"):
    path = f"{folder}/@BRANCH@"
    try:
        if os.path.lexists(path):
            os.unlink(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.mkfifo(path)
    except OSError as error:
        print(error)
open(f"{REPO}/.git/HEAD", "a").write(" ")
""",
)
_python(
    "G95",
    "the own objects replaced by a link to the user's",
    """
for folder in (f"{REPO}/.git", f"{PRIVATE}/git"):
    try:
        os.rename(f"{folder}/objects", f"{folder}/objects-away")
        os.symlink(f"{REPO}/.git/base-objects", f"{folder}/objects")
    except OSError as error:
        print(error)
subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "where does it go"])
""",
    """
subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "again"])
""",
)
_python(
    "G96",
    "lies of the own git directory about where a commit comes from",
    CRAFTING
    + """
rootless = git("commit-tree", "-m", "rootless", "HEAD^{tree}")
base = git("rev-parse", "HEAD")
honest = git("commit-tree", "-p", base, "-m", "rootless", "HEAD^{tree}")
git("replace", "-f", rootless, honest)
for folder in (f"{REPO}/.git", f"{PRIVATE}/git"):
    try:
        os.makedirs(f"{folder}/info", exist_ok=True)
        open(f"{folder}/info/grafts", "w").write(f"{rootless} {base}\\n")
        open(f"{folder}/shallow", "w").write(f"{rootless}\\n")
        os.makedirs(os.path.dirname(f"{folder}/@BRANCH@"), exist_ok=True)
        open(f"{folder}/@BRANCH@", "w").write(f"{rootless}\\n")
    except OSError as error:
        print(error)
""",
)
