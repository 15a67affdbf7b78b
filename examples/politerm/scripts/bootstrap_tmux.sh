#!/usr/bin/env bash
# Brings the pair up: session, panes, programs, primers. Variables as in config/poli.env; PODIUM names the program.
# Whoever runs this grants both programs the folders they are to work in.
set -euo pipefail
exec "${PODIUM:-podium}" duet up --grant "$@"
