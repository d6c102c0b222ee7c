"""Saving and resuming: an interrupted run equals an uninterrupted one, bit for bit and under any layout, and the keys of [checkpoint]
do what they say. The files are read by the package safetensors."""

import functools
import json
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile

import numpy
import xxhash
from safetensors.numpy import load_file, save_file

from harness import DEBUG_CONFIG, HANG, ROOT, TINY, TITAN, Background, main, metrics, thorough, titan
from ranks_test import RanksCase, bare_environment, fingerprints

RECIPE = [*TINY, "--training.global_batch_size", "4", "--training.local_batch_size", "1", "--debug.fingerprints", "--debug.seed", "7",
          "--metrics.log_freq", "1", "--checkpoint.enable", "--checkpoint.no_last_save_model_only"]
COMPARED = ("loss_metrics/global_avg_loss", "loss_metrics/global_max_loss", "grad_norm", "lr", "n_tokens_seen")


def with_config(path):
    return [str(path) if word == DEBUG_CONFIG else word for word in RECIPE]


def steps(number):
    """Total number of steps; the learning rate schedule stays that of 20."""
    return ["--training.steps", str(number), "--lr_scheduler.warmup_steps", "2"]


def state(folder):
    """Every tensor of a checkpoint, assembled from its shards."""
    pieces, shapes = {}, {}
    for path in sorted(pathlib.Path(folder).glob("*.safetensors")):
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        offsets = json.loads(header["__metadata__"]["DCP_SHARDING_INFO"])
        for name, tensor in load_file(path).items():
            at = offsets[name]["saved_offsets"]
            pieces.setdefault(name, []).append((at, tensor))
            ends = [a + n for a, n in zip(at, tensor.shape)]
            shapes[name] = [max(x, y) for x, y in zip(shapes.get(name, ends), ends)]
    whole = {}
    for name, parts in pieces.items():
        whole[name] = numpy.empty(shapes[name], parts[0][1].dtype)
        for at, tensor in parts:
            whole[name][tuple(slice(a, a + n) for a, n in zip(at, tensor.shape))] = tensor
    return whole


def compared(folder):
    return {line["step"]: tuple(line.get(tag) for tag in COMPARED) for line in metrics(folder)}


def tokens(folder):
    lines = [json.loads(line) for line in fingerprints(folder).splitlines()]
    return {line["step"]: line["tokens"] for line in lines if "tokens" in line}


@functools.cache
def straight():
    """20 uninterrupted steps on one rank; the folder lives as long as the program."""
    keeper = tempfile.TemporaryDirectory(prefix="titan_")
    folder = pathlib.Path(keeper.name)
    run = subprocess.run([TITAN, "train", *RECIPE, *steps(20), "--checkpoint.interval", "10", "--job.dump_folder", folder], cwd=ROOT,
                         env=bare_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
    assert run.returncode == 0, run.stderr
    return keeper, folder


class CheckpointCase(RanksCase):
    def setUp(self):
        super().setUp()
        self.recipe = RECIPE

    def run_ranks(self, ranks, *arguments, code=0, out=None, config=DEBUG_CONFIG, **env):
        launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
        out = out or self.out
        run = subprocess.run([TITAN, *map(str, launch), "train", *with_config(config), "--job.dump_folder", str(out),
                              *map(str, arguments)], cwd=ROOT,
                             env=bare_environment(**env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def steps_in(self, folder=None):
        return sorted(int(path.name[5:]) for path in (folder or self.out / "checkpoint").glob("step-*"))

    def assert_same_state(self, left, right, exact=True):
        left, right = state(left), state(right)
        self.assertEqual(left.keys(), right.keys())
        for name in left:
            if exact:
                self.assertTrue(numpy.array_equal(left[name], right[name]), name)
            else:
                numpy.testing.assert_allclose(left[name], right[name], rtol=2e-4, atol=2e-6, err_msg=name)


class ResumeTest(CheckpointCase):
    def resume(self, ranks, *layout):
        """Copies step 10 of the uninterrupted run and resumes to 20."""
        _, folder = straight()
        (self.out / "checkpoint").mkdir(parents=True)
        subprocess.run(["cp", "-r", folder / "checkpoint" / "step-10", self.out / "checkpoint"], check=True)
        run = self.run_ranks(ranks, *steps(20), "--checkpoint.interval", "10", *layout)
        self.assertIn("resumed after step 10", run.stderr)
        return folder

    def test_ten_and_ten_steps_are_twenty_bit_for_bit(self):
        self.ten_and_ten("async")

    @thorough
    def test_ten_and_ten_steps_are_twenty_bit_for_bit_in_the_other_modes(self):
        self.ten_and_ten("disabled", "async_with_pinned_mem")

    def ten_and_ten(self, *modes):
        for mode in modes:
            out = self.folder / mode
            first = self.run_ranks(1, *steps(20), "--checkpoint.interval", "10", "--checkpoint.async_mode", mode, out=out)
            self.assertIn("saved step 10", first.stderr)
            subprocess.run(["rm", "-r", out / "checkpoint" / "step-20"], check=True)
            before = compared(out)
            self.run_ranks(1, *steps(20), "--checkpoint.interval", "10", "--checkpoint.async_mode", mode, out=out)
            _, folder = straight()
            self.assertEqual(compared(out), compared(folder))
            self.assertEqual(before, compared(folder))
            self.assertEqual({step: tokens(folder)[step] for step in range(11, 21)}, {step: tokens(out)[step] for step in range(11, 21)})
            self.assert_same_state(out / "checkpoint/step-20", folder / "checkpoint/step-20")

    def same_within_rounding(self, ranks, *layout):
        folder = self.resume(ranks, *layout)
        theirs, ours = compared(folder), compared(self.out)
        self.assertEqual(sorted(ours), list(range(11, 21)))
        for step, values in ours.items():
            average, _, *others, seen = values  # the largest loss of a rank differs where ranks have other rows
            numpy.testing.assert_allclose((average, *others), (theirs[step][0], *theirs[step][2:4]), rtol=1e-4)
            self.assertEqual(seen, theirs[step][4])
        self.assertEqual({step: tokens(folder)[step] for step in range(11, 21)}, tokens(self.out))
        self.assert_same_state(self.out / "checkpoint/step-20", folder / "checkpoint/step-20", exact=False)

    def test_two_shards_go_on_from_one_rank(self):
        self.same_within_rounding(2, "--parallelism.data_parallel_shard_degree", "2")

    @thorough
    def test_two_replicas_times_two_tensor_ranks_go_on_from_one_rank(self):
        self.same_within_rounding(4, "--parallelism.data_parallel_replicate_degree", "2", "--parallelism.data_parallel_shard_degree",
                                  "1", "--parallelism.tensor_parallel_degree", "2")

    @thorough
    def test_the_first_state_after_a_resume_is_the_stored_one_under_any_layout(self):
        """DDP 4 -> DDP 2 x TP 2 -> 1 rank -> FSDP 3, uneven: each step is one more, each saved state is loaded exactly."""
        chain = [(4, 4, 1, 1), (4, 2, 1, 2), (1, 1, 1, 1), (3, 1, 3, 1)]
        weights = []
        for number, (ranks, replicate, shard, tensor) in enumerate(chain):
            self.run_ranks(ranks, *steps(20), "--training.steps", str(number + 1), "--training.global_batch_size", "12",
                           "--checkpoint.interval", "1",
                           "--parallelism.data_parallel_replicate_degree", replicate, "--parallelism.data_parallel_shard_degree", shard,
                           "--parallelism.tensor_parallel_degree", tensor)
            lines = [json.loads(line) for line in fingerprints(self.out).splitlines()]
            weights.append({line["parameter"]: line["xxh3"] for line in lines if "parameter" in line})
        self.assertEqual(self.steps_in(), [1, 2, 3, 4])
        for number in range(1, len(chain)):
            stored = state(self.out / f"checkpoint/step-{number}")
            for name, digest in weights[number].items():
                self.assertEqual(digest, xxhash.xxh3_64_hexdigest(stored[name].tobytes()), f"{name} at the start of part {number}")


class KeysTest(CheckpointCase):
    """The effect of each key of [checkpoint]."""

    def losses(self, out=None):
        return {step: values[0] for step, values in compared(out or self.out).items()}

    def manifest(self, step, out=None):
        return json.loads(((out or self.out) / f"checkpoint/step-{step}/manifest.json").read_text())

    def test_interval_first_step_and_keep_latest_k(self):
        self.run_ranks(1, "--training.steps", "9", "--checkpoint.interval", "2", "--checkpoint.keep_latest_k", "3",
                       "--checkpoint.enable_first_step_checkpoint")
        self.assertEqual(self.steps_in(), [6, 8, 9])
        out = self.folder / "all"
        self.run_ranks(1, "--training.steps", "5", "--checkpoint.interval", "2", "--checkpoint.keep_latest_k", "0",
                       "--checkpoint.enable_first_step_checkpoint", out=out)
        self.assertEqual(self.steps_in(out / "checkpoint"), [1, 2, 4, 5])

    def test_load_step_goes_back_and_newer_steps_are_named(self):
        self.run_ranks(1, *steps(6), "--checkpoint.interval", "2")
        before = self.losses()
        run = self.run_ranks(1, *steps(6), "--checkpoint.interval", "2", "--checkpoint.load_step", "2")
        self.assert_holds(run.stderr, "resumed after step 2", "step-6' and 1 more (steps 4, 6) belong to an earlier branch")
        self.assertEqual(self.losses(), before)
        self.assertEqual(self.steps_in(), [2, 4, 6])  # saved again, and nothing was left moved aside
        self.assertEqual([path.name for path in (self.out / "checkpoint").glob("replaced-*")], [])
        run = self.run_ranks(1, *steps(6), "--checkpoint.load_step", "3", code=2)
        self.assert_holds(run.stderr, "checkpoint.load_step = 3 is not in", "there are: 2, 4, 6")

    def test_after_going_back_the_new_checkpoints_are_kept(self):
        self.run_ranks(1, *steps(8), "--checkpoint.interval", "2", "--checkpoint.keep_latest_k", "0")
        self.run_ranks(1, *steps(6), "--checkpoint.interval", "1", "--checkpoint.load_step", "2", "--checkpoint.keep_latest_k", "2")
        self.assertEqual(self.steps_in(), [5, 6, 8])  # 8 is older than this run, which does not remove it

    def test_exclude_from_loading(self):
        self.run_ranks(1, *steps(4), "--checkpoint.interval", "2")
        seen = tokens(self.out)
        subprocess.run(["rm", "-r", self.out / "checkpoint/step-4"], check=True)

        def resumed(*parts):
            out = self.folder / "-".join(parts)
            subprocess.run(["cp", "-r", self.out, out], check=True)
            self.run_ranks(1, *steps(4), "--checkpoint.interval", "2", "--checkpoint.exclude_from_loading", ",".join(parts), out=out)
            lines = compared(out)
            return {step: lines[step][0] for step in lines}, {step: lines[step][3] for step in lines}, tokens(out), out

        loss, lr, read, out = resumed("dataloader")
        self.assertEqual(read[3], seen[1])  # data from the beginning, although this is step 3
        self.assertEqual(sorted(loss), [1, 2, 3, 4])
        loss, lr, read, out = resumed("optimizer")
        self.assertEqual(read[3], seen[3])
        self.assertEqual(state(out / "checkpoint/step-4")["optim.step.norm.weight"][0], 2)
        loss, lr, read, out = resumed("lr_scheduler")
        self.assertEqual(lr[3], lr[1])
        loss, lr, read, out = resumed("train_state")
        self.assertEqual(sorted(self.steps_in(out / "checkpoint")), [2, 4])
        self.assertEqual(self.manifest(4, out)["tokens_seen"], 4 * 4 * 64)
        self.assertEqual(self.manifest(4, out)["lr_step"], 6)
        run = self.run_ranks(1, *steps(4), "--checkpoint.exclude_from_loading", "optimiser", code=2)
        self.assertIn("optimiser", run.stderr)

    def test_a_seed_checkpoint_starts_every_layout_alike(self):
        run = self.run_ranks(1, "--checkpoint.create_seed_checkpoint", "--training.steps", "2")
        self.assertEqual(self.steps_in(), [0])
        self.assertEqual(run.stdout, "")  # no step was trained
        self.assertEqual(self.manifest(0)["contents"], "weights")
        other = self.folder / "other"
        (other / "checkpoint").mkdir(parents=True)
        subprocess.run(["cp", "-r", self.out / "checkpoint/step-0", other / "checkpoint"], check=True)
        self.run_ranks(2, "--training.steps", "2", "--debug.seed", "8", out=other)  # the seed would give other initial values
        stored = state(self.out / "checkpoint/step-0")
        lines = [json.loads(line) for line in fingerprints(other).splitlines()]
        for line in lines:
            if "parameter" in line:
                self.assertEqual(line["xxh3"], xxhash.xxh3_64_hexdigest(stored[line["parameter"]].tobytes()))
        run = self.run_ranks(2, "--checkpoint.create_seed_checkpoint", out=self.folder / "two", code=2)
        self.assertIn("a seed checkpoint is written by one rank", run.stderr)

    def test_the_last_save_holds_weights_in_the_type_that_was_asked_for(self):
        run = self.run_ranks(1, *steps(4), "--checkpoint.interval", "2", "--checkpoint.last_save_model_only",
                             "--checkpoint.export_dtype", "bfloat16")
        self.assertEqual(self.manifest(4)["contents"], "weights")
        files = sorted(path.name for path in (self.out / "checkpoint/step-4").iterdir())
        self.assertEqual(files, ["manifest.json", "weights-rank-00000.safetensors"])
        from safetensors.torch import load_file as load_torch
        import torch
        half = load_torch(self.out / "checkpoint/step-4/weights-rank-00000.safetensors")
        self.assertEqual({tensor.dtype for tensor in half.values()}, {torch.bfloat16})
        # the same run with full checkpoints: the stored weights are its weights, rounded to nearest
        full = self.folder / "full"
        self.run_ranks(1, *steps(4), "--checkpoint.interval", "2", out=full)
        for name, tensor in load_torch(full / "checkpoint/step-4/weights-rank-00000.safetensors").items():
            self.assertTrue(torch.equal(tensor.to(torch.bfloat16), half[name]), name)
        # a finished run has nothing to do; more steps continue from the last full checkpoint
        run = self.run_ranks(1, *steps(4), "--checkpoint.interval", "2", "--checkpoint.last_save_model_only")
        self.assertIn("nothing is left to do", run.stderr)
        for flags, expected in ((["--training.dataset_path", self.folder / "none"], "training.dataset_path: there is nothing at"),
                                (["--model.norm_eps", "0.5"], "model.norm_eps is 1e-05 there and 0.5 here")):
            run = self.run_ranks(1, *steps(4), "--checkpoint.interval", "2", *flags, code=2)
            self.assertIn(expected, run.stderr)
            self.assertNotIn("nothing is left to do", run.stderr)
        run = self.run_ranks(1, *steps(6), "--checkpoint.interval", "2")
        self.assert_holds(run.stderr, "step-4' holds weights only; the run continues from", "resumed after step 2")
        run = self.run_ranks(1, *steps(6), "--checkpoint.load_step", "4", code=0)  # saved in full by the run above
        self.assertIn("resumed after step 4", run.stderr)

    def test_initial_load_path_gives_weights_or_everything_and_the_own_folder_wins(self):
        self.run_ranks(1, *steps(4), "--checkpoint.interval", "2")
        source = self.out / "checkpoint/step-2"
        stored = state(source)
        weights = self.folder / "weights"
        run = self.run_ranks(1, *steps(3), "--checkpoint.initial_load_path", source, out=weights)
        self.assertIn("started with the weights of", run.stderr)
        first = {line["parameter"]: line["xxh3"] for line in map(json.loads, fingerprints(weights).splitlines()) if "parameter" in line}
        for name, digest in first.items():
            self.assertEqual(digest, xxhash.xxh3_64_hexdigest(stored[name].tobytes()))
        self.assertEqual(sorted(compared(weights)), [1, 2, 3])
        run = self.run_ranks(1, *steps(4), "--checkpoint.initial_load_path", source, out=weights)
        self.assert_holds(run.stderr, "initial_load_path was applied when branch 0 of this job began", "resumed after step 3")

        everything = self.folder / "everything"
        self.run_ranks(1, *steps(4), "--checkpoint.interval", "2", "--checkpoint.initial_load_path", self.out / "checkpoint",
                       "--checkpoint.load_step", "2", "--checkpoint.no_initial_load_model_only", out=everything)
        self.assertEqual(self.losses(everything), {step: self.losses()[step] for step in (3, 4)})
        self.assert_same_state(everything / "checkpoint/step-4", self.out / "checkpoint/step-4")

    def test_an_error_of_the_own_folder_does_not_point_at_another_key(self):
        self.run_ranks(1, *steps(2), "--checkpoint.last_save_model_only")
        run = self.run_ranks(1, *steps(4), "--checkpoint.initial_load_path", self.folder / "elsewhere", code=2)
        self.assert_holds(run.stderr, f"error: checkpoint.folder: '{self.out}/checkpoint/step-2' holds weights only")
        self.assertNotIn("^~", run.stderr)

    def test_load_only_never_saves_and_off_does_nothing(self):
        self.run_ranks(1, *steps(4), "--checkpoint.interval", "2", "--checkpoint.load_only")
        self.assertFalse((self.out / "checkpoint").exists())
        self.run_ranks(1, *steps(2), "--checkpoint.enable=false", out=self.folder / "off")
        self.assertFalse((self.folder / "off" / "checkpoint").exists())

    def test_what_does_not_fit_is_said_before_anything_starts(self):
        self.run_ranks(1, *steps(2), "--checkpoint.interval", "2")
        run = self.run_ranks(1, *steps(4), "--model.dim", "128", code=1)
        self.assert_holds(run.stderr, "step-2", "tok_embeddings.weight", "(2048, 256)", "(2048, 128)")
        run = self.run_ranks(1, *steps(4), "--model.n_layers", "5", code=1)
        self.assert_holds(run.stderr, "layers.5.attention.wq.weight")
        sgd = self.write("sgd.toml", re.sub(r"(?m)^(eps|lr) = .*\n", "", (ROOT / DEBUG_CONFIG).read_text()))
        run = self.run_ranks(1, *steps(4), "--optimizer.name", "SGD", "--optimizer.momentum", "0.9", code=1, config=sgd)
        self.assert_holds(run.stderr, "optim.momentum_buffer.", "is missing", 'exclude_from_loading = ["optimizer"]')
        # stored states that no rank uses are an error, also in a pipeline
        for ranks in (1, 2):
            pipeline = ["--parallelism.pipeline_parallel_degree", ranks, "--training.local_batch_size", "4"]
            run = self.run_ranks(ranks, *steps(4), *pipeline, "--optimizer.name", "Lion", code=1, config=sgd)
            self.assert_holds(run.stderr, "optim.exp_avg_sq.", "which this run's optimizer does not have")
        run = self.run_ranks(1, *steps(4), "--checkpoint.initial_load_path", self.folder / "nowhere", out=self.folder / "new", code=2)
        self.assert_holds(run.stderr, "checkpoint.initial_load_path", "there is no folder")

    def test_model_options_that_shapes_do_not_tell(self):
        self.run_ranks(1, *steps(2), "--checkpoint.interval", "2")
        trust = ["--checkpoint.take_on_trust", "model_options"]
        starts = {"resumed": [], "started": ["--checkpoint.initial_load_path", self.out / "checkpoint/step-2"]}
        changed = {"--model.n_heads": ("8", "model.n_heads is 16 there and 8 here"),
                   "--model.rope_theta": ("10000", "model.rope_theta is 5e+05 there and 10000.0 here"),
                   "--model.norm_eps": ("1e-6", "model.norm_eps is 1e-05 there and 1e-06 here")}
        for kind, start in starts.items():
            for flag, (value, text) in changed.items():
                with self.subTest(kind, flag=flag):
                    out = self.out if kind == "resumed" else self.folder / "other"
                    run = self.run_ranks(1, *steps(3), *start, flag, value, out=out, code=2)
                    self.assert_holds(run.stderr, "step-2'", text, 'checkpoint.take_on_trust = ["model_options"]')
                    self.assertEqual(run.stdout, "")
        run = self.run_ranks(1, *steps(3), "--checkpoint.initial_load_path", self.out / "checkpoint/step-2", *trust,
                             "--model.norm_eps", "1e-6", out=self.folder / "trusting")
        self.assert_holds(run.stderr, "model.norm_eps is 1e-05 there and 1e-06 here", "accepted because of", "started with the weights of")
        exported = titan("convert", "to-hf", self.out / "checkpoint/step-2", self.folder / "hf", "--model.norm_eps", "1e-6")
        self.assertEqual(exported.returncode, 2, exported.stderr)
        self.assert_holds(exported.stderr, "model.norm_eps is 1e-05 there and 1e-06 here")
        self.assertFalse((self.folder / "hf").exists())

    def test_weights_without_a_manifest_say_whose_they_are(self):
        self.run_ranks(1, *steps(2), "--checkpoint.interval", "2")
        own, silent = self.folder / "own", self.folder / "silent"
        for folder in (own, silent):
            folder.mkdir()
        path = next((self.out / "checkpoint/step-2").glob("weights-*"))
        shutil.copy(path, own)
        run = self.run_ranks(1, *steps(1), "--checkpoint.initial_load_path", own, out=self.folder / "a")
        self.assert_holds(run.stderr, "started with the weights of", "has no manifest.json: settings that tensor shapes do not reveal")
        save_file(load_file(path), silent / "weights.safetensors", metadata={"format": "pt"})  # like a file of torchtitan
        run = self.run_ranks(1, *steps(1), "--checkpoint.initial_load_path", silent, out=self.folder / "b", code=2)
        self.assert_holds(run.stderr, "does not state the naming convention of its weights", "weights.safetensors", "titan convert from-torchtitan-names")
        run = self.run_ranks(1, *steps(1), "--checkpoint.initial_load_path", silent, "--checkpoint.take_on_trust", "row_order",
                             out=self.folder / "b")
        self.assertIn("started with the weights of", run.stderr)

    def test_what_a_killed_export_leaves_goes_at_the_next_start(self):
        export = ["--checkpoint.last_save_model_only", "--checkpoint.last_save_in_hf"]
        self.run_ranks(1, *steps(1), *export)
        folder = self.out / "checkpoint/step-1"
        files = sorted(path.name for path in folder.iterdir())
        self.assertNotIn("sharded", files)
        (folder / "sharded").mkdir()
        (folder / "sharded/weights-rank-00000.safetensors").write_bytes(b"half of it is gone")
        run = self.run_ranks(1, *steps(1), *export)
        self.assertIn("nothing is left to do", run.stderr)
        self.assertEqual(sorted(path.name for path in folder.iterdir()), files)

    def test_every_request_to_stop_saves_this_step(self):
        for number, expected in ((signal.SIGTERM, 75), (signal.SIGUSR1, 75), (signal.SIGINT, 130)):
            out = self.folder / number.name
            arguments = ["train", *RECIPE, "--training.steps", "1000000", "--checkpoint.interval", "100000", "--job.dump_folder", out]
            with Background(*arguments) as run:
                run.wait_for("step:  2")
                run.process.send_signal(number)
                _, err, code = run.finish()
            self.assertEqual(code, expected, err)
            stopped = re.search(rf"stopped by {number.name} after step (\d+), which is saved", err)
            self.assertTrue(stopped, err)
            step = int(stopped.group(1))
            self.assertEqual(self.steps_in(out / "checkpoint"), [step])
            again = self.run_ranks(1, "--training.steps", step + 2, "--checkpoint.interval", "100000", out=out)
            self.assertIn(f"resumed after step {step}", again.stderr)


if __name__ == "__main__":
    main()
