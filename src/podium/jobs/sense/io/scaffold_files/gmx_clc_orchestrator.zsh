#!/usr/bin/env zsh
# Runs one tick of the sense loop on the root that contains this file. For more options see
# `podium sense --help`. Works with zsh, bash and any POSIX sh.
set -eu

self=$0
hops=0
while [ -L "$self" ] && [ "$hops" -lt 40 ]; do
    target=$(readlink "$self")
    case $target in
        /*) self=$target ;;
        *) self=$(dirname "$self")/$target ;;
    esac
    hops=$((hops + 1))
done
unset CDPATH
root=$(cd -P "$(dirname "$self")/../.." && pwd -P)

if [ -n "${PODIUM:-}" ]; then
    program=$PODIUM
elif [ -x "$root/.venv/bin/podium" ]; then
    program=$root/.venv/bin/podium
else
    program=$(command -v podium || true)
fi
if [ -z "$program" ] || ! command -v "$program" >/dev/null 2>&1; then
    echo "gmx_clc_orchestrator: podium not found${program:+ at '$program'}; install it in $root/.venv or on PATH," \
        "or set PODIUM to its path" >&2
    exit 127
fi
exec "$program" sense --once --root "$root" "$@"
