"""A run that is asked to stop finishes its step, closes everything and says so by its exit code."""

import re
import signal

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
        last = metrics(self.out)[-1]["step"]
        self.assertEqual(int(stopped.group(1)), last)
        self.assertLess(last, 1000000)
        self.assert_nothing_is_half_written()
        return code

    def test_sigint_ends_the_run_well(self):
        self.assertEqual(self.stop(signal.SIGINT), 0)

    def test_sigterm_ends_the_run_with_143(self):
        self.assertEqual(self.stop(signal.SIGTERM), 143)

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
