"""titan plugin: an index is made and signed, its plugins are installed, checked at every load, and everything that was changed,
swapped or served again is refused with a remedy that works as printed. Signatures are compared with two programs that we did not
write: minisign, and OpenSSL's Ed25519 over Python's BLAKE2b."""

import base64
import hashlib
import http.server
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import threading

from harness import ROOT, SKIPPED, TINY, TITAN, Case, environment, main, thorough

SOUND = pathlib.Path(TITAN).parent.parent / "tests/bad_plugins/sound/sound.plugin.so"  # provides the schedule Ramp
USES_RAMP = ["--lr_scheduler.name", "Ramp"]


def with_field(content, field, value):
    """A plugin file whose manifest has another value, of the same length, for a field."""
    found = re.findall(rb"\0" + field.encode() + rb"=([^\0]*)\0", content)
    assert len(found) == 1 and len(found[0]) == len(value), (field, value, found)
    return content.replace(f"\0{field}=".encode() + found[0] + b"\0", f"\0{field}={value}\0".encode())


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file())


class IndexCase(Case):
    def setUp(self):
        super().setUp()
        self.site, self.job = self.folder / "site", self.folder / "a job"
        self.job.mkdir()
        self.config = self.write("a job/job.toml", re.sub(r"\[lr_scheduler\][^\[]*", "", (ROOT / TINY[1]).read_text()))
        self.lock = self.job / "job.lock"
        self.env = environment(XDG_CONFIG_HOME=str(self.folder / "config"), PATH=os.environ["PATH"])
        self.public = self.make_key("key")
        sound = SOUND.read_bytes()
        self.v1 = self.write("v1/sound.plugin.so", sound)
        self.v2 = self.write("v2/sound.plugin.so", with_field(sound, "version", "1.1.0"))
        abi = re.search(rb"\0sdk_abi_torch_free=([^\0]*)\0", sound)[1].decode()
        other = sound.replace(f"sdk_abi={abi}".encode(), b"sdk_abi=" + b"0" * len(abi))
        self.other_sdk = self.write("other/sound.plugin.so", with_field(other, "version", "2.0.0"))

    def make_key(self, name):
        subprocess.run(["minisign", "-G", "-W", "-s", self.folder / name, "-p", self.folder / f"{name}.pub"], check=True,
                       capture_output=True)
        return (self.folder / f"{name}.pub").read_text().splitlines()[1]

    def plugin(self, *words, code=0):
        run = subprocess.run([TITAN, "plugin", *map(str, words)], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, code, f"titan plugin {words}\n{run.stdout}{run.stderr}")
        return run.stdout + run.stderr

    def pack(self, *files, key="key", site=None, **flags):
        words = [word for name, value in flags.items() for word in (f"--{name}", value)]
        site = site or self.site
        if not (site / "index.json").exists():
            words += ["--name", "acme"]
        return self.plugin("pack", *files, "--output", site, "--secret-key", self.folder / key, *words)

    def add(self, address=None, key=None, code=0):
        return self.plugin("add", address or self.site, "--key", key or self.public, code=code)

    def install(self, *words, code=0):
        return self.plugin("install", *words, "--config", self.config, code=code)

    def remedy(self, text):
        """Runs the command that a message prints, as it is printed."""
        line = next(line for line in text.splitlines() if "titan plugin" in line and ": titan plugin" in line)
        for command in line[line.index(": titan plugin") + 2:].split(" && "):
            words = shlex.split(command)
            self.plugin(*words[2:])

    def check_job(self, code=0, *arguments):
        """Resolves the job and opens its plugins, as `titan train` does, without training."""
        run = subprocess.run([TITAN, "train", "--job.config_file", self.config, "--dry-run", *USES_RAMP, *arguments], cwd=ROOT,
                             env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stderr

    def installed_file(self):
        return self.job / json.loads(self.lock.read_text())["plugins"][0]["file"]

    def refused(self, text, *parts):
        """Nothing of a refused installation is left."""
        self.assert_holds(text, *parts)
        self.assertEqual(files_below(self.job), ["job.toml"])


class PluginIndexTest(IndexCase):
    def test_a_plugin_is_installed_checked_at_each_load_and_repaired_as_printed(self):
        self.pack(self.v1)
        self.assert_holds(self.add(), "added the index 'acme' with 1 plugin")
        self.assertRegex(self.plugin("search", "ramp"), r"acme +sound +1.0.0 .*lr_scheduler:Ramp.* yes ")
        self.install("sound")
        file = self.installed_file()
        self.assertEqual(file.read_bytes(), self.v1.read_bytes())
        self.assert_holds(self.plugin("verify", "--config", self.config), "ok    sound 1.0.0")

        out = self.folder / "out"
        job = ["--training.steps", "2", "--training.seq_len", "64", *USES_RAMP, "--job.dump_folder", out]
        run = self.train(*job, config=["--job.config_file", str(self.config)], out=out)
        self.assertNotIn("unsigned", run.stderr)
        start = json.loads((out / "history.jsonl").read_text().splitlines()[0])
        self.assertNotIn("unsigned_plugins", start)
        self.assertEqual(start["config"]["plugins"]["lock"], str(self.lock))

        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        text = self.check_job(3)
        self.assert_holds(text, "cannot use plugin 'sound'", "not the one that was installed", hashlib.sha256(content).hexdigest())
        self.assert_holds(self.plugin("verify", "--config", self.config, code=3), "has the SHA-256")
        self.remedy(text)
        self.check_job()
        file.unlink()
        text = self.check_job(3)
        self.assert_holds(text, "does not exist")
        self.remedy(text)
        self.check_job()

    def test_a_plugin_outside_of_the_lock_needs_a_flag_which_log_and_record_tell(self):
        self.pack(self.v1)
        self.add()
        self.install("sound")
        self.plugin("remove", "sound", "--config", self.config)
        self.assertEqual(files_below(self.job), ["job.lock", "job.toml"])
        paths = ["--plugins.paths", str(self.v1.parent)]
        self.assert_holds(self.check_job(3, *paths), "does not list it", "titan plugin install sound")
        out = self.folder / "out"
        run = self.train("--training.steps", "1", "--training.seq_len", "64", *USES_RAMP, *paths, "--plugins.allow_unsigned",
                         config=["--job.config_file", str(self.config)], out=out)
        self.assert_holds(run.stderr, "plugin 'sound' 1.0.0", "loaded unsigned")
        start = json.loads((out / "history.jsonl").read_text().splitlines()[0])
        self.assertEqual(start["unsigned_plugins"], ["sound 1.0.0"])
        self.assertIs(start["config"]["plugins"]["allow_unsigned"], True)
        self.assertIn("allow_unsigned = true", (out / "config.toml").read_text())

    def test_minisign_and_openssl_agree_with_the_signatures(self):
        self.pack(self.v1)
        self.add()
        self.install("sound")
        raw = base64.b64decode(self.public)
        der = self.write("key.der", bytes.fromhex("302a300506032b6570032100") + raw[10:])
        for file, signature in ((self.installed_file(), None), (self.site / "index.json", None)):
            signature = pathlib.Path(f"{file}.minisig")
            run = subprocess.run(["minisign", "-V", "-m", file, "-x", signature, "-P", self.public], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            _, first, comment, second = signature.read_text().splitlines()
            of_file = base64.b64decode(first)[10:]
            for signed, by in ((hashlib.blake2b(file.read_bytes()).digest(), of_file),
                               (of_file + comment.removeprefix("trusted comment: ").encode(), base64.b64decode(second))):
                message, sig = self.write("message", signed), self.write("sig", by)
                check = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", der, "-rawin", "-in",
                                        message, "-sigfile", sig], capture_output=True, text=True)
                self.assertEqual(check.returncode, 0, check.stdout + check.stderr)

    def test_the_newest_version_that_fits_is_chosen_and_another_sdk_is_refused(self):
        self.pack(self.v1, self.v2, self.other_sdk)
        self.add()
        self.assertRegex(self.plugin("search"), r"sound +2.0.0 .* version 1.1.0 ")
        text = self.install("sound@2.0.0", code=3)
        self.refused(text, "sdk_abi 0000000000000000 instead of", "version 1.1.0 can")
        self.remedy(text)
        self.assertEqual(self.installed_file().read_bytes(), self.v2.read_bytes())
        self.install("sound@1.0.0")
        self.assertEqual(self.installed_file().read_bytes(), self.v1.read_bytes())
        self.assertEqual(len(files_below(self.job / "titan_plugins")), 2)  # the other version is gone
        self.assert_holds(self.install("sound@3.0.0", code=3), "no version 3.0.0")
        self.assert_holds(self.install("sond", code=3), "did you mean 'sound'?")

    def test_a_changed_file_or_index_is_refused_and_nothing_is_left(self):
        self.pack(self.v1)
        self.add()
        file = next(self.site.rglob("*.plugin.so"))
        good, index = file.read_bytes(), (self.site / "index.json").read_bytes()
        for content, part in ((good[:-1], "bytes, the index says"), (good + b"x", "its limit"),
                              (good[:-1] + bytes([good[-1] ^ 1]), "has the SHA-256")):
            file.write_bytes(content)
            self.refused(self.install("sound", code=3), part)
        file.unlink()
        self.refused(self.install("sound", code=1), "sound-1.0.0")
        file.write_bytes(good)
        (self.site / "index.json").write_bytes(index.replace(b"1.0.0", b"1.0.9"))
        self.refused(self.install("sound", code=3), "its content or its signature was changed")
        (self.site / "index.json").write_bytes(index)
        (self.site / "index.json.minisig").unlink()
        self.refused(self.install("sound", code=1), "index.json.minisig")

    def test_a_changed_key_and_an_old_index_are_refused_until_the_user_adds_it_again(self):
        self.pack(self.v1)
        before = self.folder / "before"
        shutil.copytree(self.site, before)
        self.pack(self.v2)
        self.add()
        self.plugin("search")
        for name in ("index.json", "index.json.minisig"):
            shutil.copy(before / name, self.site / name)
        text = self.install("sound", code=3)
        self.refused(text, "older than one that was read before: its counter is 1, the last was 2")
        self.remedy(text)
        shutil.rmtree(self.site)
        other = self.make_key("second")
        self.pack(self.v1, key="second")
        text = self.install("sound", code=3)
        self.refused(text, "is signed by the key")
        text = self.add(key=other, code=3)
        self.assert_holds(text, "was added with the key")
        self.remedy(text)
        self.install("sound")
        self.assert_holds(self.plugin("list", "--config", self.config), "sound", str(self.site))

    def test_over_http_and_without_a_key_the_offered_one_is_pinned(self):
        self.pack(self.v1)

        class Quiet(http.server.SimpleHTTPRequestHandler):
            def __init__(handler, *arguments):
                super().__init__(*arguments, directory=str(self.site))

            def log_message(handler, *arguments):
                pass
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            address = f"http://127.0.0.1:{server.server_port}"
            text = self.plugin("add", address + "/")
            self.assert_holds(text, "compare it with what the author publishes", self.public)
            self.install("sound")
            self.assertEqual(self.installed_file().read_bytes(), self.v1.read_bytes())
            self.assertEqual(json.loads(self.lock.read_text())["plugins"][0]["index"], address)
            shutil.rmtree(self.job / "titan_plugins")
            next(self.site.rglob("*.plugin.so")).unlink()
            self.assert_holds(self.install(code=1), "status 404")
            self.assertEqual(files_below(self.job), ["job.lock", "job.toml"])
            server.shutdown()

    def test_results_of_the_conformance_kit_are_shown_for_their_file_only(self):
        result = {"kit": "1", "plugin": "sound", "sha256": hashlib.sha256(self.v1.read_bytes()).hexdigest(), "seed": 1, "good": True,
                  "counts": {"passed": 9}, "tests": [{"test": "x"}]}
        file = self.write("result.json", json.dumps(result))
        self.pack(self.v1, conformance=file)
        self.add()
        self.assertRegex(self.plugin("search"), r"sound .* yes +passed ")
        row = json.loads((self.site / "index.json").read_text())["plugins"][0]["versions"][0]
        self.assertEqual(row["conformance"], {"good": True, "kit": "1", "seed": 1, "counts": {"passed": 9}})
        self.write("result.json", json.dumps(result | {"sha256": "0" * 64}))
        text = self.plugin("pack", self.v2, "--output", self.site, "--secret-key", self.folder / "key", "--conformance", file, code=2)
        self.assert_holds(text, "which is not in the index")
        self.install("sound")  # the index is as before

    def test_mistakes_of_the_user_are_named(self):
        for words, part in ((["instal"], "did you mean 'install'?"), (["install", "x"], "--config"),
                            (["install", "x", "--config", self.folder / "none"], "is not a file"),
                            (["add", self.folder / "none"], "cannot use the index folder"),
                            (["add", "ftp://example.org"], "like https://"), (["add", "https://u:p@example.org"], "password"),
                            (["search"], "titan plugin add"), (["forget", "x"], "there is no index 'x'"),
                            (["pack", "x"], "minisign -G"), (["install", "a/b", "--config", self.config], "NAME@VERSION")):
            self.assert_holds(self.plugin(*words, code=2), part)


@thorough
class PluginIndexDefencesTest(IndexCase):
    def sign_index(self, content, key="key"):
        """Signs a made-up index as its author would."""
        index = json.loads(content)
        file = self.write("site/index.json", content)
        subprocess.run(["minisign", "-S", "-H", "-s", self.folder / key, "-m", file, "-t",
                        f"titan-index name={index['name']} counter={index['counter']}"], check=True, capture_output=True)

    def edited(self, edit):
        index = json.loads((self.site / "index.json").read_text())
        edit(index)
        self.sign_index(json.dumps(index))

    def test_versions_cannot_be_swapped_even_by_who_can_sign_the_index(self):
        self.pack(self.v1, self.v2)
        self.add()

        def old_for_new(index):
            old, new = index["plugins"][0]["versions"]
            for member in ("url", "sha256", "size", "signature"):
                new[member] = old[member]
        self.edited(old_for_new)
        self.refused(self.install("sound", code=3), "was signed as 'titan-plugin name=sound version=1.0.0")

    def test_a_file_of_another_key_or_another_manifest_is_refused(self):
        self.pack(self.v1)
        self.add()
        stranger = self.make_key("stranger")
        self.pack(self.v1, key="stranger", site=self.folder / "strange")
        foreign = json.loads((self.folder / "strange/index.json").read_text())["plugins"][0]["versions"][0]["signature"]
        self.assertNotEqual(stranger, self.public)

        def by_stranger(index):
            index["plugins"][0]["versions"][0]["signature"] = foreign
        good = (self.site / "index.json").read_text()
        self.edited(by_stranger)
        self.refused(self.install("sound", code=3), "which is not a key of this index")

        def other_name(index):
            index["plugins"][0]["name"] = "louder"
        self.sign_index(good)
        self.edited(other_name)
        self.refused(self.install("louder", code=3), "was signed as")

        def other_components(index):
            index["plugins"][0]["versions"][0]["provides"] = ["optimizer:x"]
        self.sign_index(good)
        self.edited(other_components)
        self.refused(self.install("sound", code=3), "the manifest inside")

    def test_an_expired_index_and_one_whose_comment_differs_are_refused(self):
        self.pack(self.v1, expires=1)
        self.add()
        self.plugin("search")

        def expired(index):
            index["expires"] = 1_000_000_000
        self.edited(expired)
        self.assert_holds(self.install("sound", code=3), "expired on 2001-09-09")
        self.pack(self.v2)  # its author signs it again
        self.install("sound")
        index = json.loads((self.site / "index.json").read_text())
        index["counter"] += 1
        self.sign_index(json.dumps(index))
        index["counter"] += 1
        content = json.dumps(index)
        file = self.write("site/index.json", content)
        subprocess.run(["minisign", "-S", "-H", "-s", self.folder / "key", "-m", file, "-t", "titan-index name=acme counter=9"],
                       check=True, capture_output=True)
        self.assert_holds(self.install("sound", code=3), "was signed with the comment")

    def test_addresses_that_lead_out_of_the_index_are_refused(self):
        self.pack(self.v1)
        self.add()
        for url in ("../key", "/etc/passwd", "file:///etc/passwd", "a/../../key", "https://example.invalid/x.so"):
            def elsewhere(index, url=url):
                index["plugins"][0]["versions"][0]["url"] = url
            self.edited(elsewhere)
            self.refused(self.install("sound", code=3), url)

    def test_no_drawn_damage_of_the_site_installs_anything_else(self):
        self.pack(self.v1)
        self.add()
        draw = self.chance()
        names = [name for name in files_below(self.site) if not name.endswith((".plugin.so.minisig", ".pub"))]
        good = {name: (self.site / name).read_bytes() for name in names}
        for _ in range(120):
            name = draw.choice(names)
            content = bytearray(good[name])
            first = content.index(b"\n") if name.endswith(".minisig") else -1  # minisign does not sign its first line
            for _ in range(draw.randint(1, 3)):
                content[draw.randrange(first + 1, len(content))] = draw.randrange(256)
            (self.site / name).write_bytes(content)
            run = subprocess.run([TITAN, "plugin", "install", "sound", "--config", self.config], cwd=self.folder, env=self.env,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=600)
            if run.returncode == 0:  # the draw changed nothing that counts
                self.assertEqual(self.installed_file().read_bytes(), self.v1.read_bytes(), name)
                self.plugin("remove", "sound", "--config", self.config)
                self.lock.unlink()
            else:
                self.assertIn(run.returncode, (1, 3), run.stderr)
                self.refused(run.stderr, "error: ")
            (self.site / name).write_bytes(good[name])


if __name__ == "__main__":
    if not shutil.which("minisign"):
        print("skipped: minisign, which signs the indexes of this test, is not installed (tools/debian-packages.txt)")
        sys.exit(SKIPPED)
    main()
