"""Verdicts of the shipped policy on commands that an agent might type."""

from __future__ import annotations

import pytest

from podium.core.decisions import Access, Effect, Tier
from tests.unit.gate.gate_harness import (
    command_call,
    context_for,
    gate_of,
    path,
    run,
    spec,
    tool_call,
)

GATE = gate_of(default=True)

ALLOWED = """
git status
git status --short && git diff --stat
git log --oneline -n 5 | head -3
git add -A && git commit -m "Add the parser"
/usr/bin/git log
GIT_PAGER=cat git log
env git status
env CI=1 pytest -q
bash -c 'git status && ls'
bash -lc 'pytest -q'
sh -c "bash -c 'git diff'"
bash -euo pipefail -c 'ls | wc -l'
timeout 60 pytest -x
timeout -k 5 60 make test
nice -n 10 cargo build
time -p go test ./...
nohup npm test
command git status
command -v python3
ls -la src
cat README.md
head -n 20 src/app.py
grep -rn "/api/users" src
rg TODO
find . -name '*.py' -type f
cd src && ls && cd parser && ls
wc -l a.py b.py | sort -n | uniq -c
sed -n 10,20p src/app.py
test -f pyproject.toml && echo yes
diff a.txt b.txt
diff /dev/null a.txt
pwd
mkdir -p src/parser
touch notes.txt
mv a.py b.py
cp a.py src/
cp -r templates site
echo hello | tee notes.txt
chmod +x run.sh
pytest
pytest -q tests/test_app.py::test_one -k 'a or b'
python -m pytest -x
python3 -m unittest discover
.venv/bin/pytest
uv run pytest -q
ruff check . && ruff format .
mypy src
make test
make lint
npm test
npm run lint -- --fix
tsc --noEmit
cargo test --workspace
go test ./...
./gradlew test
""".strip().splitlines()

ASKED = """
rm notes.txt
rmdir empty
truncate -s 0 a.log
dd if=a of=b
pip install requests
.venv/bin/pip install requests
python -m pip install requests
npm ci
yarn
uvx ruff
npx create-app
cargo install ripgrep
brew install jq
curl https://example.com
wget https://example.com
ssh host uptime
gh pr create
docker run alpine
psql -c 'select 1'
git restore src/app.py
git -C src diff HEAD~1
git commit --no-verify -m x
cat /etc/passwd
ls ..
cat ../other/secret.txt
cat .env
cp .env copy.env
tee .github/workflows/ci.yml
touch podium.yaml
ln -s /etc etc
python script.py
python -c 'import os; os.system("git checkout evil")'
node -e 'require("child_process")'
perl -e 'system "git checkout evil"'
awk 'BEGIN { system("git checkout evil") }'
sed -i s/a/b/ a.py
sed -n '1e git checkout evil' a.py
sed -n 1,5p -e '1e id' a.py
sed '1w out' a.py
./deploy.sh
bash deploy.sh
cp /usr/bin/git mygit
./mygit checkout evil
make deploy
make test SHELL=./evil
make -f evil.mk test
make --eval='x:;git checkout evil' test
go test -exec ./evil ./...
go vet -vettool=./evil
go build -toolexec=./evil
pytest --basetemp=src
mypy --python-executable ./evil src
mypy --python-exec ./evil src
pylint --init-hook='import os' a.py
cargo test --config 'build.rustc="./evil"'
npm test --script-shell=./evil
npm run deploy
node --test --import=./evil.js
rg --pre ./evil TODO
sort -o a b
sort -uo a b
sort --compress-program=./evil a
uniq a b
printf -v x y
tree -o a
FOO=1 git status
env FOO=1 git status
export FOO=1
kill -9 1
./env git status
tar --to-command='git checkout evil' -xf a.tar
rsync -e 'git checkout evil' a b:
ed a.txt
vim -c '!git checkout evil'
""".strip().splitlines()

DENIED = """
git checkout main
git checkout -b evil
git switch main
git push
git push origin HEAD
git reset --hard HEAD~1
git branch -D main
git -C .. status
git -C /etc status
git -c core.pager=evil log
git -c alias.st=checkout st evil
git --git-dir=../other/.git log
git --exec-path=. status
git diff --output=/etc/x
git diff --no-index /etc/passwd a
git grep -Oevil x
/usr/bin/git checkout main
/usr/local/bin/git switch main
/usr/lib/git-core/git-checkout main
git-checkout main
./git-like status
./bash -c 'git status'
cd src && cd .. && ls
./git status
../bin/git status
GIT checkout main
g'i't che"ck"out main
\\git checkout main
env git checkout evil
env -i git checkout evil
env -u HOME git checkout evil
env -S 'git checkout evil'
env --split-string='git checkout evil'
env -C .. git status
env -u PATH ls
env --unset=GIT_DIR git status
/usr/bin/env git checkout evil
FOO=1 git checkout evil
GIT_DIR=../other/.git git status
GIT_SSH_COMMAND=evil git log
GIT_EXTERNAL_DIFF=evil git diff
GIT_CONFIG_COUNT=1 git status
PATH=/evil git status
LD_PRELOAD=./evil.so ls
BASH_ENV=./evil bash -c ls
IFS=x ls
PAGER=evil git log
PYTHONPATH=/evil pytest
NODE_OPTIONS=--require=./evil npm test
HOME=/evil git status
PYTEST_ADDOPTS=-pevil pytest
export PATH=/evil
export GIT_DIR=x && git status
declare -x LD_PRELOAD=x
PATH=/evil; git status
bash -c 'git checkout evil'
bash -c git checkout evil
bash -lc "git checkout evil"
bash -c 'cd .. && git status'
sh -c 'sh -c "git checkout evil"'
bash -c 'git $1' x checkout
bash -o pipefail -c 'git checkout evil'
bash --norc -c 'git checkout evil'
bash -ic 'git status'
bash --rcfile evil -i
bash
bash -s
bash /dev/stdin
echo 'git checkout evil' | sh
zsh -c 'git status'
fish -c 'git checkout evil'
sudo git status
sudo -u root ls
su -c 'git checkout evil'
doas ls
eval git checkout evil
eval 'git checkout evil'
source evil.sh
. ./evil.sh
exec git checkout evil
command git checkout evil
builtin eval git checkout evil
nohup git checkout evil
time git checkout evil
timeout 5 git checkout evil
timeout --signal=KILL 5 git checkout evil
timeout --odd 5 git status
nice git checkout evil
nice -n 5 git checkout evil
stdbuf -oL git checkout evil
ionice -c 2 git checkout evil
setsid git checkout evil
xargs git checkout
echo evil | xargs git checkout
find . -exec git checkout evil ';'
find . -execdir git checkout evil ';'
find . -name x -ok rm a ';'
find . -delete
find . -fprint /etc/x
parallel git checkout ::: evil
watch git checkout evil
busybox sh -c 'git checkout evil'
script -c 'git checkout evil'
tmux send-keys 'git checkout evil' Enter
strace git checkout evil
crontab evil
at now
/lib64/ld-linux-x86-64.so.2 /usr/bin/git checkout evil
alias ls='git checkout evil'
trap 'git checkout evil' EXIT
hash -p ./evil git
enable -f ./evil.so evil
set -a
unset PATH
git status; git checkout evil
git status && git push
git log | git apply
git status & git push
git status || rm -rf /
git $CMD
git $(echo checkout) evil
`echo git` checkout evil
git che{ck,}out evil
$'git' checkout evil
git checkout evil # harmless
(git checkout evil)
{ git checkout evil; }
! git checkout evil
if true; then git checkout evil; fi
git status > .git/HEAD
cat <(git checkout evil)
git\tcheckout\tevil
uv run git checkout evil
poetry run git checkout evil
rm -rf /
rm -rf build
rm -r -f src
rm -fr .
rm --recursive src
rm --rec src
rm ../x
rm /etc/passwd
rm -- -rf ../x
/bin/rm -rf src
bash -c 'rm -rf /'
cd / && rm x
cd ..
cd
cd -
pushd /
chmod -R 777 .
chmod --recursive 777 .
chown -R eve .
chmod 777 /etc/passwd
shred a.txt
dd if=/dev/zero of=/dev/sda
mkfs.ext4 /dev/sda
truncate -s 0 ../x
tee /etc/passwd
cp a.txt /etc/x
cp -t /etc a.txt
cp --target-directory=/etc a.txt
mv a.txt ..
mv .git elsewhere
touch .git/hooks/pre-commit
cp evil .git/hooks/pre-commit
tee -a .git/config
cat .podium/podium.db
cd src && cat ../.podium/key
ls .PODIUM
shutdown now
ls *.py
cat ~/.ssh/id_rsa
""".strip().splitlines()


@pytest.mark.parametrize("line", ALLOWED)
def test_everyday_work_is_allowed(line: str) -> None:
    decision = run(GATE, line)

    assert decision.effect is Effect.ALLOW, decision
    assert decision.tier <= Tier.T1


@pytest.mark.parametrize("line", ASKED)
def test_what_a_person_should_see_is_asked(line: str) -> None:
    assert run(GATE, line).effect is Effect.ASK, run(GATE, line)


@pytest.mark.parametrize("line", [line.replace("\\t", "\t") for line in DENIED])
def test_what_must_not_happen_is_denied(line: str) -> None:
    decision = run(GATE, line)

    assert decision.effect is Effect.DENY, decision


@pytest.mark.parametrize("line", [*ALLOWED, *ASKED, *DENIED])
def test_every_decision_names_its_rule_its_reason_and_its_tier(line: str) -> None:
    decision = run(GATE, line)

    assert decision.rule
    assert decision.reason
    assert decision.tier == max(term.tier for term in decision.arithmetic)
    assert all(term.because for term in decision.arithmetic)


def test_a_tool_that_no_rule_names_is_denied() -> None:
    decision = GATE.decide(tool_call("send_mail"), context_for(spec("send_mail")))

    assert (decision.effect, decision.rule) == (Effect.DENY, "no-rule")


def test_the_built_in_tools_do_their_everyday_work() -> None:
    reading = tool_call("read_file", paths=(path("src/app.py"),))
    writing = tool_call("write_file", paths=(path("src/app.py", Access.WRITE),))

    assert GATE.decide(reading, context_for(spec("read_file"))).effect is Effect.ALLOW
    assert GATE.decide(writing, context_for(spec("write_file", Tier.T1))).effect is Effect.ALLOW


def test_an_argument_list_is_judged_like_the_same_words_on_a_line() -> None:
    call = tool_call("run_command", commands=(("bash", "-c", "git checkout evil"),))
    literal = tool_call("run_command", commands=(("grep", "$HOME", "a.txt"),))

    assert GATE.decide(call, context_for()).rule == "git-firewall"
    assert GATE.decide(literal, context_for()).effect is Effect.ALLOW


def test_variables_given_as_an_argument_are_judged_too() -> None:
    call = tool_call(
        "run_command", commands=(("git", "status"),), arguments={"env": {"GIT_DIR": "x"}}
    )

    assert GATE.decide(call, context_for()).rule == "dangerous-variable"


def test_commands_are_judged_from_the_folder_they_run_in() -> None:
    gate = gate_of(default=True, user="zones: {forbidden: [conf/key]}")
    inside = command_call("cat key", paths=(path("conf", argument="cwd"),))
    outside = command_call("git status", paths=(path("/elsewhere", argument="cwd"),))

    assert run(gate, "cat key").effect is Effect.ALLOW
    assert gate.decide(inside, context_for()).rule == "forbidden-zone:forbidden"
    assert gate.decide(outside, context_for()).rule == "git-firewall"


def test_a_word_that_begins_with_a_tilde_is_somebodys_home() -> None:
    call = tool_call("run_command", commands=(("cat", "~/notes"),))

    assert GATE.decide(call, context_for()).rule == "tier:T2"


def test_a_command_tool_without_a_readable_command_is_denied() -> None:
    for commands in ((), ((),), (("",),)):
        call = tool_call("run_command", commands=commands)
        assert GATE.decide(call, context_for()).rule == "undecidable-command"


def test_an_undecidable_command_is_denied_with_advice() -> None:
    decision = run(GATE, "echo $HOME")

    assert decision.rule == "undecidable-command"
    assert "split it into plain commands" in decision.reason
    assert decision.tier is Tier.T4
