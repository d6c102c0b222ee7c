"""A run that receives a stop signal finishes its step, closes all files and reports this by its exit code."""

import re
import signal
import socket
import time

from harness import TINY, Background, Case, main, metrics

ENDLESS = ["train", *TINY, "--training.steps", "1000000"]


class SignalTest(Case):
    def stop(self, number):
        """The exit code and the last step, which the console, metrics.jsonl and the closing line agree on."""
        with Background(*ENDLESS, "--job.dump_folder", self.out) as run:
            run.wait_for("loss")
            run.process.send_signal(number)
            out, err, code = run.finish()
        stopped = re.search(rf"stopped by {number.name} after step (\d+)", err)
        self.assertTrue(stopped, err)
        self.assert_holds(err, "nothing is saved, because checkpoint.enable = false")
        last = metrics(self.out)[-1]["step"]
        self.assertEqual(int(stopped.group(1)), last)
        self.assertLess(last, 1000000)
        self.assert_nothing_is_half_written()
        return code

    def test_sigint_ends_the_run_with_130(self):
        """`titan train && titan convert` does not continue."""
        self.assertEqual(self.stop(signal.SIGINT), 130)

    def test_sigterm_ends_the_run_with_143(self):
        self.assertEqual(self.stop(signal.SIGTERM), 143)

    def test_a_run_that_is_being_set_up_ends_at_once(self):
        """Rank 0 of two waits for a rank that never starts: there is no step to finish."""
        for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            port = self.free_port()
            with Background("train", *TINY, "--job.dump_folder", self.out, "--rank", 0, "--world-size", 2,
                            "--master", f"127.0.0.1:{port}") as run:
                self.wait_for_the_store(port, run)
                run.process.send_signal(signal.SIGUSR1)  # an early notice before the end
                run.process.send_signal(number)
                _, err, ended = run.finish()
            self.assertEqual(ended, code, err)
            self.assert_holds(err, "stopped before the first step")
            self.assert_nothing_was_written()

    def wait_for_the_store(self, port, run):
        while run.process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=60).close()
                return
            except ConnectionRefusedError:
                time.sleep(0.05)
        self.fail(run.finish()[1])

    def test_the_event_file_is_closed_with_every_logged_step(self):
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

        self.stop(signal.SIGTERM)
        folder = next((self.out / "tb").rglob("events.out.tfevents.*")).parent
        events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        events.Reload()
        steps = [event.step for event in events.Scalars("loss_metrics/global_avg_loss")]
        self.assertEqual(steps, [line["step"] for line in metrics(self.out)])


if __name__ == "__main__":
    main()
