#!/bin/sh
# Makes the folder that is carried to a machine with a GPU and without a build tree: see tools/gpu_bundle.py --help.
exec python3 "$(dirname "$0")/gpu_bundle.py" "$@"
