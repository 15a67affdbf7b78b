"""Makes scripts that start `git checkout evil` in some roundabout way, and sees in a real shell whether they do."""

from __future__ import annotations

import random
import shlex
import subprocess
from pathlib import Path

_NOISE = [
    "echo '('",
    'echo ")" "a # b"',
    "echo a\\'b",
    ": 'it''s'",
    "x=1 y='2 3'",
    "echo {a,b} [x] *",
    "# a comment ' with a quote",
    "echo \\# no comment",
    "echo a#b",
    "cat <<'N' >/dev/null\n$(no) `no` '\nN",
    "cat <<-N >/dev/null\n\tplain text\n\tN",
    "echo $((1 << 2)) $((3 > 2))",
    "[ 1 -lt 2 ] && echo y",
    "[[ a == a* ]]",
    "case a in (a) : ;; esac",
    "for i in 1 2; do :; done",
    'echo "$(echo \'"\')"',
    "echo $'a\\'b'",
    "true & wait",
    "echo ${x:-'}'}",
    'echo "a\nb"',
    "if false; then :; fi 2>/dev/null",
    "f1() { :; }; f1",
    "arr=(1 '2 )' 3)",
    "printf '%s' \"${#x}\" ${x%\\}*}",
]


def script(chance: random.Random, command: str = "") -> str:
    """One script, with wrappings within wrappings and lines that mean nothing around it.

    `command` stands for another one in the middle of it.
    """
    text = command or _spelled(chance)
    for _ in range(chance.randint(0, 4)):
        text = _wrapped(text, chance)
    lines = [chance.choice(_NOISE) for _ in range(chance.randint(0, 2))]
    after = [chance.choice(_NOISE) for _ in range(chance.randint(0, 1))]
    return "\n".join([*lines, text, *after])


def _spelled(chance: random.Random) -> str:
    words = [_mangled(word, chance) for word in ("git", "checkout", "evil")]
    blanks = [" ", "  ", "\t", " \\\n", " '' "[:1]]
    return words[0] + chance.choice(blanks) + words[1] + chance.choice(blanks) + words[2]


def _mangled(word: str, chance: random.Random) -> str:
    at = chance.randint(1, len(word) - 1)
    head, tail = word[:at], word[at:]
    return chance.choice(
        [
            word,
            word,
            f"{head}''{tail}",
            f'{head}""{tail}',
            f"{head}\\{tail}",
            f"'{head}'{tail}",
            f'{head}"{tail}"',
            f"{head}\\\n{tail}",
            f"$'{word}'",
            f"{head}$(echo {tail})",
            f"{head}$x0{tail}",
            f"${{x0:-{word}}}",
        ]
    )


def _wrapped(text: str, chance: random.Random) -> str:
    quoted = shlex.quote(text)
    forms = [
        f"( {text}\n)",
        f"{{ {text}\n}}",
        f"if true; then {text}\nfi",
        f"if {text}\nthen :; fi",
        f"if false; then :; else {text}\nfi",
        f"while {text}\nbreak; do :; done",
        f"for i in 1; do {text}\ndone",
        f"for i in $({text}\n); do :; done",
        f"case x in x) {text}\n;; esac",
        f"case $({text}\n) in *) ;; esac",
        f"echo $({text}\n)",
        f'echo "a $({text}\n) b"',
        f"x=$({text}\n)",
        f'export y="$({text}\n)"',
        f"a=(1 $({text}\n))",
        f"echo ${{nope:-$({text}\n)}}",
        f'echo "${{nope:-$({text}\n)}}"',
        f"[[ -n $({text}\n) ]]",
        f'[ -n "$({text}\n)" ]',
        f"echo $(( $({text}\n) + 1 ))",
        f"cat <({text}\n)",
        f"cat < <({text}\n)",
        f"cat <<W\n$({text}\n)\nW",
        f"bash <<'W'\n{text}\nW",
        f"bash -c {quoted}",
        f"sh -c {quoted}" if "$'" not in text and "<(" not in text else f"bash -c {quoted}",
        f"eval {quoted}",
        f"bash <<< {quoted}",
        f"trap {quoted} EXIT",
        f"fun() {{ {text}\n}}; fun",
        f"fun() ( {text}\n); fun",
        f"true && {text}",
        f"false || {text}",
        f"echo x | {text}",
        f"! {text}",
        f"echo a; {text}",
        f"echo a & {text}",
        f"{text} &\nwait",
    ]
    if "`" not in text and "\\" not in text and "'" not in text:
        forms += [f"echo `{text}`", f'echo "`{text}`"']
    if "\n" not in text and text.startswith(("g", "'g", '"g')):
        forms += [
            f"{before} {text}"
            for before in (
                "env", "env A=b", "nohup", "nice", "timeout 5", "time", "command", "exec", "A=b",
                "stdbuf -oL", "setsid -w", "coproc", "find . -maxdepth 0 -exec", "echo evil | xargs",
            )
        ]  # fmt: skip
        forms.append(f"find . -maxdepth 0 -exec {text} \\;")
    return chance.choice(forms)


class Shell:
    """Runs scripts where `git` is a program that notes how it was called."""

    def __init__(self, folder: Path) -> None:
        self._called = folder / "called"
        self._work = folder / "work"
        self._work.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        (programs / "git").write_text(f'#!/bin/sh\necho "$@" >> {self._called}\necho 1\n')
        (programs / "git").chmod(0o755)
        self._env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(self._work)}

    def calls_git(self, text: str) -> bool:
        """Return whether the script really started `git checkout …`."""
        self._called.unlink(missing_ok=True)
        process = subprocess.Popen(
            ["bash", "-c", text],
            cwd=self._work,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        return self._called.exists() and "checkout" in self._called.read_text()
