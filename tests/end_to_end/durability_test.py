"""Reported files survive a power failure: the order in which files are written, synced and renamed, recorded by a library
that is preloaded (tests/tools/file_watch.cpp). A file is durable if it was synced after its last write and before
its rename, and its folder after that; a checkpoint's manifest comes last."""

import json
import os
import pathlib
from collections import namedtuple

from checkpoint_case import CheckpointCase, complete_steps
from download_case import MODEL_FILES, DownloadCase
from harness import ROOT, main, titan

LIBRARY = pathlib.Path(os.environ["TITAN_WORK"]).parent / "file_watch" / "libtitan_file_watch.so"
Call = namedtuple("Call", "what path to")


class Watch:
    """Calls of programs on files below `folder`."""

    def __init__(self, folder):
        self.log = folder.parent / f"{folder.name}.calls"
        # with AddressSanitizer the program requires that its runtime is loaded before the library
        self.variables = {"LD_PRELOAD": str(LIBRARY), "TITAN_WATCH_FOLDER": str(folder), "TITAN_WATCH_LOG": str(self.log),
                          "ASAN_OPTIONS": "verify_asan_link_order=0:" + os.environ.get("ASAN_OPTIONS", "")}

    def calls(self):
        return [Call(*(line.split("\t") + [""])[:3]) for line in self.log.read_text().splitlines()]

    def places(self, what, path):
        return [place for place, call in enumerate(self.calls()) if call.what == what and str(path) in (call.path, call.to)]


class DurabilityCase(CheckpointCase):
    def setUp(self):
        super().setUp()
        self.assertTrue(LIBRARY.exists(), LIBRARY)
        self.watch = Watch(self.out)

    def assert_durable(self, path, before=None):
        """`path` was durably renamed into place before call number `before`. Returns the call number of the rename."""
        renames = [place for place, call in enumerate(self.watch.calls()) if call.what == "rename" and call.to == str(path)]
        self.assertEqual(len(renames), 1, f"{path} was not renamed into place once")
        renamed = renames[0]
        source = self.watch.calls()[renamed].path
        written, synced = self.watch.places("write", source), self.watch.places("sync", source)
        self.assertTrue(written or path.stat().st_size == 0, f"{source} was never written")
        self.assertTrue([place for place in synced if max(written, default=-1) < place < renamed],
                        f"{source} was not synced between its last write and its rename")
        self.assertEqual([place for place in self.watch.places("write", path) if place > renamed], [])
        self.assert_synced(path.parent, renamed, before)
        return renamed

    def assert_synced(self, folder, after, before=None):
        end = len(self.watch.calls()) if before is None else before
        self.assertTrue([place for place in self.watch.places("sync", folder) if after < place < end],
                        f"the folder {folder} was not synced after call {after} and before {end}")


class CheckpointTest(DurabilityCase):
    def run_watched(self, ranks, *arguments):
        self.run_ranks(ranks, *arguments, prefix=["env", *(f"{name}={value}" for name, value in self.watch.variables.items())])

    def assert_checkpoint_is_durable(self, folder):
        manifest = folder / "manifest.json"
        complete = self.assert_durable(manifest)
        files = [path for path in folder.iterdir() if path != manifest]
        self.assertEqual({path.name for path in files},
                         {file["name"] for file in json.loads(manifest.read_text())["files"]})
        for path in files:
            self.assert_durable(path, before=complete)
        for parent in (folder.parent, folder.parent.parent):  # their own names may be new
            self.assert_synced(parent, complete)
        return len(files)

    def test_the_manifest_comes_when_everything_else_is_on_the_disk(self):
        for mode in ("disabled", "async"):
            for ranks in (1, 2):
                with self.subTest(mode=mode, ranks=ranks):
                    self.out = self.folder / f"{mode}{ranks}"
                    self.watch = Watch(self.out)
                    self.run_watched(ranks, "--training.steps", 2, "--checkpoint.interval", 1, "--checkpoint.async_mode", mode)
                    found = complete_steps(self.saved)
                    self.assertEqual(list(found), [1, 2])
                    for path in found.values():
                        self.assertGreater(self.assert_checkpoint_is_durable(path), 2 * ranks)

    def test_weights_in_the_form_of_hugging_face(self):
        self.run_watched(1, "--training.steps", 1, "--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf")
        files = [path for path in self.saved.rglob("*") if path.is_file()]
        self.assertIn("model.safetensors", [path.name for path in files])
        for path in files:
            self.assert_durable(path)

    def test_conversion(self):
        self.run_ranks(1, "--training.steps", 1)
        exported = self.folder / "exported"
        self.watch = Watch(exported)
        run = titan("convert", "to-hf", self.saved / "step-1", exported, **self.watch.variables)
        self.assertEqual(run.returncode, 0, run.stderr)
        files = [path for path in exported.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 1)
        for path in files:
            self.assert_durable(path)


class TokenFilesTest(DurabilityCase):
    def test_ids_are_there_before_their_index(self):
        self.out.mkdir()
        run = titan("tokenize", "--output", self.out / "data", "--training.dataset", "jsonl", "--training.dataset_path",
                    ROOT / "tests/assets/corpus/validation.jsonl", "--model.hf_assets_path", ROOT / "tests/assets/tokenizer",
                    **self.watch.variables)
        self.assertEqual(run.returncode, 0, run.stderr)
        index = self.assert_durable(self.out / "data.idx")
        self.assert_durable(self.out / "data.bin", before=index)


class DownloadTest(DownloadCase):
    def test_a_file_has_its_name_only_when_it_is_on_the_disk(self):
        self.start_hub()
        watch = self.watch = Watch(self.out)
        self.download(env=watch.variables)
        self.assert_files(MODEL_FILES)
        for name in MODEL_FILES:
            DurabilityCase.assert_durable(self, self.out / name)

    assert_synced = DurabilityCase.assert_synced


if __name__ == "__main__":
    main()
