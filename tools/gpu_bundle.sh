#!/bin/sh
# Makes a folder to copy to a machine that has a GPU but no build tree: see tools/gpu_bundle.py --help.
exec python3 "$(dirname "$0")/gpu_bundle.py" "$@"
