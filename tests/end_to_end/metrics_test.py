"""Checks a run's metrics against its files: parts of a step that add up, tokens over the clock, norms that NumPy computes
from the stored weights, numbers that no layout changes, and the files for monitoring software."""

import json

import numpy

from checkpoint_case import CheckpointCase, whole_state
from harness import main, metrics, thorough

P = "--parallelism."
LAYOUTS = {"one": (1, []),
           "fsdp_tp": (4, [P + "data_parallel_shard_degree", 2, P + "tensor_parallel_degree", 2]),
           "pp": (2, [P + "pipeline_parallel_degree", 2, "--training.local_batch_size", 4]),
           "hsdp": (4, [P + "data_parallel_replicate_degree", 2, P + "data_parallel_shard_degree", 2])}
PARTS = [f"time_metrics/{part}(s)" for part in
         ("data_loading", "forward", "backward", "communication", "optimizer", "checkpoint", "other")]
STEPS = 4
UNEXPLAINED = 0.2  # share of a step; 0.02 s if it is shorter than 0.1 s


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def norm(tensors):
    return float(numpy.sqrt(sum(numpy.square(t.numpy().astype(numpy.float64)).sum() for t in tensors)))


class MetricsTest(CheckpointCase):
    def run_in(self, name, *arguments, attempt=""):
        ranks, layout = LAYOUTS[name]
        self.out = self.folder / f"{name}{attempt}"
        return self.run_ranks(ranks, "--training.steps", STEPS, *layout, *arguments)

    def unexplained(self, name, steps):
        """Unexplained time between logged steps, by the clock of the machine: a share of the measured time and of 0.1 s.
        A busy machine may preempt the process between the two clocks: unexplained time counts only if it appears in
        two more."""
        def of(steps):
            return [abs(after["time"] - before["time"] - sum(after["seconds"].values())) / max(sum(after["seconds"].values()), 0.1)
                    for before, after in zip(steps, steps[1:])]

        found = of(steps)
        for attempt in (1, 2):
            if max(found) < UNEXPLAINED:
                break
            print(f"{name}: {max(found):.1%} of a step are unexplained; it runs again, for the machine may have been busy", flush=True)
            self.run_in(name, "--checkpoint.interval", 2, attempt=attempt)
            again = [event for event in lines(self.out / "history.jsonl") if event["event"] == "steps"]
            found = list(map(min, found, of(again)))
        return found

    def test_the_parts_of_a_step_add_up_under_every_layout(self):
        for name, (ranks, _) in LAYOUTS.items():
            with self.subTest(name):
                self.run_in(name, "--checkpoint.interval", 2)
                history = lines(self.out / "history.jsonl")
                steps = [event for event in history if event["event"] == "steps"]
                for line, event in zip(metrics(self.out), steps, strict=True):
                    whole = line["time_metrics/end_to_end(s)"]
                    self.assertAlmostEqual(sum(line[part] for part in PARTS) / whole, 1, 9)
                    self.assertTrue(all(line[part] >= 0 for part in PARTS), line)
                    self.assertTrue(0 < line["goodput(%)"] <= 100, line)
                    tokens = 4 * 64 * (event["to"] - event["from"] + 1)
                    self.assertAlmostEqual(line["throughput_of_job(tps)"] * sum(event["seconds"].values()) / tokens, 1, 9)
                    self.assertAlmostEqual(line["throughput_of_job(tps)"] / line["throughput(tps)"], ranks, 9)
                    self.assertEqual("time_metrics/slowest_rank" in line, ranks > 1)
                    if ranks > 1:
                        self.assertIn(line["time_metrics/slowest_rank"], range(ranks))
                self.assertLess(max(self.unexplained(name, steps)), UNEXPLAINED)
                self.assertEqual([event["event"] for event in history if event["event"] != "steps"],
                                 ["start", "first_step", "checkpoint", "checkpoint", "end"])
                self.assertEqual(history[-1]["outcome"], "finished")

    def test_norms_are_those_of_the_stored_weights_and_of_no_layout(self):
        norms = {}
        for name in LAYOUTS:
            self.run_in(name, "--metrics.norms", "layers", "--checkpoint.interval", 1, "--training.dtype", "float64")
            found = norms[name] = metrics(self.out)
            for line in found:
                of_layers = [value for tag, value in line.items() if tag.startswith("grad_norm/")]
                self.assertAlmostEqual(norm([]) + numpy.sqrt(numpy.square(of_layers).sum()) / line["grad_norm"], 1, 9, name)
            for step in range(2, STEPS):  # norms of a step are computed before its update
                weights = whole_state(self.saved / f"step-{step - 1}")
                for tag, value in found[step - 1].items():
                    if not tag.startswith("param_norm/"):
                        continue
                    layer = tag.removeprefix("param_norm/")
                    of_layer = [t for key, t in weights.items() if key.startswith(layer + ".")]
                    self.assertAlmostEqual(value / norm(of_layer), 1, 9, f"{name}, step {step}, {tag}")
        tags = {tag for tag in norms["one"][0] if "_norm/" in tag}
        self.assertEqual(len(tags), 2 * 5)  # embeddings, two layers, norm, output
        for name, found in norms.items():
            for line, alone in zip(found, norms["one"], strict=True):
                self.assertEqual({tag for tag in line if "_norm/" in tag}, tags, name)
                for tag in tags:
                    self.assertAlmostEqual(line[tag] / alone[tag], 1, 9, f"{name}: {tag}")

    @thorough
    def test_activations_are_those_of_no_layout(self):
        seen = {}
        for name in LAYOUTS:
            self.run_in(name, "--checkpoint.no_enable", "--metrics.loggers", "console,jsonl,activation_statistics",
                        "--logger.activation_statistics.every", 2, "--training.dtype", "float64")
            seen[name] = [{tag: value for tag, value in line.items() if tag.startswith("activations/")}
                          for line in metrics(self.out)]
            seen[name] = [line for line in seen[name] if line]
        self.assertEqual(len(seen["one"]), 3)  # steps 1, 2, 4
        self.assertEqual({tag.rpartition("/")[0] for tag in seen["one"][0]},
                         {"activations/rms", "activations/max", "activations/zeros", "activations/not_finite"})
        for name, found in seen.items():
            for line, alone in zip(found, seen["one"], strict=True):
                self.assertEqual(line.keys(), alone.keys())
                for tag in line:
                    self.assertAlmostEqual(line[tag], alone[tag], 9, f"{name}: {tag}")

    def test_each_rank_tells_what_it_does(self):
        self.run_in("pp", "--checkpoint.no_enable")
        for rank in range(2):
            text = (self.out / f"status/rank_{rank}.json").read_text()
            self.assertEqual(len(text) % 1024, 0)
            status = json.loads(text)
            self.assertEqual((status["rank"], status["step"], status["state"]), (rank, STEPS, "ended"))
            head, *steps = lines(self.out / f"timeline/rank_{rank}.jsonl")
            plan = head["plan"]
            self.assertEqual((plan["schedule"], plan["rank"], plan["num_stages"]), ("1F1B", rank, 2))
            self.assertEqual([step["step"] for step in steps], [1, 2, 3, 4])
            for step in steps:
                actions = [span for span in step["spans"] if "microbatch" in span["name"]]
                self.assertEqual([span["name"].rpartition("(")[2].rstrip(")") for span in actions], plan["actions"])
                for before, after in zip(actions, actions[1:]):
                    self.assertLessEqual(before["end"], after["begin"])
                self.assertTrue(all(0 <= span["waited"] <= span["end"] - span["begin"] + 1e-6 for span in step["spans"]))

    def test_a_resumed_run_goes_on_in_its_history(self):
        self.run_in("one", "--checkpoint.interval", 2)
        self.run_in("one", "--checkpoint.interval", 2, "--training.steps", 6, "--metrics.log_freq", 4)
        history = lines(self.out / "history.jsonl")
        self.assertEqual([event["resumed_step"] for event in history if event["event"] == "start"], [0, 4])
        self.assertEqual([(event["from"], event["to"]) for event in history if event["event"] == "steps"],
                         [(step, step) for step in range(1, 5)] + [(5, 6)])  # the end logs values that steps did not
        lost = history[-1]["time"] - history[0]["time"] - sum(
            sum(event["seconds"].values()) for event in history if event["event"] == "steps")
        self.assertGreater(lost, 0)
        self.assertLess(metrics(self.out)[-1]["goodput(%)"], 100)

    def test_what_fits_nothing_is_refused(self):
        run = self.run_ranks(1, "--metrics.histograms", "layer.*", code=2)
        self.assert_holds(run.stderr, "metrics.histograms: 'layer.*' fits no parameter of the model")
        self.assert_nothing_was_written()


if __name__ == "__main__":
    main()
