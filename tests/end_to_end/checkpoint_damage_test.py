"""Damage to the newest checkpoint: the next start fails with the file and the tensor and changes nothing, titan
inspect --verify detects it too, and an older step can still be loaded."""

import contextlib
import functools
import json
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile

import xxhash

from checkpoint_case import SMALL, CheckpointCase, complete_steps, content, damage, header, write_manifest
from harness import HANG, ROOT, TITAN, main, thorough, titan
from ranks_test import bare_environment


def train_small(command, folder, *changes):
    """Complete checkpoints of steps 2 and 4 below `folder`."""
    subprocess.run([*command, *SMALL, "--training.steps", "4", "--checkpoint.interval", "2", "--job.dump_folder", folder, *changes],
                   cwd=ROOT, env=bare_environment(), stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=HANG)


@functools.cache
def saved_by_two():
    """A folder with complete checkpoints of steps 2 and 4, sharded over two ranks; it lives as long as the program."""
    keeper = tempfile.TemporaryDirectory(prefix="titan_")
    launch = [TITAN, "launch", "--nproc", "2", "--log-dir", keeper.name + "/logs", "--"]
    train_small([*launch, "train", "--parallelism.data_parallel_shard_degree", "2"], keeper.name)
    return keeper, pathlib.Path(keeper.name) / "checkpoint"


def sign(folder):
    """Makes the manifest match the files, as in an attack."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for file in manifest["files"]:
        with contextlib.suppress(FileNotFoundError):
            bytes_there = (folder / file["name"]).read_bytes()
            file["bytes"], file["xxh3_128"] = len(bytes_there), xxhash.xxh3_128_hexdigest(bytes_there)
            if "header_xxh3_128" in file:
                start = 8 + int.from_bytes(bytes_there[:8], "little")
                file["header_xxh3_128"] = xxhash.xxh3_128_hexdigest(bytes_there[:start])
    write_manifest(folder, manifest)


def write_header(path, text):
    """Replaces the header of a safetensors file; the data stays."""
    start = header(path)[1]
    text = text if isinstance(text, bytes) else json.dumps(text).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + path.read_bytes()[start:])


class DamageTest(CheckpointCase):
    """In the newest checkpoint: the next start ends with an error, changes nothing, and an older step can still be loaded."""

    WEIGHTS, STATES = "weights-rank-00001.safetensors", "optimizer-rank-00000.safetensors"
    MATRIX = "layers.1.feed_forward.w2.weight"

    def setUp(self):
        super().setUp()
        self.renew()

    def renew(self):
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(saved_by_two()[1], self.saved)
        self.newest = self.saved / "step-4"

    def assert_refused(self, *parts, arguments=(), ranks=1, inspects=True, code=1):
        """The message holds `parts`, nothing changes on disk; titan inspect --verify reports it too."""
        before = content(self.saved)
        run = self.run_ranks(ranks, "--training.steps", 6, *arguments, code=code, within=HANG)
        self.assert_holds(run.stderr, *map(str, parts))
        self.assertEqual(content(self.saved), before)
        self.assertNotIn("step:", run.stdout)
        if inspects:
            seen = titan("inspect", "--verify", self.newest)
            self.assertEqual(seen.returncode, 1, seen.stdout + seen.stderr)
            self.assert_holds(seen.stdout + seen.stderr, *(str(part) for part in parts[:2] if "'" not in str(part)))

    def tensor_at_the_end(self, path):
        entries, start = header(path)
        entries.pop("__metadata__")
        return max(entries, key=lambda name: entries[name]["data_offsets"])

    def flip(self, path, position, bit=0):
        with open(path, "r+b") as file:
            file.seek(position)
            byte = file.read(1)[0]
            file.seek(position)
            file.write(bytes([byte ^ 1 << bit]))

    def flip_in(self, path, tensor):
        entries, start = header(path)
        begin, end = entries[tensor]["data_offsets"]
        self.flip(path, start + (begin + end) // 2)

    def test_an_older_step_is_loaded_when_asked(self):
        (self.newest / self.WEIGHTS).unlink()
        older = content(self.saved / "step-2")
        run = self.run_ranks(1, "--training.steps", 6, "--checkpoint.load_step", 2)
        self.assertEqual(self.resumed_after(run.stderr), 2)
        self.assertEqual(content(self.saved / "step-2"), older)
        self.assertEqual(damage(self.saved / "step-6"), [])

    def test_truncated_shard(self):
        path = self.newest / self.WEIGHTS
        last = self.tensor_at_the_end(path)
        for bytes_left in (path.stat().st_size - 100, 1000, 5, 0):
            with self.subTest(bytes_left=bytes_left):
                os.truncate(path, bytes_left)
                self.assert_refused(path, *([last] if bytes_left > 10000 else []), "cut off")

    def test_flipped_byte(self):
        cases = {self.WEIGHTS: self.MATRIX, self.STATES: "optim.exp_avg_sq." + self.MATRIX}
        for name, tensor in cases.items():
            with self.subTest(name):
                self.renew()
                self.flip_in(self.newest / name, tensor)
                self.assert_refused(self.newest / name, tensor, "is damaged", "checkpoint.load_step")

    def test_flipped_byte_seen_by_one_of_two_ranks(self):
        self.flip_in(self.newest / self.WEIGHTS, self.MATRIX)
        self.assert_refused(self.newest / self.WEIGHTS, self.MATRIX, "is damaged", ranks=2,
                            arguments=["--parallelism.data_parallel_shard_degree", 2])

    def test_flipped_byte_in_a_header(self):
        for position in (3, 7, 1000):
            with self.subTest(position=position):
                self.renew()
                self.flip(self.newest / self.WEIGHTS, position)
                self.assert_refused(self.newest / self.WEIGHTS, "its header")

    def test_flipped_byte_in_a_ranks_small_state(self):
        path = self.newest / "state-rank-00001.json"
        self.flip(path, 200)
        self.assert_refused(path, "damaged", inspects=False)
        self.assertIn("its content was changed", titan("inspect", "--verify", self.newest).stdout)

    def test_missing_files(self):
        for name in (self.WEIGHTS, self.STATES, "state-rank-00000.json"):
            with self.subTest(name):
                self.renew()
                (self.newest / name).unlink()
                self.assert_refused(self.newest / name, "No such file or directory")

    def test_every_flipped_bit_is_found(self):
        """In a small real checkpoint: at positions spread over each file, in each member of a header and in each tensor."""
        places = {path: self.places_in(path) for path in sorted(self.newest.iterdir())}
        self.assertEqual(len(places), 7)  # per rank weights, optimizer and state, and the manifest
        for path, positions in places.items():
            for count, position in enumerate(positions):
                with self.subTest(path.name, position=position):
                    self.flip(path, position, count % 8)
                    seen = titan("inspect", "--verify", self.newest)
                    self.flip(path, position, count % 8)
                    self.assertEqual(seen.returncode, 1, seen.stdout)
                    self.assertIn(str(path), seen.stdout)
        self.assertEqual(titan("inspect", "--verify", self.newest).returncode, 0)

    @staticmethod
    def places_in(path):
        """Some twelve positions: of each kind of member in a header and of the first and last byte of the first tensors."""
        size = path.stat().st_size
        spread = [0, size // 3, 2 * size // 3, size - 1]
        text = path.read_bytes()
        if path.suffix == ".json":
            names = ("step", "tokens_seen", "lr_step", "seed", "xxh3_128", "version", "layout", "random", "loader")
            return sorted({*spread, *(text.index(b'"' + name.encode() + b'"') + len(name) + 4 for name in names
                                      if b'"' + name.encode() + b'"' in text)})
        entries, start = header(path)
        tensors = [entry["data_offsets"] for name, entry in entries.items() if name != "__metadata__"][:2]
        members = (b"TITAN_XXH3_128", b"DCP_SHARDING_INFO", b"saved_offsets", b"dtype", b"shape", b"data_offsets")
        return sorted({*spread, start - 1, *(text.index(member) + len(member) + 6 for member in members),
                       *(start + place for begin, end in tensors for place in (begin, end - 1))})

    def test_a_manifest_that_was_changed(self):
        """Facts that no other file holds: a run would resume at another position."""
        path = self.newest / "manifest.json"
        sound = json.loads(path.read_text())
        for name in ("step", "tokens_seen", "lr_step", "seed"):
            with self.subTest(name):
                path.write_text(path.read_text().replace(f'"{name}": {sound[name]},', f'"{name}": {sound[name] + 1},', 1))
                self.assertEqual(json.loads(path.read_text())[name], sound[name] + 1)
                self.assert_refused(path, "it was changed after it was written")
                self.renew()

    def test_a_step_in_the_folder_of_another(self):
        self.newest.rename(self.saved / "step-5")
        self.newest = self.saved / "step-5"
        self.assert_refused(self.newest / "manifest.json", "is of step 4, but its folder is named for step 5")
        self.assert_refused("is of step 4", arguments=["--checkpoint.load_step", 5])

    def test_manifests_without_a_hash_of_their_own_are_read(self):
        manifest = json.loads((self.newest / "manifest.json").read_text())
        manifest.pop("xxh3_128")
        (self.newest / "manifest.json").write_text(json.dumps(manifest | {"version": 1}))
        seen = titan("inspect", "--verify", self.newest)
        self.assertEqual(seen.returncode, 0, seen.stdout)
        self.assert_holds(seen.stdout, "its manifest carries no hash of its own", "every hash agrees")
        run = self.run_ranks(1, "--training.steps", 6)
        self.assertEqual(self.resumed_after(run.stderr), 4)
        self.assertEqual(damage(self.saved / "step-6"), [])

    def test_manifest_that_is_none(self):
        for text, part in (("", "cannot read"), ("{}", "format"), ('{"format": "titan checkpoint"}', "version is missing"),
                           ("[" * 100000, "cannot read")):
            with self.subTest(text[:40]):
                (self.newest / "manifest.json").write_text(text)
                self.assert_refused(self.newest / "manifest.json", part)

    def other_model(self):
        other = self.folder / "other"
        train_small([TITAN, "train"], other, "--model.dim", "32")
        return other / "checkpoint" / "step-4"

    def test_another_model(self):
        other = self.other_model()
        with self.subTest("its manifest"):
            shutil.copy(other / "manifest.json", self.newest)
            self.assert_refused(self.newest / "weights-rank-00000.safetensors", "header")
        with self.subTest("all of it"):
            shutil.rmtree(self.newest)
            shutil.copytree(other, self.newest)
            self.assert_refused(self.newest, "tok_embeddings.weight is (2048, 32), the model's is (2048, 64)", inspects=False)

    def test_overlapping_and_duplicate_slices(self):
        path = self.newest / self.WEIGHTS
        with self.subTest("overlapping"):
            entries, _ = header(path)
            offsets = json.loads(entries["__metadata__"]["DCP_SHARDING_INFO"])
            self.assertGreater(offsets[self.MATRIX]["saved_offsets"][0], 1)
            offsets[self.MATRIX]["saved_offsets"][0] -= 1
            entries["__metadata__"]["DCP_SHARDING_INFO"] = json.dumps(offsets)
            write_header(path, entries)
            sign(self.newest)
            self.assert_refused(path, self.MATRIX, "overlaps", self.newest / "weights-rank-00000.safetensors")
        with self.subTest("duplicate"):
            self.renew()
            manifest = json.loads((self.newest / "manifest.json").read_text())
            shutil.copy(path, self.newest / "weights-rank-00009.safetensors")
            entry = next(file for file in manifest["files"] if file["name"] == self.WEIGHTS)
            manifest["files"].append(entry | {"name": "weights-rank-00009.safetensors"})
            write_manifest(self.newest, manifest)
            self.assert_refused(path, "is stored twice in part", self.newest / "weights-rank-00009.safetensors")
        with self.subTest("gap"):
            self.renew()
            manifest = json.loads((self.newest / "manifest.json").read_text())
            manifest["files"] = [file for file in manifest["files"] if file["name"] != "weights-rank-00000.safetensors"]
            write_manifest(self.newest, manifest)
            self.assert_refused(path, "has gaps")

    def lies(self):
        """{kind: (header, expected message)}; each header describes another tensor than the file holds."""
        def changed(**members):
            entries, _ = header(saved_by_two()[1] / "step-4" / self.WEIGHTS)
            entries[self.MATRIX].update(members)
            return entries
        begin, end = header(saved_by_two()[1] / "step-4" / self.WEIGHTS)[0][self.MATRIX]["data_offsets"]
        whole = json.dumps(changed())
        entry = json.dumps(self.MATRIX) + ": " + json.dumps(changed()[self.MATRIX])
        self.assertIn(entry, whole)
        return {
            "shape product": (changed(shape=[3, 5]), "does not fit its type and shape"),
            "shape overflow": (changed(shape=[2**40, 2**40]), "beyond 64 bits"),
            "negative size": (changed(shape=[-64, -192]), "shape[0]: the negative number -64"),
            "offsets beyond the data": (changed(data_offsets=[begin, end + 2**40]), "at bytes"),
            "overlapping bytes": (changed(data_offsets=[begin - 8, end - 8]), "overlaps"),
            "bytes of nobody": (changed(data_offsets=[begin + 8, end]), "belong to no tensor"),
            "backwards": (changed(data_offsets=[end, begin]), "at bytes"),
            "unknown type": (changed(dtype="F33"), "unknown type"),
            "twice": (whole.replace(entry, entry + ", " + entry).encode(), "occurs twice"),
            "no object": (b"[1, 2, 3]", "does not start with '{'"),
            "cut text": (whole[:-300].encode(), "cannot read"),
        }

    @thorough
    def test_headers_with_lies(self):
        """With a manifest that matches the file, and without one: a plain folder of shards."""
        plain = self.folder / "plain"
        names_no_tensor = ("no object", "cut text")
        for kind, (text, part) in self.lies().items():
            with self.subTest(kind):
                self.renew()
                path = self.newest / self.WEIGHTS
                write_header(path, text)
                sign(self.newest)
                about = [] if kind in names_no_tensor or kind in ("overlapping bytes", "bytes of nobody") else [self.MATRIX]
                self.assert_refused(path, *about, part)
                shutil.rmtree(plain, ignore_errors=True)
                plain.mkdir()
                for file in self.newest.glob("weights-*"):
                    shutil.copy(file, plain)
                self.refuse_start_from(plain, plain / self.WEIGHTS, *about, part)

    def refuse_start_from(self, folder, *parts):
        self.out, own = self.folder / "fresh", self.out
        run = self.run_ranks(1, "--checkpoint.initial_load_path", folder, code=1, within=HANG)
        self.assert_holds(run.stderr, *map(str, parts))
        self.assertEqual(complete_steps(self.saved), {})
        self.out = own

    def test_header_of_200_megabytes(self):
        """The header is not read, and its length is not trusted."""
        plain = self.folder / "plain"
        plain.mkdir()
        shutil.copy(self.newest / self.WEIGHTS, plain)
        for path in (self.newest / self.WEIGHTS, plain / self.WEIGHTS):
            with open(path, "r+b") as file:
                file.write(struct.pack("<Q", 200_000_000))
                file.truncate(201_000_000)
        self.refuse_start_from(plain, plain / self.WEIGHTS, "200000000 bytes, the format allows 100000000")
        self.assert_refused(self.newest / self.WEIGHTS, "its header")
        with self.subTest("with a manifest made to fit"):
            sign(self.newest)
            self.assert_refused(self.newest / self.WEIGHTS, "its header")


if __name__ == "__main__":
    main()
