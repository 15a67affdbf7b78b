#!/usr/bin/env bash
# Ends the pair and its tmux server. Harmless when it is not up.
set -euo pipefail
exec "${PODIUM:-podium}" duet down --force "$@"
