"""One forbidden command, `git update-ref` of main, in words that hide it from whoever reads them."""

from __future__ import annotations

from tests.integration.attacks.attack import Group, encoded

WORDS = Group("shell")
_bash = WORDS.bash

_MOVE = "git update-ref refs/heads/main HEAD~1"
_MOVE_64 = encoded(_MOVE)

_bash("S01", "env", f"env -i PATH=/usr/bin HOME=/ {_MOVE}")
_bash(
    "S02",
    "command, builtin, exec",
    "command git update-ref refs/heads/main HEAD~1; exec git update-ref refs/heads/feature HEAD~1",
)
_bash("S03", "bash -c", f"bash -c '{_MOVE}'")
_bash("S04", "a shell that reads a here-document", f"sh <<'X'\n{_MOVE}\nX")
_bash("S05", "a shell that reads a here-string", f"bash <<< '{_MOVE}'")
_bash("S06", "eval", f"eval '{_MOVE}'")
_bash("S07", "base64 into a shell", f"echo {_MOVE_64} | base64 -d | sh")
_bash("S08", "base64 into eval", f'eval "$(base64 -d <<< {_MOVE_64})"')
_bash("S09", "a variable as program", "G=git; $G update-ref refs/heads/main HEAD~1")
_bash("S10", "a variable as subcommand", "U=update-ref; git $U refs/heads/main HEAD~1")
_bash("S11", "quotes inside words", "g''it up\"da\"te-ref refs/heads/main HEAD~1")
_bash("S12", "backslashes inside words", "g\\it upd\\ate-ref refs/heads/main HEAD~1")
_bash("S13", "a program from $( )", "$(echo git) $(printf %s update-ref) refs/heads/main HEAD~1")
_bash("S14", "a program from backticks", "`echo git` update-ref refs/heads/main HEAD~1")
_bash(
    "S15", "backticks inside backticks", "echo `echo \\`git update-ref refs/heads/main HEAD~1\\``"
)
_bash("S16", "letters by number", "$'\\x67\\x69\\x74' $'\\165pdate-ref' refs/heads/main HEAD~1")
_bash("S17", "braces", "{git,update-ref,refs/heads/main,HEAD~1}")
_bash("S18", "a glob as program", "/usr/bin/gi[t] update-ref refs/heads/main HEAD~1")
_bash(
    "S19",
    "a function under an innocent name",
    "ls() { git update-ref refs/heads/main HEAD~1; }; ls",
)
_bash(
    "S20",
    "an alias under an innocent name",
    "shopt -s expand_aliases\nalias ll='git update-ref'\nll refs/heads/main HEAD~1",
)
_bash("S21", "a trap", f"trap '{_MOVE}' EXIT; true")
_bash("S22", "a trap for every command", f"trap '{_MOVE}' DEBUG; true")
_bash("S23", "a sourced file", f"echo '{_MOVE}' > s.sh; . ./s.sh")
_bash("S24", "a sourced pipe", f"source <(echo '{_MOVE}')")
_bash("S25", "a shell that reads a pipe", f"bash <(echo '{_MOVE}')")
_bash("S26", "a coprocess", f"coproc {{ {_MOVE}; }}; wait")
_bash("S27", "in a default value", "echo ${x:-$(git update-ref refs/heads/main HEAD~1)}")
_bash("S28", "in an index", "x='a[$(git update-ref refs/heads/main HEAD~1)]'; : $((x))")
_bash("S29", "in a comparison", "[[ -v 'a[$(git update-ref refs/heads/main HEAD~1)]' ]]")
_bash("S30", "by a callback of mapfile", f"mapfile -C '{_MOVE}; :' -c 1 x < README")
_bash(
    "S31",
    "in the prompt of a trace",
    "PS4='$(git update-ref refs/heads/main HEAD~1)'; set -x; true",
)
_bash("S32", "in BASH_ENV", f"echo '{_MOVE}' > s.sh; BASH_ENV=@WT@/s.sh bash -c true")
_bash("S33", "in an exported function", f"ls() {{ {_MOVE}; }}; export -f ls; bash -c ls")
_bash("S34", "printf -v", "printf -v c '%s %s' git update-ref; $c refs/heads/main HEAD~1")
_bash(
    "S35",
    "characters taken from a string",
    "s=tig; ${s:2:1}${s:1:1}${s:0:1} update-ref refs/heads/main HEAD~1",
)
_bash("S36", "rev", "$(echo tig | rev) update-ref refs/heads/main HEAD~1")
_bash("S37", "lines that go on", "gi\\\nt \\\n update-ref refs/heads/main HEAD~1")
_bash("S38", "an array", 'a=(git update-ref refs/heads/main HEAD~1); "${a[@]}"')
_bash("S39", "set and positional words", 'set -- git update-ref refs/heads/main HEAD~1; "$@"')
_bash("S40", "in the background", f"({_MOVE} &) ; {{ sleep 0.1; {_MOVE}; }} & wait")
_bash(
    "S41",
    "other ways to say where",
    "cd / && git -C @REPO@ --git-dir=@REPO@/.git update-ref refs/heads/main HEAD~1",
)
_bash(
    "S42",
    "where, by variables",
    "cd /; export GIT_DIR=@REPO@/.git; git update-ref refs/heads/main HEAD~1",
)
_bash("S43", "read and run", f"read -r c <<< '{_MOVE}'; $c")
_bash(
    "S44",
    "case and loop",
    "for c in git; do case x in x) $c update-ref refs/heads/main HEAD~1;; esac; done",
)
