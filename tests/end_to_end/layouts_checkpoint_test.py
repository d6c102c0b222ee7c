"""Checkpoints between layouts: one job changes its layout after every step, through every ordered pair of layouts, and stays on the
curve of one rank; each layout's checkpoint has the names and bytes of one rank's, and other software reads it."""

import concurrent.futures
import json
import os
import shutil

import before_transformers

import torch
import transformers
import xxhash

from checkpoint_case import SMALL, CheckpointCase, whole_state
from convert_test import OUR_NAMES, tensors
from harness import losses, main, metrics, titan
from ranks_test import fingerprints

transformers.utils.logging.disable_progress_bar()

P = "--parallelism."
LOSS, NORM = "loss_metrics/global_avg_loss", "grad_norm"
NEAR = 1e-9  # as in the parity tests: relative, in float64
PP, CP = [P + "pipeline_parallel_degree", "2"], [P + "context_parallel_degree", "2"]
TP, V = [P + "tensor_parallel_degree", "2"], [*PP, P + "pipeline_parallel_schedule", "ZBVZeroBubble"]
HALF = ["--training.local_batch_size", "4"]
OLD = {"one": (1, []), "fsdp 2": (2, HALF), "tp 2": (2, TP)}
NEW = {"pp 2": (2, PP), "pp 2, v": (2, V), "cp 2": (2, CP), "pp 2 x tp 2": (4, PP + TP), "pp 2 x fsdp 2": (4, PP + HALF)}
EP = [P + "expert_parallel_degree", "2"]
OF_EXPERTS = {"ep 2": (2, EP + HALF), "experts cut over tp 2": (2, [*TP, P + "expert_tensor_parallel_degree", "2"]),
              "pp 2 x ep 2": (4, PP + EP + HALF), "ep 2 over tp 2": (2, EP + TP), "ep 2 over cp 2": (2, EP + CP),
              "ep 4": (4, [P + "expert_parallel_degree", "4", "--training.local_batch_size", "2"])}
LAYOUTS = OLD | NEW | OF_EXPERTS
TIED = ["--model.enable_weight_tying"]
EXPERTS = ["--model.name", "mixtral", "--model.hidden_dim", "32", "--model.num_experts", "4", "--model.load_balance_coeff", "1e-3"]
EVERY_PAIR = "TITAN_EVERY_PAIR" in os.environ  # set by tools/long_checks.sh


def tour(pairs):
    """A walk that takes each of the ordered pairs once and ends where it began (Hierholzer)."""
    left = {}
    for source, target in pairs:
        left.setdefault(source, []).append(target)
    walk, path = [], [next(iter(left))]
    while path:
        if left[path[-1]]:
            path.append(left[path[-1]].pop())
        else:
            walk.append(path.pop())
    assert len(walk) == len(pairs) + 1, walk
    return walk[::-1]


class LayoutsCase(CheckpointCase):
    def setUp(self):
        super().setUp()
        self.recipe = [*SMALL, "--training.global_batch_size", "8", "--training.local_batch_size", "8"]

    def run_as(self, layout, *arguments, **options):
        ranks, flags = LAYOUTS[layout]
        return self.run_ranks(ranks, *flags, *arguments, **options)


class TourTest(LayoutsCase):
    def take(self, walk, *model):
        """Each layout of the walk loads the checkpoint of the previous one, trains one step and saves. Two halves run
        at the same time, each from the start."""
        middle = len(walk) // 2
        halves = {"first": walk[:middle + 1], "second": walk[middle:]}
        steps, = set(map(len, halves.values()))
        # without a warmup, which a shorter run would truncate
        wide = ["--training.dtype", "float64", "--lr_scheduler.warmup_steps", "0", "--checkpoint.interval", "1",
                "--checkpoint.keep_latest_k", "2", *model]
        self.out = self.folder / "alone"
        self.run_as("one", *wide, "--training.steps", steps)
        alone = {line["step"]: line for line in metrics(self.out)}
        last = whole_state(self.saved / f"step-{steps}")
        with concurrent.futures.ThreadPoolExecutor(len(halves)) as pool:
            for done in [pool.submit(self.beside(name).follow, half, wide, alone, last) for name, half in halves.items()]:
                done.result()

    def follow(self, walk, wide, alone, last):
        before = "nothing"
        for step, layout in enumerate(walk, 1):
            what = f"step {step}, from {before} to {layout}"
            run = self.run_as(layout, *wide, "--training.steps", step)
            self.assertEqual(self.resumed_after(run.stderr), step - 1, what)
            line = metrics(self.out)[-1]
            self.assertEqual((line["step"], line["lr"]), (step, alone[step]["lr"]))
            for figure in (LOSS, NORM):
                self.assertAlmostEqual(line[figure] / alone[step][figure], 1, delta=NEAR, msg=f"{what}: {figure}")
            if step > 1:
                self.assert_starts_from(stored, what)
            stored, before = whole_state(self.saved / f"step-{step}"), layout
            self.assertEqual({name: (tensor.shape, tensor.dtype) for name, tensor in stored.items()},
                             {name: (tensor.shape, tensor.dtype) for name, tensor in last.items()}, what)
        self.assert_sound()
        for name, tensor in last.items():
            torch.testing.assert_close(stored[name], tensor, rtol=1e-6, atol=1e-12, msg=lambda text: f"{name}: {text}")

    def assert_starts_from(self, stored, what):
        """The weights with which the run resumed, hashed by it, are the bytes that safetensors reads."""
        lines = [json.loads(line) for line in fingerprints(self.out).splitlines()]
        hashes = {line["parameter"]: line["xxh3"] for line in lines if "parameter" in line}
        self.assertEqual(hashes.keys() - stored.keys(), set(), what)
        for name, digest in hashes.items():
            self.assertEqual(digest, xxhash.xxh3_64_hexdigest(stored[name].numpy().tobytes()), f"{what}: {name}")

    def test_every_layout_loads_what_every_other_has_saved(self):
        pairs = [(a, b) for a in OLD | NEW for b in OLD | NEW if a != b and (a in NEW or b in NEW)]
        self.take(tour(pairs))

    def test_so_it_is_where_head_and_embedding_share_a_weight(self):
        some = ("one", "pp 2", "pp 2, v", "pp 2 x tp 2")
        self.take(tour([(a, b) for a in some for b in some if a != b]), *TIED)

    def test_so_it_is_where_experts_are_dealt_and_cut(self):
        all_of_them = ("one", *OF_EXPERTS)
        some = all_of_them if EVERY_PAIR else all_of_them[:4]
        self.take(tour([(a, b) for a in some for b in some if a != b]), *EXPERTS)


class SameLayoutTest(LayoutsCase):
    def test_a_run_in_two_parts_is_one_in_one_piece_to_the_bit(self):
        for layout in NEW:
            with self.subTest(layout):
                self.out = self.folder / f"{layout} whole"
                self.run_as(layout, "--training.steps", "4", "--checkpoint.interval", "2")
                whole, expected = metrics(self.out), whole_state(self.saved / "step-4")
                half = self.saved / "step-2"
                self.out = self.folder / f"{layout} parts"
                shutil.copytree(half, self.saved / "step-2")
                run = self.run_as(layout, "--training.steps", "4", "--checkpoint.interval", "2")
                self.assertEqual(self.resumed_after(run.stderr), 2)
                for mine, theirs in zip(metrics(self.out), whole[2:], strict=True):
                    self.assertEqual([mine[name] for name in ("step", LOSS, NORM)], [theirs[name] for name in ("step", LOSS, NORM)])
                found = whole_state(self.saved / "step-4")
                self.assertEqual(found.keys(), expected.keys())
                for name, tensor in found.items():
                    self.assertTrue(torch.equal(tensor, expected[name]), name)


class ExchangeTest(LayoutsCase):
    """Exports of a run for other software."""

    # no update changes a weight
    STILL = ["--optimizer.lr", "1e-30", "--training.steps", "2", "--checkpoint.interval", "1", "--checkpoint.last_save_model_only",
             "--checkpoint.last_save_in_hf"]

    def export(self, layout, *model):
        """(tensors, config.json) of the last save, and the tensors of the first step's checkpoint."""
        self.out = self.folder / f"{layout} {len(model)}"
        self.run_as(layout, *self.STILL, *model)
        folder = self.saved / "step-2"
        return tensors(folder), json.loads((folder / "config.json").read_text()), whole_state(self.saved / "step-1")

    def judge(self, layouts, *model):
        expected, config, state = self.export("one", *model)
        for layout in layouts:
            with self.subTest(layout):
                found, its_config, its_state = self.export(layout, *model)
                self.assertEqual(its_config, config)
                self.assertEqual(found.keys(), expected.keys())
                for name, tensor in found.items():
                    self.assertTrue(torch.equal(tensor, expected[name]), name)
                self.assertEqual(its_state.keys(), state.keys())
                for name in found:
                    self.assertTrue(torch.equal(its_state[self.ours(name)], state[self.ours(name)]), name)
        theirs, info = transformers.AutoModelForCausalLM.from_pretrained(
            self.saved / "step-2", dtype=torch.float32, local_files_only=True, output_loading_info=True)
        self.assertEqual([info[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")], [set()] * 3)
        self.assertTrue(torch.equal(theirs.model.norm.weight, expected["model.norm.weight"]))

    @staticmethod
    def ours(name):
        name = name.removeprefix("model.")
        for theirs, own in OUR_NAMES.items():
            name = name.replace(theirs, own)
        return name

    def test_hugging_face_exports_are_those_of_one_rank_byte_for_byte(self):
        self.judge(NEW)

    def test_so_they_are_where_head_and_embedding_share_a_weight(self):
        self.judge(("pp 2", "pp 2, v"), *TIED)

    def test_inspect_and_convert_take_the_checkpoint_of_a_pipeline(self):
        self.out = self.folder / "run"
        self.run_as("pp 2 x tp 2", "--training.steps", "2", "--checkpoint.interval", "2")
        folder = self.saved / "step-2"
        seen = titan("inspect", "--verify", folder)
        self.assertEqual(seen.returncode, 0, seen.stdout + seen.stderr)
        done = titan("convert", "to-hf", folder, self.folder / "hf")
        self.assertEqual(done.returncode, 0, done.stderr)
        state = whole_state(folder)
        found = tensors(self.folder / "hf")
        self.assertGreater(len(found), 10)
        model = transformers.AutoModelForCausalLM.from_pretrained(self.folder / "hf", dtype=torch.float32, local_files_only=True,
                                                                  attn_implementation="eager").eval()
        self.assertTrue(torch.equal(model.model.norm.weight.detach(), state["norm.weight"]))
        for name, tensor in found.items():
            if "q_proj" not in name and "k_proj" not in name:  # rotary rows have another order
                self.assertTrue(torch.equal(tensor, state[self.ours(name)]), name)


if __name__ == "__main__":
    main()
