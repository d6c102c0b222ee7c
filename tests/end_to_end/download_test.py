"""titan download with a server that implements the hub's protocol: files, credentials and output; the hub's own
client checks the server, and both must download the same files."""

import json
import os
import pathlib
import pty
import re
import subprocess
import sys

from download_case import MODEL_FILES, NAME, TOKEN, TOKENIZER_FILES, WEIGHTS, DownloadCase, env_of, model, model_files, noise
from harness import HANG, TITAN, main
from hub_server import Fault, Repo


class Choice(DownloadCase):
    def test_a_tokenizer_is_found_in_whatever_folder(self):
        self.start_hub()
        self.download(kind="tokenizer")
        self.assert_files(TOKENIZER_FILES)

    def test_a_model_is_weights_configuration_and_tokenizer(self):
        self.start_hub(page=3)
        self.download()
        self.assert_files(MODEL_FILES)
        pages = [s for s in self.hub.seen if "/tree/" in s.path]
        self.assertGreaterEqual(len(pages), 6)

    def test_a_dataset_is_everything_and_has_urls_of_its_own(self):
        files = {f"en/c4-train.{i:05d}-of-01024.json.gz": noise(2000 + i, i) for i in range(12)} | {"README.md": b"c4"}
        self.start_hub({NAME: Repo(files, [p for p in files if p.endswith(".gz")], kind="dataset")}, page=4)
        self.download(kind="dataset", output=self.folder / "all")
        self.assert_files(files, self.folder / "all")
        self.download("--include", "en/c4-train.0000*-of-01024.json.gz", "--exclude", "*3-of-*", kind="dataset")
        self.assert_files([f"en/c4-train.{i:05d}-of-01024.json.gz" for i in range(10) if i != 3])
        self.assert_holds(self.download(kind="model", code=1).stderr, f"there is no model '{NAME}'")

    def test_names_that_a_url_must_encode(self):
        self.start_hub()
        self.download("--include", "onnx/")
        self.assert_files(["onnx/a b#c%d?e\u00e9.json"])

    def test_the_default_place_is_what_hf_assets_path_names(self):
        self.start_hub()
        run = subprocess.run(self.command(kind="tokenizer"), env=env_of(), cwd=self.folder, capture_output=True,
                             stdin=subprocess.DEVNULL, text=True, timeout=HANG)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_files(TOKENIZER_FILES, self.folder / "assets/hf/tiny-llama")

    def test_dry_run_lists_and_writes_nothing(self):
        self.start_hub()
        run = self.download("--dry-run")
        lines = dict(reversed(line.split(None, 1)) for line in run.stdout.splitlines()[:-1])
        files = self.hub.repos[NAME].files
        self.assertEqual(lines, {name: str(len(files[name])) for name in MODEL_FILES})
        self.assert_nothing_was_written()

    def test_a_revision_is_pinned_to_its_commit(self):
        repo = model(revisions={"refs/pr/1": "f" * 40})
        repo.revisions["v1"] = repo.commit
        self.start_hub({NAME: repo})
        self.only_weights("--revision", "v1")
        self.assertTrue(all("/resolve/" + repo.commit in s.path for s in self.hub.seen if "/resolve/" in s.path))
        self.download("--revision", "refs/pr/1", "--dry-run")
        self.assertIn(f"/api/models/{NAME}/revision/refs%2Fpr%2F1", [s.path for s in self.hub.seen])

    def test_globs_that_take_nothing_are_errors(self):
        self.start_hub()
        self.assert_holds(self.download("--include", "*.gguf", code=1).stderr, "--include '*.gguf' matches no file", "README.md")
        self.assert_holds(self.download("--exclude", "*", code=1).stderr, "--exclude removes every selected file")
        self.start_hub({NAME: Repo({"README.md": b"x"})})
        self.assert_holds(self.download(kind="tokenizer", code=1).stderr, "nothing to fetch", "README.md", "--include")

    def test_wrong_words_are_told_before_anything_is_asked(self):
        self.start_hub()
        for words, kind, name, part in [
            ([], "weights", NAME, "not 'weights'"), ([], "model", "a/b/c", "got 'a/b/c'"), ([], "model", "../x", "got '../x'"),
            (["--jobs", "0"], "model", NAME, "--jobs must be between 1 and 64, got 0"), (["--jobs", "2x"], "model", NAME, "--jobs"),
            (["--stall-timeout", "0.5"], "model", NAME, "--stall-timeout must be an integer between 1 and 3600, got '0.5'"),
            (["--retry-wait", "nan"], "model", NAME, "--retry-wait must be finite, got nan"), (["--bogus"], "model", NAME, "--bogus"),
            (["--token", "hf_a b"], "model", NAME, "the token holds a space"), (["--token", ""], "model", NAME, "--token"),
        ]:
            self.assert_holds(self.download(*words, kind=kind, name=name, code=2).stderr, part)
        for base in ["ftp://127.0.0.1", "huggingface", "http://user:secret@127.0.0.1/", "http://127.0.0.1/?x=1"]:
            self.assertNotIn("secret", self.download(base=base, code=2).stderr)
        self.assertEqual(self.hub.seen, [])
        help_text = subprocess.run([TITAN, "download", "--help"], capture_output=True, text=True, timeout=HANG)
        self.assertEqual(help_text.returncode, 0)
        self.assert_holds(help_text.stdout, "--revision", "--exclude", "--stall-timeout")


class Permission(DownloadCase):
    def test_the_token_goes_to_the_hub_and_never_to_the_store(self):
        home = self.folder / "home"
        self.write("home/.cache/huggingface/token", TOKEN + "\n")
        self.start_hub({NAME: model(token=TOKEN)})
        for words, env in [(["--token", TOKEN], {}), ([], {"HF_TOKEN": TOKEN}), ([], {"HOME": str(home)}),
                           ([], {"HF_HOME": str(home / ".cache/huggingface")})]:
            self.hub.forget()
            out = self.folder / f"out{len(words)}{len(env)}{next(iter(env), '')}"
            self.only_weights(*words, env=env, output=out)
            self.assert_files([WEIGHTS], out)
            self.assert_store_saw_no_token()
            self.assertTrue(any(s.headers.get("Authorization") == "Bearer " + TOKEN for s in self.hub.seen))
            self.assertTrue(any(s.host == "store" for s in self.hub.seen))

    def test_a_next_page_elsewhere_gets_no_token(self):
        self.start_hub({NAME: model(token=TOKEN)}, page=2)
        self.hub.next_link = '<{store}/x/list?cursor={after}>; rel="next"'
        self.download("--token", TOKEN, code=1)
        self.assertTrue(any(s.host == "store" for s in self.hub.seen))
        self.assert_store_saw_no_token()

    def test_private_gated_and_missing(self):
        self.start_hub({NAME: model(token=TOKEN), "acme/gated": model(token=TOKEN, gated=True)})
        for name, words, code, parts in [
            (NAME, [], 1, ["status 401", "no token was sent", "--token", "Invalid username or password"]),
            (NAME, ["--token", "hf_wrong"], 1, ["status 401", "a token was sent"]),
            (NAME, ["--token", "wrong"], 1, ["status 401", "Invalid credentials"]),
            ("acme/gated", [], 1, ["status 401", "accept its terms at " + self.hub.url + "/acme/gated", "--token"]),
            ("acme/gated", ["--token", "hf_other"], 1, ["status 403", "is gated", "a token was sent"]),
            ("acme/none", [], 1, ["status 401", "there is no model 'acme/none'"]),
            ("acme/none", ["--token", TOKEN], 1, ["status 404", "there is no model 'acme/none'", "titan download dataset"]),
            (NAME, ["--token", TOKEN, "--revision", "v9"], 1, ["status 404", "there is no revision 'v9'"]),
        ]:
            run = self.only_weights(*words, name=name, code=code, output=self.folder / "none")
            self.assert_holds(run.stderr, *parts)
            self.assertEqual(self.files(self.folder / "none"), {})
            self.assertNotIn("hf_wrong", run.stderr)

    def test_a_file_that_is_listed_and_missing_does_not_stop_the_others(self):
        self.start_hub()
        self.hub.faults["resolve " + WEIGHTS] = [Fault(404, {"X-Error-Code": "EntryNotFound"}), ]
        run = self.download(code=1)
        self.assert_holds(run.stderr, "cannot get " + WEIGHTS, "the file is not in this revision", "1 file could not be downloaded")
        self.assert_files([name for name in MODEL_FILES if name != WEIGHTS])


class Screen(DownloadCase):
    def on_a_terminal(self, *words):
        ours, theirs = pty.openpty()
        run = subprocess.Popen(self.command(*words, "--output", self.out), env=env_of(), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=theirs)
        os.close(theirs)
        text = b""
        while True:
            try:
                more = os.read(ours, 65536)
            except OSError:
                break
            text += more
            if re.search(rb"\r\[[^\r]* 30\.0 %[^\r]*ETA \d", text):
                self.hub.released.set()
        os.close(ours)
        self.assertEqual(run.wait(timeout=HANG), 0, text)
        return text.decode()

    def test_a_bar_on_a_terminal(self):
        self.start_hub()
        self.hub.faults[WEIGHTS] = [Fault(stall=1_500_000)]
        text = self.on_a_terminal("--include", "*.safetensors", "--jobs", "1", "--retry-wait", "0.02")
        self.assertRegex(text, r"\r\[#+ +\] 30\.0 %  1\.50 MB of 5\.00 MB  0/2 files  [\d.]+ .?B/s  ETA \d")
        self.assertNotIn("\n\n", text)
        self.assert_holds(text, "2 files of commit")

    def test_quiet_and_no_terminal(self):
        self.start_hub()
        self.assertNotIn("\r", self.download(output=self.folder / "lines").stderr)
        run = self.download("--quiet")
        self.assertEqual((run.stdout, run.stderr), ("", ""))


class Secure(DownloadCase):
    def certificate(self):
        pair = [str(self.folder / "cert.pem"), str(self.folder / "key.pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-out", pair[0], "-keyout", pair[1]], check=True, capture_output=True, stdin=subprocess.DEVNULL)
        return pair

    def test_only_a_trusted_server_is_believed_and_a_redirect_into_the_open_is_not_followed(self):
        pair = self.certificate()
        self.start_hub(tls=pair, store_tls=pair)
        self.assert_holds(self.only_weights("--token", TOKEN, code=1).stderr, "certificate")
        self.assertEqual(self.hub.seen, [])
        self.only_weights(env={"CURL_CA_BUNDLE": pair[0]})
        self.assert_files([WEIGHTS])
        self.start_hub(tls=pair)  # its store uses plain HTTP
        self.only_weights(env={"SSL_CERT_FILE": pair[0]}, output=self.folder / "open", code=1)
        self.assertFalse(any(s.host == "store" for s in self.hub.seen))

    def test_a_proxy_is_used_where_the_environment_names_one(self):
        self.start_hub()
        self.only_weights(env={"http_proxy": self.hub.url}, base="http://hub.invalid", code=1)
        self.assertEqual(self.hub.seen[0].path, f"http://hub.invalid/api/models/{NAME}/revision/main")

    def test_a_training_run_does_not_load_libcurl(self):
        build = pathlib.Path(TITAN).parents[1]
        for file, wanted in [("bin/titan", False), ("bin/titan-train", False), ("lib/titan/plugins/download.plugin.so", True)]:
            needed = subprocess.run(["readelf", "-d", build / file], capture_output=True, text=True, check=True).stdout
            self.assertEqual("libcurl" in needed, wanted, needed)


class Referee(DownloadCase):
    """huggingface_hub, the hub's own client, with the same server: it accepts the protocol, and both download the same files."""

    SCRIPT = """
import json, sys
from huggingface_hub import snapshot_download
kind, name, patterns, folder = json.loads(sys.argv[1])
snapshot_download(name, repo_type=kind, allow_patterns=patterns, local_dir=folder)
"""

    def by_hub_client(self, kind, patterns, folder, token):
        env = env_of(HF_ENDPOINT=self.hub.url, HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1",
                     HF_HOME=str(self.folder / "hf"), HF_TOKEN=token)
        run = subprocess.run([sys.executable, "-c", self.SCRIPT, json.dumps([kind, NAME, patterns, str(folder)])],
                             env=env, capture_output=True, text=True, timeout=HANG, stdin=subprocess.DEVNULL)
        self.assertEqual(run.returncode, 0, run.stderr)
        return {name: data for name, data in self.files(folder).items() if not name.startswith(".cache/")}

    def test_the_same_model(self):
        self.start_hub({NAME: model(token=TOKEN)}, page=5)
        theirs = self.by_hub_client("model", ["*"], self.folder / "theirs", TOKEN)
        self.download("--include", "*", env={"HF_ENDPOINT": self.hub.url, "HF_TOKEN": TOKEN})
        self.assertEqual(len(theirs), len(model_files()))
        self.assertEqual(self.files(), theirs)

    def test_the_same_part_of_a_dataset(self):
        files = {f"en/part-{i:02d}.json.gz": noise(50_000, i) for i in range(8)} | {"en.json": b"{}", "fr/a.json": b"[]"}
        self.start_hub({NAME: Repo(files, [p for p in files if p.endswith(".gz")], kind="dataset", token=TOKEN)}, page=3)
        for patterns in (["en/*"], ["*.json"], ["en/part-0[2-5]*", "fr/"]):
            out, theirs = self.folder / str(len(patterns[0])), self.folder / f"theirs{len(patterns[0])}"
            words = [word for pattern in patterns for word in ("--include", pattern)]
            self.download(*words, "--token", TOKEN, kind="dataset", output=out)
            self.assertEqual(self.files(out), self.by_hub_client("dataset", patterns, theirs, TOKEN))


if __name__ == "__main__":
    main()
