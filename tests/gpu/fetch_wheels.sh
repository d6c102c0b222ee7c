#!/bin/sh
# Fetches the wheels that tests/gpu/torchtitan_side.py needs on a machine without a network:
# torchtitan v0.2.2, torchao and their imports.
#
#   tests/gpu/fetch_wheels.sh DIR
#
# Wheels for Python 3.12 on Linux x86_64, without dependencies. The machine has PyTorch 2.11,
# transformers, tensorboard, einops, tokenizers, pillow, fsspec, numpy, pyarrow, pandas, requests,
# tqdm, pyyaml, huggingface_hub, safetensors and xxhash. Fails if the wheels take more than 12 MB.
# PYTHON names the Python whose pip fetches.
set -eu

[ $# -eq 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
mkdir -p "$1"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
  --implementation cp --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
  --dest "$1" torchtitan==0.2.2 torchdata==0.11.0 torchao==0.18.0 datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19 \
  tyro==1.0.17 docstring-parser==0.18.0 shtab==1.13.0 typeguard==4.6.1 tomli==2.5.0
bytes=$(cat "$1"/*.whl | wc -c)
set -- "$1" "$1"/*.whl
echo "$(($# - 1)) wheels, $bytes bytes, in $1"
[ "$bytes" -le 12000000 ] || { echo "more than the 12,000,000 bytes that a bundle has room for" >&2; exit 1; }
