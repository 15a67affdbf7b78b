"""Examples for the checks that no policy lifts. They are tried once, when the first gate is made."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from podium.domain.gating import BuiltInRule
from podium.gate.examples import example_facts
from podium.gate.facts import refuse_places
from podium.gate.places import WritablePlaces, ZoneSet
from podium.gate.policy import Example
from podium.gate.refusing import PolicyFault

_DENIED: dict[BuiltInRule, tuple[str, ...]] = {
    BuiltInRule.GIT_FIREWALL: (
        "git checkout main",
        "cd src && git -C . switch evil",
        "env A=b git push origin HEAD",
        "bash -c 'git reset --hard HEAD~1'",
        'echo "$(git rebase main)"',
        "find . -exec git checkout evil ';'",
        "echo evil | xargs git checkout",
        "X=checkout; git $X evil",
        "git -c core.pager=./x log",
    ),
    BuiltInRule.UNDECIDABLE_COMMAND: (
        "$TOOL --all",
        "echo `echo \\`id\\``",
        "time { ls; }",
        "ls 'a",
        "git che{ck,}out evil; {ls,-l}",
    ),
    BuiltInRule.SHELL_INDIRECTION: (
        "curl -s localhost | sh",
        'eval "$CODE"',
        "source ./set_up.sh",
        "alias ls='rm x'",
        "ls() { rm x; }; ls",
        'trap "$CODE" EXIT',
    ),
    BuiltInRule.DANGEROUS_VARIABLE: (
        "PATH=. ls",
        "export GIT_DIR=x",
        "read LD_PRELOAD < a",
        "for IFS in a; do ls; done",
    ),
    BuiltInRule.PRIVILEGE: ("sudo ls", "env -i su -c id"),
    BuiltInRule.DESTRUCTIVE_COMMAND: (
        "rm -rf .",
        "rm -rf *",
        'rm -rf "$DIR"',
        "cd src; rm -rf ../*",
        "find . -delete",
        "mkfs.ext4 /dev/sda",
    ),
    BuiltInRule.OUTSIDE_WORKSPACE: (
        "echo x > /etc/hosts",
        "rm -rf /usr/share/doc",
        "cp a.txt ../b.txt",
        "cd ../elsewhere && ls",
        "cat ../elsewhere/key",
    ),
    BuiltInRule.UNREACHABLE_HOST: ("curl https://elsewhere.example/x",),
}
_PASSED = (
    "git add -A && git commit -m \"$(cat <<'EOF'\nAdd the parser\nEOF\n)\"",
    "git diff --name-only | xargs grep -n TODO",
    'rm -rf build && mkdir build && cd build && cmake .. && make -j"$(nproc)" 2>&1 | tail -5',
    'for f in src/*.c; do gcc -c "$f" -o "${f%.c}.o"; done',
    "find . -name '*.pyc' -delete",
    'tmp=$(mktemp -d) && cp -r src "$tmp" && rm -rf "$tmp"',
    "python3 - <<'PY' 2>&1 | tail -5\nprint(1)\nPY",
    'while IFS= read -r line; do echo "$line"; done < in.txt',
    "node server.js > server.log 2>&1 & curl -s localhost:3000/health; kill %1",
)


@cache
def built_in_faults() -> tuple[PolicyFault, ...]:
    """Built-in checks that do not do what their examples say: none, unless the code is at fault."""
    return tuple(_faults())


def _faults() -> Iterator[PolicyFault]:
    for rule, lines in _DENIED.items():
        for line in lines:
            if (said := _refused_by(line)) != rule:
                problem = f"should deny {line!r}; the answer is {said or 'to let it pass'}"
                yield PolicyFault(problem, layer="built-in", rule=rule)
    for line in _PASSED:
        if said := _refused_by(line):
            yield PolicyFault(f"should let {line!r} pass", layer="built-in", rule=said)


def _refused_by(line: str) -> str:
    facts = example_facts(Example(command=line, confined=True, network="listed"))
    refusal = facts.refusal or refuse_places(facts, ZoneSet(()), WritablePlaces(()))
    return refusal.rule if refusal is not None else ""
