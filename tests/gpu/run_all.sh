#!/bin/sh
# Checks Titan on a machine with a GPU; see tests/gpu/run_all.py --help.
exec python3 "$(dirname "$0")/run_all.py" "$@"
