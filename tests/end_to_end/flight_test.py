"""One rank hangs in a step: the others time out, every rank writes a flight record, and PyTorch's own analyser names the same
rank as titan flight."""

import ast
import json
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import time

from failing_rank_test import FAULTS, Ranks
from harness import HANG, ROOT, TITAN, environment, main, thorough

ANALYSER = "from torch.distributed.flight_recorder.fr_trace import main; main()"
TIMEOUT = 6  # timeout of collectives in seconds: far above a step of these models
LAYOUTS = {
    "fsdp": ["--parallelism.data_parallel_shard_degree", "3"],
    "tp": ["--parallelism.tensor_parallel_degree", "2"],
    "pp": ["--parallelism.pipeline_parallel_degree", "2"],
    "cp": ["--parallelism.context_parallel_degree", "2"],
}


class FlightTest(Ranks):
    def traces(self):
        return self.out / "comm_traces"

    def flight(self, *arguments):
        return subprocess.run([TITAN, "flight", self.traces(), *arguments], env=environment(), capture_output=True, text=True,
                              timeout=HANG, check=False)

    def analysed(self):
        """The output of PyTorch's analyser for the folder."""
        run = subprocess.run([sys.executable, "-c", ANALYSER, self.traces(), "--prefix", "rank_"], capture_output=True, text=True,
                             timeout=HANG, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return run.stdout + run.stderr

    def start_with_a_hang(self, layout, faulty, ranks):
        self.start("--training.steps", "1000000", "--plugins.paths", str(FAULTS), "--parallelism.further", "test/fault",
                   "--training.global_batch_size", "12", "--training.local_batch_size", "2", *LAYOUTS[layout], ranks=ranks,
                   per_rank=lambda rank: [f"--parallelism.test/fault.rank={faulty}", "--parallelism.test/fault.kind=hang",
                                          "--parallelism.test/fault.step=20"], timeout=TIMEOUT)
        self.wait_for_the_first_step()

    def assert_both_name(self, layout, faulty, ranks):
        self.start_with_a_hang(layout, faulty, ranks)
        for code, err in self.ends(within=HANG):
            self.assertNotEqual(code, 0, err)
        self.assertEqual(sorted(path.name for path in self.traces().iterdir()), [f"rank_{rank}" for rank in range(ranks)])
        said = self.analysed()
        missing = [ast.literal_eval(text) for text in re.findall(r"missing ranks: (\{[\d, ]*\})", said)]
        self.assertIn({faulty}, missing, said)
        self.assertTrue(all(ranks_missing == {faulty} for ranks_missing in missing), said)
        own = self.flight("--json")
        self.assertEqual(own.returncode, 1, own.stderr)
        self.assertEqual(json.loads(own.stdout)["culprits"], [faulty], own.stdout)
        text = self.flight().stdout
        self.assertIn(f"rank {faulty} is where to look", text)
        self.assertRegex(text, rf"(?m)^rank {faulty} was in step \d+")

    def test_fully_sharded(self):
        self.assert_both_name("fsdp", faulty=2, ranks=3)

    @thorough
    def test_tensor_parallel(self):
        self.assert_both_name("tp", faulty=1, ranks=2)

    def test_pipeline(self):
        self.assert_both_name("pp", faulty=1, ranks=2)

    @thorough
    def test_context_parallel(self):
        self.assert_both_name("cp", faulty=0, ranks=2)

    def test_sigusr2_asks_for_a_record_of_a_run_that_goes_on(self):
        self.start("--training.steps", "1000000", *LAYOUTS["tp"], timeout=HANG)
        self.wait_for_the_first_step()
        for run in self.runs:
            run.send_signal(signal.SIGUSR2)
        deadline = time.monotonic() + HANG
        while not (self.traces().is_dir() and len(list(self.traces().glob("rank_[01]"))) == 2):
            self.assertLess(time.monotonic(), deadline)
            self.assertTrue(all(run.poll() is None for run in self.runs), "SIGUSR2 has ended a rank")
            time.sleep(0.1)
        with open(self.traces() / "rank_0", "rb") as file:
            record = pickle.load(file)
        self.assertEqual(record["version"], "2.10")
        self.assertTrue({entry["profiling_name"] for entry in record["entries"]} <=
                        {f"nccl:{name}" for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                                                     "all_reduce_barrier")}, record["entries"][0])
        self.assertEqual([entry["record_id"] for entry in record["entries"]],
                         list(range(record["entries"][0]["record_id"], record["entries"][-1]["record_id"] + 1)))
        for run in self.runs:
            run.send_signal(signal.SIGINT)
        for code, err in self.ends(within=HANG):
            self.assertEqual(code, 130, err)
            self.assertIn("SIGUSR2", err)

    def test_a_folder_without_records_is_refused(self):
        self.traces().mkdir(parents=True)
        run = self.flight()
        self.assertEqual(run.returncode, 1)
        self.assertIn("there is no flight record rank_<rank>", run.stderr)

    def test_a_damaged_record_is_named(self):
        self.traces().mkdir(parents=True)
        (self.traces() / "rank_3").write_bytes(pickle.dumps({"version": "2.10", "entries": [{"record_id": "x"}], "pg_config": {}}))
        run = self.flight()
        self.assertEqual(run.returncode, 1)
        self.assert_holds(run.stderr, "it is not a flight record", "rank_3")


if __name__ == "__main__":
    assert pathlib.Path(ROOT).is_dir() and os.path.exists(TITAN)
    main()
