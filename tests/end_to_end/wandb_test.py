"""A run writes the files that Weights & Biases uploads, without Python in its process. tests/referee/wandb_check.py
reads and uploads such folders with wandb itself."""

import json
import pathlib
import struct
import subprocess
import zlib

from harness import TITAN, Case, main, metrics

FLAGS = ["--metrics.enable_wandb", "--metrics.log_freq", "1", "--checkpoint.enable", "--checkpoint.interval", "2"]


def fields(message):
    """(number, value) of each field: an int or bytes."""
    def varint():
        nonlocal message
        value = shift = 0
        while True:
            byte, message = message[0], message[1:]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    found = []
    while message:
        key = varint()
        if key & 7:
            size = varint()
            found.append((key >> 3, message[:size]))
            message = message[size:]
        else:
            found.append((key >> 3, varint()))
    return found


def records(path):
    """The records of a .wandb file with verified checksums: (kind, content)."""
    data, at, payload, found = path.read_bytes(), 7, b"", []
    assert data[:7] == b":W&B\xe1\xbe\x00", data[:7]
    while at < len(data):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        checksum, size, kind = struct.unpack("<IHB", data[at:at + 7])
        chunk = data[at + 7:at + 7 + size]
        assert zlib.crc32(bytes([kind]) + chunk) == checksum, f"at byte {at} of {path}"
        payload, at = payload + chunk, at + 7 + size
        if kind in (1, 4):
            found.append(fields(payload)[1])
            payload = b""
    return found


def rows(path):
    """The history: one dictionary for each row."""
    found = []
    for kind, content in records(path):
        if kind == 2:
            items = [dict(fields(item)) for number, item in fields(content) if number == 1]
            found.append({item[2].decode(): json.loads(item[16]) for item in items})
    return found


class WandbTest(Case):
    def files(self):
        return sorted(self.out.glob("wandb/offline-run-*/run-*.wandb"))

    def test_every_logged_step_is_a_row_with_the_numbers_of_metrics_jsonl(self):
        run = self.train(*FLAGS, "--validation.enable", "--validation.freq", "2", "--validation.steps", "1",
                         "--validation.dataset", "c4_test", WANDB_PROJECT="p", WANDB_RUN_TAGS="a,b")
        self.assert_holds(run.stderr, "not uploaded; upload it by: wandb sync ", "/wandb/offline-run-")
        self.assertEqual(run.stderr.count("wandb:"), 1, run.stderr)
        (file,) = self.files()
        wanted = {}
        for line in metrics(self.out):
            wanted.setdefault(line["step"], {}).update(line)
        written = {row["_step"]: row for row in rows(file)}
        self.assertEqual(sorted(written), [1, 2, 3])
        self.assertIn("validation_metrics/loss", written[2])
        for step, line in wanted.items():
            row = {key: value for key, value in written[step].items() if not key.startswith("_")}
            self.assertEqual(row, {key: value for key, value in line.items() if key not in ("step", "wall_time")})
        kind, run_record = records(file)[0]
        self.assertEqual(kind, 17)
        self.assertEqual([value for number, value in fields(run_record) if number in (3, 10)], [b"p", b"a", b"b"])
        kind, ending = records(file)[-1]
        self.assertEqual((kind, fields(ending)[0]), (18, (1, 0)))  # its exit code

    def test_a_resumed_run_goes_on_under_its_id(self):
        self.train(*FLAGS)
        said = self.train(*FLAGS, "--training.steps", "5", "--checkpoint.load_step", "2").stderr
        self.assert_holds(said, "wandb: steps 3 to 3 were logged before")
        first, second = self.files()
        self.assertEqual(first.name, second.name)
        self.assertEqual([row["_step"] for row in rows(first) + rows(second)], [1, 2, 3, 4, 5])

    def test_a_folder_that_cannot_be_made_stops_only_this_logger(self):
        self.out.mkdir()
        (self.out / "wandb").write_text("in the way")
        said = self.train(*FLAGS).stderr
        self.assert_holds(said, "logger 'wandb' failed", "/wandb'", "training completed after step 3")
        self.assertEqual(said.count("is off from here on"), 1, said)
        self.assertEqual(len(metrics(self.out)), 3)

    def test_a_run_id_that_cannot_be_is_found_before_the_start(self):
        said = self.train(*FLAGS, "--logger.wandb.run_id", "a/b", code=2).stderr
        self.assert_holds(said, "run_id", "cannot be part of a file name, got 'a/b'", "nothing was started")

    def test_the_plugin_needs_neither_python_nor_a_network_library(self):
        plugin = pathlib.Path(TITAN).parent.parent / "lib/titan/plugins/wandb.plugin.so"
        needed = subprocess.run(["ldd", plugin], capture_output=True, text=True, check=True).stdout
        for library in ("python", "curl", "ssl", "torch"):
            self.assertNotIn(library, needed)


if __name__ == "__main__":
    main()
