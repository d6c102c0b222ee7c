"""Names and values in files with characters that a terminal interprets, hides or reorders: none of them reaches the terminal.

Python's unicodedata judges the output: no control character but line ends and tabs, no format, private or
reserved character, no line separator, and UTF-8 throughout. Nor may a name look like a line of Titan's own.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import tomllib
import unicodedata

import numpy
import safetensors.numpy

from download_case import NAME, DownloadCase, model
from harness import DEBUG_CONFIG, ROOT, TINY, TITAN, Case, environment, main

# colors, right-to-left override, invisible characters, C1, tags, a line separator, a line that looks like
# Titan's own
HOSTILE = "a\x1b[31m\u202eb\u200bc\u009b2Jd\U000e0041\ufeff\u2028e\nerror: forged"
SHOWN = r"a\x1b[31m\u202eb\u200bc\u009b2Jd\U000e0041\ufeff\u2028e\x0aerror: forged"
# without characters that such a file cannot hold: line ends, ASCII control characters
ONE_LINE = "a\u202eb\u200bc\u009b2Jd\U000e0041\ufeff\u2028e"
ONE_LINE_SHOWN = r"a\u202eb\u200bc\u009b2Jd\U000e0041\ufeff\u2028e"
FRIENDLY = "Grüße 你好 مرحبا 👩‍🚀"  # printed unchanged


def harm_in(output):
    """Characters of an output that must not reach a terminal."""
    try:
        text = output.decode()
    except UnicodeDecodeError as error:
        return [str(error)]
    text = text.replace("👩‍🚀", "")  # the zero-width joiner within is allowed
    bad = [f"U+{ord(c):04X}" for c in text
           if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")]
    return bad + [line for line in text.splitlines() if line.startswith("error: forged")]


class HostileCase(Case):
    def run_titan(self, *arguments, code, **env):
        """Standard output and standard error, checked for harmful characters."""
        run = subprocess.run([TITAN, *map(os.fsencode, arguments)], cwd=ROOT, env=environment(**env), timeout=300,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(harm_in(run.stdout), [], run.stdout)
        said = run.stdout.decode()
        self.assertEqual(run.returncode, code, said)
        return said

    def refused(self, *arguments, code):
        return self.run_titan("train", *map(str, TINY), "--job.dump_folder", str(self.out), *arguments, code=code)


class ConfigurationTest(HostileCase):
    def test_keys_values_and_the_line_itself_are_escaped(self):
        text = f'[training]\n"{ONE_LINE}" = 1\nsteps = "{ONE_LINE} {FRIENDLY}"\n'
        file = self.write("train.toml", text)
        said = self.run_titan("train", "--job.config_file", str(file), code=2)
        self.assert_holds(said, f"unknown key '{ONE_LINE_SHOWN}' in [training]", f"got '{ONE_LINE_SHOWN} {FRIENDLY}'",
                          f'    2 | "{ONE_LINE_SHOWN}" = 1\n', f'    3 | steps = "{ONE_LINE_SHOWN} {FRIENDLY}"\n')

    def test_the_caret_stands_below_what_is_shown(self):
        file = self.write("train.toml", f'"{ONE_LINE}".x = 1\n[training]\n"{ONE_LINE}" = 1\n')
        lines = self.run_titan("train", "--job.config_file", str(file), code=2).splitlines()
        line = next(i for i, text in enumerate(lines) if text.startswith("    3 | "))
        begin = lines[line].index('"')
        self.assertEqual(lines[line + 1].index("^"), begin)
        self.assertEqual(lines[line + 1].count("~"), len(f'"{ONE_LINE_SHOWN}"') - 1)

    def test_escapes_in_values_are_written_as_escapes_again(self):
        escaped = "".join(f"\\U{ord(c):08x}" for c in HOSTILE)
        file = self.write("train.toml", f'[training]\ndataset = "{escaped}"\n[job]\ndescription = "{escaped}"\n')
        said = self.run_titan("train", "--job.config_file", str(file), code=2)
        self.assertIn(SHOWN, said)
        recipe = (ROOT / DEBUG_CONFIG).read_text().replace("Llama 3 debug training", escaped)
        said = self.run_titan("train", "--job.config_file", str(self.write("good.toml", recipe)), "--dry-run", code=0)
        line = next(line for line in said.splitlines() if line.startswith("description = "))
        self.assertEqual(tomllib.loads(line)["description"], HOSTILE)

    def test_bytes_of_the_command_line_that_are_no_text_are_escaped(self):
        said = self.refused(b"--training.st\xffeps\xc3", b"1", code=2)
        self.assertIn(r"--training.st\xffeps\xc3", said)


class FileTest(HostileCase):
    def test_names_of_files_are_escaped(self):
        folder = self.folder / HOSTILE
        folder.mkdir()
        (folder / "data.jsonl").write_text('{"text": 5}\n')
        said = self.refused("--training.dataset_path", str(folder / "data.jsonl"), code=1)
        self.assertIn(r"\x1b[31m\u202eb\u200bc\u009b2Jd\U000e0041\ufeff\u2028e", said)
        broken = os.fsencode(self.folder) + b"/\xff\xc3(.jsonl"
        said = self.refused(b"--training.dataset_path", broken, code=2)
        self.assertIn(r"/\xff\xc3(.jsonl' does not exist", said)

    def test_records_of_a_data_set_are_escaped(self):
        data = self.write("data.jsonl", json.dumps({HOSTILE: "x", FRIENDLY: 1}) + "\n")
        said = self.refused("--training.dataset_path", str(data), code=1)
        self.assert_holds(said, "data.jsonl:1: field 'text' is missing", r"a\x1b[31m\u202eb\u200bc", FRIENDLY)
        data = self.write("data.jsonl", '{"你好\u202e\u009b": x}\n')
        said = self.refused("--training.dataset_path", str(data), code=1)
        self.assert_holds(said, "data.jsonl:1: malformed JSON", r'near: {"你好\u202e\u009b": x}')

    def test_utf16_is_called_so(self):
        for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
            data = self.write("data.jsonl", '{"text": "a"}\n{"text": "b"}\n'.encode(encoding))
            said = self.refused("--training.dataset_path", str(data), code=1)
            self.assert_holds(said, "data.jsonl:1: ", "it looks like UTF-16: save it as UTF-8")
            self.assertNotIn("NUL", said)
            file = self.write("train.toml", "[training]\nsteps = 10\n".encode(encoding))
            said = self.run_titan("train", "--job.config_file", str(file), code=2)
            self.assert_holds(said, "train.toml:1:", "it looks like UTF-16: save it as UTF-8")

    def test_tokens_of_a_vocabulary_are_escaped(self):
        assets = self.folder / "tokenizer"
        shutil.copytree(ROOT / "tests/assets/tokenizer", assets)
        whole = json.loads((assets / "tokenizer.json").read_text())
        for change in ({"pre_tokenizer": {"type": HOSTILE}}, {HOSTILE: 1},
                       {"added_tokens": [{"id": 0, "content": HOSTILE}, {"id": 0, "content": FRIENDLY}]}):
            (assets / "tokenizer.json").write_text(json.dumps({**whole, **change}, ensure_ascii=False))
            said = self.refused("--model.hf_assets_path", str(assets), code=1)
            self.assert_holds(said, "tokenizer.json", SHOWN)


class CheckpointTest(HostileCase):
    def test_names_of_tensors_are_escaped_in_tables_and_stay_themselves_in_json(self):
        file = self.folder / "model.safetensors"
        safetensors.numpy.save_file({HOSTILE: numpy.zeros(2), FRIENDLY: numpy.zeros(3)}, file)
        table = self.run_titan("inspect", str(file), "--tensors", code=0)
        self.assert_holds(table, SHOWN, FRIENDLY)
        stated = json.loads(self.run_titan("inspect", str(file), "--tensors", "--json", code=0))
        self.assertEqual({tensor["name"] for tensor in stated["tensors"]}, {HOSTILE, FRIENDLY})

    def test_a_header_that_is_refused_is_escaped(self):
        header = json.dumps({HOSTILE: {"dtype": HOSTILE, "shape": [-1], "data_offsets": [0, 4]}},
                            ensure_ascii=False).encode()
        file = self.write("model.safetensors", struct.pack("<Q", len(header)) + header + b"1234")
        said = self.run_titan("inspect", str(file), code=1)
        self.assert_holds(said, f"tensor '{SHOWN}': shape[0]: the negative number -1")


class PluginTest(HostileCase):
    def test_a_manifest_is_escaped(self):
        # a name of the same length, so that nothing in the file moves
        folder = self.folder / "plugins"
        folder.mkdir()
        whole = (pathlib.Path(TITAN).parent.parent / "lib/titan/plugins/adamw.plugin.so").read_bytes()
        self.assertEqual(whole.count(b"plugin=adamw\0"), 1)
        changed = whole.replace(b"plugin=adamw\0", "plugin=a\u202em\0".encode())
        changed = changed.replace(b"version=1.", "version=\u0085".encode())
        changed = changed.replace(b"optimizer:AdamW ", "optimizer:A\u200bW ".encode())
        self.assertEqual(len(changed), len(whole))
        (folder / f"{ONE_LINE}.plugin.so").write_bytes(changed)
        said = self.run_titan("list", "optimizer", "--files", "--path", str(folder), code=0)
        self.assert_holds(said, r"A\u200bW", r"a\u202em", r"\u0085", ONE_LINE_SHOWN)
        self.run_titan("describe", "optimizer", "--path", str(folder), code=0)
        self.run_titan("describe", "optimizer", "A\u200bW", "--path", str(folder), code=3)
        said = self.run_titan("check", str(folder / f"{ONE_LINE}.plugin.so"), code=3)
        self.assert_holds(said, r"a\u202em", ONE_LINE_SHOWN)
        broken = changed.replace(b"arch=x86_64", b"\xff\xfe\xc3(\xc2\x9b\x85x64z")
        (folder / f"{ONE_LINE}.plugin.so").write_bytes(broken)
        said = self.run_titan("list", "--path", str(folder), code=0)
        self.assert_holds(said, r"holds '\xff\xfe\xc3(\u009b\x85x64z', which is not of the form key=value")


class HubTest(DownloadCase):
    def test_what_a_hub_answers_is_escaped(self):
        repo = model()
        repo.files[f"{ONE_LINE}.json"] = b"{}"
        hub = self.start_hub({NAME: repo})
        said = self.download("--dry-run", "--include", "*.json").stdout
        self.assertEqual(harm_in(said.encode()), [])
        self.assertIn(ONE_LINE_SHOWN + ".json\n", said)
        hub.entries = [{"type": "file", "oid": HOSTILE, "size": 1, "path": f"{HOSTILE}.json"}]
        said = self.download("--dry-run", code=1).stderr
        self.assertEqual(harm_in(said.encode()), [])
        self.assertIn(f"the checksum '{SHOWN}' of '{SHOWN}.json'", said)


if __name__ == "__main__":
    main()
