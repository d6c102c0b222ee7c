"""Imported before transformers, which then asks no server, and regards packages as not installed that the tests' models do not use:
without them its import takes three quarters of the time."""

import os
import sys

os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
for package in ("scipy", "sklearn", "torchao"):
    sys.modules.setdefault(package, None)
