#!/usr/bin/env bash
# One whole loop: up, a task, `DONE: True`, down.
set -euo pipefail
here="$(cd "$(dirname "$0")/.." && pwd)"
trap '"$here/scripts/kill_tmux.sh"' EXIT
"$here/scripts/bootstrap_tmux.sh"
said="$(python3 "$here/proto/poli_orchestrator.py" "$@")"
printf '%s\n' "$said"
[ "$(printf '%s\n' "$said" | tail -n 1)" = "DONE: True" ]
