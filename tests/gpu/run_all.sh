#!/bin/sh
# Everything that Titan wants to know of a machine with one GPU or eight: see tests/gpu/run_all.py --help.
exec python3 "$(dirname "$0")/run_all.py" "$@"
