"""`titan tokenize`: text to .bin and .idx. NumPy reads the files directly, and the ids are judged by Hugging Face's
tokenizers; killed, stopped, without disk space or with bad data, it resumes to the same bytes."""

import base64
import gzip
import json
import os
import pathlib
import random
import resource
import signal
import subprocess
import time

import numpy
import tiktoken
from tokenizers import Tokenizer

from harness import HANG, ROOT, TITAN, Case, environment, main, thorough, titan

CORPUS = ROOT / "tests/assets/corpus/train.jsonl"
ASSETS = ROOT / "tests/assets/tokenizer"
DTYPES = {1: numpy.uint8, 2: numpy.int8, 3: numpy.int16, 4: numpy.int32, 5: numpy.int64, 8: numpy.uint16}


def read_pair(prefix):
    """The documents of PREFIX.bin and PREFIX.idx as arrays; checks every byte of the index."""
    raw = pathlib.Path(f"{prefix}.idx").read_bytes()
    assert raw[:9] == b"MMIDIDX\0\0", raw[:9]
    assert int.from_bytes(raw[9:17], "little") == 1
    dtype = numpy.dtype(DTYPES[raw[17]])
    sequences, entries = (int(n) for n in numpy.frombuffer(raw, "<u8", 2, 18))
    assert len(raw) == 34 + 12 * sequences + 8 * entries
    sizes = numpy.frombuffer(raw, "<i4", sequences, 34)
    offsets = numpy.frombuffer(raw, "<i8", sequences, 34 + 4 * sequences)
    starts = numpy.frombuffer(raw, "<i8", entries, 34 + 12 * sequences)
    ids = numpy.fromfile(f"{prefix}.bin", dtype)
    ends = numpy.cumsum(sizes, dtype=numpy.int64)
    assert (offsets == (ends - sizes) * dtype.itemsize).all()
    assert (starts == numpy.arange(sequences + 1)).all()
    assert ends[-1] == len(ids)
    return numpy.split(ids, ends[:-1]), dtype


def pair(prefix):
    return [pathlib.Path(f"{prefix}.{suffix}").read_bytes() for suffix in ("bin", "idx")]


def texts_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["text"] for line in file]


def framing():
    """BOS and EOS as tokenizer_config.json of the bundled tokenizer names them."""
    config = json.loads((ASSETS / "tokenizer_config.json").read_text())
    reference = Tokenizer.from_file(str(ASSETS / "tokenizer.json"))

    def ids(name):
        token = config.get(name)
        token = token["content"] if isinstance(token, dict) else token
        return [] if token is None else [reference.token_to_id(token)]

    return ids("bos_token"), ids("eos_token")


class TokenizeTest(Case):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "out" / "corpus"

    def arguments(self, *more, prefix=None, path=CORPUS, workers=2):
        return ["tokenize", "--output", prefix or self.prefix, "--workers", workers, "--training.dataset", "jsonl",
                "--training.dataset_path", path, "--model.hf_assets_path", ASSETS, *more]

    def tokenize(self, *more, code=0, **given):
        run = titan(*self.arguments(*more, **given))
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stderr

    def start(self, **given):
        return subprocess.Popen([TITAN, *map(str, self.arguments(**given))], cwd=ROOT, env=environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def large(self, copies=40):
        """The corpus repeated, so that a run takes seconds."""
        path = self.folder / "large.jsonl"
        text = CORPUS.read_bytes()
        with open(path, "wb") as file:
            for _ in range(copies):
                file.write(text)
        return path

    def remove_files(self):
        for file in self.prefix.parent.iterdir():
            file.unlink()

    def interrupt_after_an_entry(self, path, number):
        """Exit code and message of a run that gets signal `number` once its journal has one more entry."""
        for _ in range(20):
            before = self.journaled()
            run = self.start(path=path, workers=1)
            while run.poll() is None and self.journaled() == before:
                time.sleep(0.01)
            run.send_signal(number)
            message = run.communicate(timeout=HANG)[1]
            if run.returncode != 0:
                return run.returncode, message
            self.remove_files()  # it finished before the signal: start again
        self.fail("twenty runs were done before they could be interrupted")

    def files(self):
        return sorted(path.name for path in self.prefix.parent.iterdir())

    def journaled(self, prefix=None):
        """Number of documents that the journal records as durable."""
        try:
            text = pathlib.Path(f"{prefix or self.prefix}.journal").read_text()
        except FileNotFoundError:  # not there yet, or the run has finished
            return 0
        lines = text[:text.rfind("\n") + 1].splitlines()[1:]
        return json.loads(lines[-1])["documents"] if lines else 0

    # --- output
    # -----------------------------------------------------------------------------------------------------------

    def test_the_ids_are_those_of_the_reference_library_between_bos_and_eos(self):
        self.tokenize()
        documents, dtype = read_pair(self.prefix)
        self.assertEqual(dtype, numpy.uint16)
        texts = texts_of(CORPUS)
        bos, eos = framing()
        reference = Tokenizer.from_file(str(ASSETS / "tokenizer.json"))
        encoded = reference.encode_batch(texts, add_special_tokens=False)
        self.assertEqual(len(documents), len(texts))
        for number, (document, expected) in enumerate(zip(documents, encoded)):
            self.assertEqual(document.tolist(), bos + expected.ids + eos, f"document {number}")
        self.assertEqual(self.files(), ["corpus.bin", "corpus.idx"])

    def test_bos_and_eos_can_be_left_away(self):
        bos, eos = framing()
        self.tokenize(prefix=self.folder / "both")
        self.tokenize("--no-bos", prefix=self.folder / "eos")
        self.tokenize("--no-bos", "--no-eos", prefix=self.folder / "neither")
        both, with_eos, neither = (read_pair(self.folder / name)[0] for name in ("both", "eos", "neither"))
        for a, b, c in zip(both, with_eos, neither, strict=True):
            self.assertEqual(a.tolist(), bos + b.tolist())
            self.assertEqual(b.tolist(), c.tolist() + eos)

    def test_the_bytes_do_not_depend_on_the_number_of_workers(self):
        for workers in (1, 2, 4):
            self.tokenize(workers=workers, prefix=self.folder / f"w{workers}")
        self.assertEqual(pair(self.folder / "w1"), pair(self.folder / "w2"))
        self.assertEqual(pair(self.folder / "w1"), pair(self.folder / "w4"))

    def test_a_compressed_source_gives_the_same_bytes_as_a_plain_one(self):
        lines = CORPUS.read_bytes().splitlines(keepends=True)
        for shard in range(3):
            with gzip.open(self.folder / f"part{shard}.jsonl.gz", "wb") as file:
                file.writelines(lines[shard * 1000:(shard + 1) * 1000])
        self.tokenize(prefix=self.folder / "plain")
        self.tokenize(prefix=self.folder / "packed", path=self.folder / "part*.jsonl.gz")
        self.assertEqual(pair(self.folder / "plain"), pair(self.folder / "packed"))

    def test_what_it_wrote_is_copied_as_it_is_when_read_again(self):
        self.tokenize()
        again = self.folder / "again"
        run = titan("tokenize", "--output", again, "--training.dataset", "megatron", "--training.dataset_path", self.prefix,
                    "--model.hf_assets_path", ASSETS)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(pair(again), pair(self.prefix))

    def test_tokens_are_copied_without_a_tokenizer(self):
        self.tokenize()
        again = self.folder / "again"
        run = titan("tokenize", "--output", again, "--training.dataset", "megatron", "--training.dataset_path", self.prefix,
                    "--model.hf_assets_path", self.folder / "none")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assert_holds(run.stderr, "needs no tokenizer")
        documents, dtype = read_pair(again)
        self.assertEqual(dtype, numpy.int32)  # the largest id of such data is unknown
        for ours, theirs in zip(documents, read_pair(self.prefix)[0], strict=True):
            self.assertEqual(ours.tolist(), theirs.tolist())
        run = titan(*self.arguments("--model.hf_assets_path", self.folder / "none", prefix=self.folder / "text"))
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assert_holds(run.stderr, "no tokenizer in", "the data set 'jsonl' is text and needs it")

    def test_ids_that_belong_to_no_token_are_no_hindrance(self):
        """tiktoken's encodings have gaps between ranks and special tokens, and a folder's vocab may have them too."""
        ranks = {bytes([byte]): 2 * byte for byte in range(256)} | {b" t": 900, b"he": 901, b" the": 1000}
        self.write("assets/tokenizer.model", "".join(
            f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        reference = tiktoken.Encoding("holes", pat_str=r"\S+|\s+(?=\S)|\s+", mergeable_ranks=ranks, special_tokens={"<|end|>": 1200})
        run = titan(*self.arguments("--tokenizer.name", "tiktoken", "--tokenizer.pattern", reference._pat_str,
                                    "--tokenizer.special_tokens", "<|end|>=1200", "--tokenizer.bos", "", "--tokenizer.eos", "<|end|>",
                                    "--model.hf_assets_path", self.folder / "assets"))
        self.assertEqual(run.returncode, 0, run.stderr)
        documents, _ = read_pair(self.prefix)
        self.assertEqual([document.tolist() for document in documents],
                         [ids + [1200] for ids in reference.encode_ordinary_batch(texts_of(CORPUS), num_threads=1)])
        tokenizer = json.loads((ASSETS / "tokenizer.json").read_text())
        vocab = tokenizer["model"]["vocab"]
        vocab[max(vocab, key=vocab.get)] += 700
        self.write("json/tokenizer.json", json.dumps(tokenizer | {"added_tokens": [], "post_processor": None}))
        reference = Tokenizer.from_file(str(self.folder / "json/tokenizer.json"))
        run = titan(*self.arguments("--model.hf_assets_path", self.folder / "json", prefix=self.folder / "json/corpus"))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual([document.tolist() for document in read_pair(self.folder / "json/corpus")[0]],
                         [encoding.ids for encoding in reference.encode_batch(texts_of(CORPUS), add_special_tokens=False)])

    def test_the_field_and_the_rest_can_come_from_a_file(self):
        data = self.write("other.jsonl", "".join(json.dumps({"content": text}) + "\n" for text in ("one", "two two", "")))
        config = self.write("job.toml", f'[job]\ndescription = "x"\n[training]\ndataset = "jsonl"\ndataset_path = "{data}"\n'
                            f'seq_len = 8\n[optimizer]\nname = "none such"\n[model]\nname = "none such either"\n'
                            f'hf_assets_path = "{ASSETS}"\n[dataset.jsonl]\nfield = "content"\n')
        run = titan("tokenize", "--output", self.prefix, "--job.config_file", config)
        self.assertEqual(run.returncode, 0, run.stderr)
        documents, _ = read_pair(self.prefix)
        reference = Tokenizer.from_file(str(ASSETS / "tokenizer.json"))
        bos, eos = framing()
        self.assertEqual([d.tolist() for d in documents],
                         [bos + reference.encode(t, add_special_tokens=False).ids + eos for t in ("one", "two two", "")])

    # --- interruptions ----------------------------------------------------------------------------------------------------

    @thorough
    def test_killed_ten_times_it_ends_with_the_same_bytes(self):
        path = self.large()
        start = time.monotonic()
        self.tokenize(path=path, workers=1, prefix=self.folder / "whole")
        whole = time.monotonic() - start
        chance = random.Random(7)
        kills, last = 0, 0
        while kills < 10:
            run = self.start(path=path, workers=chance.choice((1, 2, 3)))
            try:
                run.wait(timeout=chance.uniform(0.1, 0.35) * whole)
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
            message = run.communicate()[1]
            self.assertIn(run.returncode, (0, -signal.SIGKILL), message)
            if run.returncode == 0 or pathlib.Path(f"{self.prefix}.idx").exists():  # finished, or killed during its last steps
                self.assertEqual(pair(self.prefix), pair(self.folder / "whole"))
                self.remove_files()
                last = 0
                continue
            kills += 1
            self.assertGreaterEqual(self.journaled(), last)
            last = self.journaled()
        message = self.tokenize(path=path)
        if last:
            self.assertIn(f"continuing after {last:,} documents", message)
        self.assertEqual(pair(self.prefix), pair(self.folder / "whole"))
        self.assertEqual(self.files(), ["corpus.bin", "corpus.idx"])

    @thorough
    def test_sigint_and_sigterm_say_how_to_go_on(self):
        path = self.large(copies=160)  # a fast machine must not finish before the second signal
        self.tokenize(path=path, prefix=self.folder / "whole")
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            ended, message = self.interrupt_after_an_entry(path, number)
            self.assertEqual(ended, code, message)
            self.assert_holds(message, "stopped after", "run the same command again to continue")
        self.assertGreater(self.journaled(), 0)
        self.tokenize(path=path)
        self.assertEqual(pair(self.prefix), pair(self.folder / "whole"))

    def test_a_full_disk_names_the_file_and_the_same_command_continues(self):
        self.tokenize(prefix=self.folder / "whole")
        limit = pathlib.Path(f"{self.folder}/whole.bin").stat().st_size // 2
        run = subprocess.run([TITAN, *map(str, self.arguments())], cwd=ROOT, env=environment(), capture_output=True, text=True,
                             stdin=subprocess.DEVNULL, timeout=HANG,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assert_holds(run.stderr, f"cannot write {self.prefix}.bin.part: File too large", "run the same command again to continue")
        self.tokenize()
        self.assertEqual(pair(self.prefix), pair(self.folder / "whole"))

    def test_other_text_another_tokenizer_and_other_options_are_no_continuation(self):
        path = self.large()
        self.interrupt_after_an_entry(path, signal.SIGKILL)
        before = self.journaled()
        tokenizer = json.loads((ASSETS / "tokenizer.json").read_text())
        tokenizer["model"]["merges"] = tokenizer["model"]["merges"][:-50]
        for name in ("tokenizer_config.json", "special_tokens_map.json"):
            if (ASSETS / name).exists():
                self.write(f"assets/{name}", (ASSETS / name).read_text())
        self.write("assets/tokenizer.json", json.dumps(tokenizer))
        for more, what in ((["--no-eos"], "token after each document"),
                           (["--model.hf_assets_path", self.folder / "assets"], "the tokenizer was"),
                           (["--dataset.jsonl.field", "source"], "data set's options")):
            self.assert_holds(self.tokenize(*more, path=path, code=2), "cannot continue", what, "--overwrite")
        with open(path, "a") as file:
            file.write('{"text": "one more"}\n')
        self.assert_holds(self.tokenize(path=path, code=2), "content of the data set", "--overwrite")
        self.assertEqual(self.journaled(), before)
        self.tokenize("--overwrite", path=path)
        self.assertEqual(len(read_pair(self.prefix)[0]), len(texts_of(path)))

    # --- refusals
    # ---------------------------------------------------------------------------------------------------------

    def test_a_bad_line_is_named_and_nothing_looks_finished(self):
        lines = CORPUS.read_text().splitlines(keepends=True)
        lines[1500] = '{"text": 5}\n'
        lines[2000] = "no json\n"
        path = self.write("bad.jsonl", "".join(lines))
        for workers in (1, 3):
            message = self.tokenize(path=path, workers=workers, code=1)
            self.assert_holds(message, "bad.jsonl:1501")
            self.assertFalse(pathlib.Path(f"{self.prefix}.bin").exists())
            self.assertFalse(pathlib.Path(f"{self.prefix}.idx").exists())

    def test_a_result_is_not_replaced_unasked(self):
        self.write("out/corpus.bin", "precious")
        self.assert_holds(self.tokenize(code=2), "the output exists", "corpus.bin", "--overwrite")
        self.assertEqual((self.prefix.parent / "corpus.bin").read_text(), "precious")
        self.assertEqual(self.files(), ["corpus.bin"])
        self.tokenize("--overwrite")
        self.assertEqual(len(read_pair(self.prefix)[0]), 2737)

    def test_an_output_that_cannot_be_written_is_found_at_the_start(self):
        self.write("file", "x")
        self.write("tokenizer.json", "not read yet")
        for suffix in ("bin", "idx", "bin.part", "sizes.part", "idx.part", "journal"):
            prefix = self.folder / f"to_{suffix}" / "corpus"
            pathlib.Path(f"{prefix}.{suffix}").mkdir(parents=True)
            message = self.tokenize("--overwrite", "--model.hf_assets_path", self.folder, prefix=prefix, code=2)
            self.assert_holds(message, f"corpus.{suffix}: it is a folder", "another --output")
            self.assertEqual([path.name for path in prefix.parent.iterdir()], [f"corpus.{suffix}"])
        pipe = self.folder / "pipe.bin.part"
        os.mkfifo(pipe)
        self.assert_holds(self.tokenize(prefix=self.folder / "pipe", code=2), "pipe.bin.part: it is not a regular file")
        self.assert_holds(self.tokenize(prefix=self.folder / "file" / "deep" / "corpus", code=2), "file is not a folder")

    def test_two_at_once_do_not_share_an_output(self):
        path = self.large()
        for _ in range(20):
            run = self.start(path=path, workers=1)
            try:
                while run.poll() is None and not self.journaled():
                    time.sleep(0.01)
                run.send_signal(signal.SIGSTOP)  # stopped, it keeps its lock until the other process has checked
                if run.poll() is None:
                    self.assert_holds(self.tokenize(path=path, code=1), "another titan tokenize", "corpus.journal")
                    return
            finally:
                run.kill()
                run.communicate()
            self.remove_files()  # it finished before the signal: start again
        self.fail("twenty runs were done before they could be stopped")

    def test_wrong_arguments_are_named(self):
        for words, parts in ((["tokenize"], ["--output PREFIX"]),
                             (["tokenize", "--output", f"{self.folder}/"], ["is a folder"]),
                             (["tokenize", "--output", self.folder / "x.bin"], [".bin"]),
                             (self.arguments("--workers", "0"), ["--workers"]),
                             (self.arguments("--training.dataset", "jsonk"), ["jsonk", "jsonl"]),
                             (self.arguments("--dataset.jsonl.feild", "x"), ["feild", "field"]),
                             (self.arguments("--training.datset", "x"), ["training.dataset", "See: titan tokenize --help"]),
                             (self.arguments("--model.hf_assets_path", self.folder), [str(self.folder)])):
            run = titan(*words)
            self.assertNotEqual(run.returncode, 0, words)
            self.assert_holds(run.stderr, *parts)
        self.assertFalse(self.prefix.parent.exists())

    # --- speed ------------------------------------------------------------------------------------------------------------

    @thorough
    def test_two_workers_are_measured_beside_one(self):
        """Figures for the log only: the test compares bytes, not speed."""
        path = self.large()
        seconds = {}
        for workers in (1, 2):
            prefix = self.folder / f"speed{workers}"
            start = time.monotonic()
            self.tokenize(path=path, workers=workers, prefix=prefix)
            seconds[workers] = time.monotonic() - start
        size = sum(len(text.encode()) for text in texts_of(path)) / 1e6
        print(f"\n{size:.1f} MB of text: 1 worker {size / seconds[1]:.1f} MB/s, 2 workers {size / seconds[2]:.1f} MB/s, "
              f"ratio {seconds[1] / seconds[2]:.2f} on {len(os.sched_getaffinity(0))} cores")
        self.assertEqual(pair(self.folder / "speed1"), pair(self.folder / "speed2"))


if __name__ == "__main__":
    main()
