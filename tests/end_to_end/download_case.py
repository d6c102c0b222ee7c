"""Shared by the tests of titan download: a repo, a server for it, and running the program."""

import os
import random
import subprocess

from harness import HANG, TITAN, Case, environment
from hub_server import Hub, Repo

TOKEN = "hf_" + "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=30))
NAME = "acme/tiny-llama"
WEIGHTS = "model-00001-of-00002.safetensors"
QUICK = ["--retry-wait", "0.02"]


def noise(size, seed=0):
    return random.Random(seed).randbytes(size)


def model_files():
    return {
        "config.json": b'{"model_type": "llama"}\n', "generation_config.json": b"{}", "README.md": b"# tiny\n",
        "tokenizer.json": noise(70_000, 1), "tokenizer_config.json": b'{"bos_token": "<s>"}', "vocab.json": b"{}",
        "merges.txt": b"", "special_tokens_map.json": b"{}", "added_tokens.json": b"{}", "tokenizer.model": noise(9_000, 2),
        "original/tokenizer.model": noise(8_000, 3), "original/consolidated.00.pth": noise(5_000, 4),
        WEIGHTS: noise(3_000_000, 5), "model-00002-of-00002.safetensors": noise(2_000_001, 6),
        "model.safetensors.index.json": b'{"weight_map": {}}', "onnx/a b#c%d?e\u00e9.json": b"odd name",
    }


def model(**options):
    files = model_files()
    return Repo(files, [p for p in files if p.endswith((".safetensors", ".pth", ".model"))], **options)


def env_of(**changes):
    """Without the proxy, token and home of the user who runs the test."""
    env = {k: v for k, v in environment().items() if not k.lower().endswith("_proxy") and not k.startswith("HF_")}
    env.update({"HOME": "/nonexistent", **changes})
    for name in ("CURL_CA_BUNDLE", "SSL_CERT_FILE", "XDG_CACHE_HOME"):
        if name not in changes:
            env.pop(name, None)
    return env
TOKENIZER_FILES = ["tokenizer.json", "tokenizer_config.json", "vocab.json", "merges.txt", "special_tokens_map.json",
             "added_tokens.json", "tokenizer.model", "original/tokenizer.model"]
MODEL_FILES = [*TOKENIZER_FILES, "config.json", "generation_config.json", WEIGHTS, "model-00002-of-00002.safetensors",
         "model.safetensors.index.json"]


class DownloadCase(Case):
    def start_hub(self, repos=None, **options):
        hub = Hub(repos if repos is not None else {NAME: model()}, **options)
        hub.__enter__()
        self.addCleanup(hub.__exit__)
        self.hub = hub
        return hub

    def command(self, *words, kind="model", name=NAME, base=None):
        return [TITAN, "download", kind, name, "--base-url", base or self.hub.url, *map(str, words)]

    def download(self, *words, code=0, kind="model", name=NAME, output=None, base=None, env=None, **popen):
        words = [*words, "--output", output or self.out, *([] if "--retry-wait" in words else QUICK)]
        run = subprocess.run(self.command(*words, kind=kind, name=name, base=base), env=env_of(**(env or {})), timeout=HANG,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.folder, **popen)
        self.hub.settle()
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        self.assertNotIn(TOKEN, run.stdout + run.stderr)
        self.assertNotIn("signature=secret", run.stdout + run.stderr)
        return run

    def files(self, folder=None):
        folder = folder or self.out
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    def assert_files(self, names, folder=None):
        wanted = {name: self.hub.repos[NAME].files[name] for name in names}
        found = self.files(folder)
        self.assertEqual(sorted(found), sorted(wanted))
        self.assertEqual(found, wanted)

    def assert_store_saw_no_token(self):
        for seen in self.hub.seen:
            if seen.host == "store":
                self.assertNotIn("authorization", {name.lower() for name in seen.headers}, seen.path)

    def only_weights(self, *words, **options):
        return self.download("--include", WEIGHTS, *words, **options)
