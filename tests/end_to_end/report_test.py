#!/usr/bin/env python3
"""titan report on made-up runs. NumPy judges thinning, a second computation of goodput step by step judges the first; Python's
parsers read the page. How the page looks and behaves in a browser: report_page_check.py."""

import html.parser
import json
import math
import re

import numpy

import harness
from harness import titan
from made_up_run import MadeUpRun, CONFIG


class Page(html.parser.HTMLParser):
    """The elements of a page, and the text of its scripts."""

    def __init__(self, text):
        super().__init__()
        self.text, self.elements, self.open, self.scripts = text, [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in ("meta", "link", "br", "img", "input"):
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open}"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data

    @property
    def data(self):
        return json.loads(self.scripts[0])


def reckoned(events):
    """(productive, repeated) time step by step: the last execution of a step counts as productive."""
    kept, thrown_away = {}, 0.0
    for event in events:
        if event["event"] == "start":
            for step in [step for step in kept if step > event["resumed_step"]]:
                thrown_away += kept.pop(step)
        elif event["event"] == "steps":
            own = sum(v for k, v in event["seconds"].items() if k not in ("checkpoint", "validation", "replicas"))
            for step in range(event["from"], event["to"] + 1):
                kept[step] = own / (event["to"] - event["from"] + 1)
    return sum(kept.values()), thrown_away


class Report(harness.Case):
    def report(self, *folders, code=0, out=None):
        out = out or self.folder / "report.html"
        run = titan("report", *folders, "--out", out)
        self.assertEqual(run.returncode, code, run.stderr)
        return Page(out.read_text(encoding="utf-8")) if code == 0 else run

    def restarted(self, name="restarted", **options):
        run = MadeUpRun(self.folder / name, steps=150, **options)
        run.session(0, 63, "killed").session(50, 120, "failed", hang=40, error="rank 2 is gone").session(100, 150, "finished")
        return run

    def test_a_page_needs_nothing_else(self):
        page = self.report(self.restarted().folder)
        self.assertEqual(page.open, [])
        for tag, attributes in page.elements:
            self.assertNotIn(tag, ("link", "img", "iframe", "object"))
            self.assertFalse({"src", "srcset", "action", "data"} & set(attributes), attributes)
            self.assertFalse([name for name in attributes if name.startswith("on")], attributes)
            if "href" in attributes:
                self.assertTrue(attributes["href"].startswith("#"))
        self.assertIsNone(re.search(r"https?://(?!www\.w3\.org/2000/svg)", page.text), "the page names an address")
        self.assertNotIn("@import", page.text)

    def test_the_same_runs_give_the_same_bytes(self):
        folder = self.restarted().folder
        self.assertEqual(self.report(folder).text, self.report(folder, out=self.folder / "second.html").text)

    def test_goodput_is_what_a_second_reckoning_says(self):
        run = self.restarted()
        own = self.report(run.folder).data
        goodput, lost = own["runs"][0]["goodput"], dict(zip(own["causes"], own["runs"][0]["goodput"]["lost"]))
        productive, thrown_away = reckoned(run.history)
        self.assertAlmostEqual(goodput["productive"], productive, places=3)
        self.assertAlmostEqual(lost["steps thrown away"], thrown_away, places=3)
        whole = run.history[-1]["time"] - run.history[0]["time"]
        self.assertAlmostEqual(goodput["total"], whole, places=2)
        self.assertAlmostEqual(goodput["productive"] + sum(lost.values()), goodput["total"], places=3)
        self.assertAlmostEqual(lost["validation"], 2.0, places=6)  # of step 100, in the second session
        self.assertAlmostEqual(lost["held by checkpoints"], 0.5 * 3, places=6)
        self.assertAlmostEqual(lost["start-up"], 20, places=3)
        self.assertGreater(lost["hang before error"], 40)
        self.assertEqual([session["outcome"] for session in own["runs"][0]["sessions"]], ["killed", "failed", "finished"])
        self.assertEqual(own["runs"][0]["sessions"][1]["error"], "rank 2 is gone")

    def test_lost_time_and_failures_are_printed_too(self):
        run = self.restarted()
        line = {"time": run.history[-1]["time"], "rank": 2, "world_size": 4, "step": 120, "how": "was ended by signal 9 (SIGKILL)",
                "error": "", "seen": "error: all_gather failed\n  in training step 120", "log": "logs/rank2.log", "response": "restart 1 of 3"}
        self.write("restarted/launch_failures.jsonl", json.dumps(line) + '\n{"time": 1}\n' + json.dumps({**line, "response": "torn"}))
        done = titan("report", run.folder, "--output", self.folder / "report.html")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = Page((self.folder / "report.html").read_text(encoding="utf-8")).data
        goodput, (failure,) = data["runs"][0]["goodput"], data["runs"][0]["failures"]
        self.assertEqual((failure["rank"], failure["step"], failure["response"]), (2, 120, "restart 1 of 3"))
        printed = re.search(r"goodput ([\d.]+) % of .* in 3 sessions\n", done.stdout)
        self.assertAlmostEqual(float(printed.group(1)), 100 * goodput["productive"] / goodput["total"], places=1)
        for cause, lost in zip(data["causes"], goodput["lost"]):
            if lost > goodput["total"] / 1000:
                self.assertRegex(done.stdout, rf"(?m)^  {cause} .* \({100 * lost / goodput['total']:.1f} %\)$")
        self.assertRegex(done.stdout, r"(?m)^  1 failure: 1 signal$")
        self.assertRegex(done.stdout, r"rank 2 of 4, step 120: was ended by signal 9 \(SIGKILL\); another rank: error: all_gather failed; "
                                      r"restart 1 of 3; log: logs/rank2.log\n")
        self.assert_holds(done.stderr, "launch_failures.jsonl has 1 malformed line")

    def test_thinning_loses_no_extreme(self):
        draw = numpy.random.default_rng(3)
        values = draw.normal(size=60_001)
        values[[1234, 50_000]] = 50, -70
        folder = self.folder / "long"
        lines = (json.dumps({"step": i + 1, "loss_metrics/global_avg_loss": v, **{f"tag/{t}": v * t for t in range(6)}})
                 for i, v in enumerate(values.tolist()))
        self.write("long/metrics.jsonl", "\n".join(lines) + "\n")
        page = self.report(folder)
        self.assertLess(len(page.text), 2_000_000)
        metrics = page.data["runs"][0]["metrics"]
        curve = metrics["curves"]["loss_metrics/global_avg_loss"]
        first, last = metrics["steps"][curve["s"]], metrics["steps"][curve["e"]]
        self.assertEqual((first[0], last[-1], curve["n"]), (1, len(values), len(values)))
        self.assertGreater(len(first), 500)
        for begin, end, low, high, mean in zip(first, last, curve["lo"], curve["hi"], curve["v"]):
            bucket = values[begin - 1:end]
            numpy.testing.assert_allclose((low, high, mean), (bucket.min(), bucket.max(), bucket.mean()), rtol=1e-6, atol=1e-8)
        self.assertEqual([e + 1 for e in last[:-1]], first[1:])

    def test_short_runs_keep_every_value_and_what_is_not_finite(self):
        run = MadeUpRun(self.folder / "short", ranks=1, pipeline=False, log_freq=1)
        run.session(0, 20, "finished")
        lines = (run.folder / "metrics.jsonl").read_text().splitlines()
        broken = json.loads(lines[4])
        broken.update({"grad_norm": "nan", "loss_metrics/global_avg_loss": "inf"})
        lines[4] = json.dumps(broken)
        (run.folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
        curves = self.report(run.folder).data["runs"][0]["metrics"]["curves"]
        self.assertEqual(curves["grad_norm"]["v"][4], "nan")
        self.assertEqual(curves["loss_metrics/global_avg_loss"]["v"][4], "inf")
        for line, value in zip(lines[:4], curves["lr"]["v"]):
            self.assertTrue(math.isclose(json.loads(line)["lr"], value, rel_tol=1e-6))

    def test_texts_of_a_run_stay_texts(self):
        evil = "</script><script>alert(1)</script><!-- \u202e\x1b[2J"
        config = {**CONFIG, "job": {"description": evil, "dump_folder": "x"}}
        run = MadeUpRun(self.folder / "evil<b>", ranks=2, config=config)
        run.session(0, 10, "failed", error=evil)
        lines = [{**json.loads(line), evil: 1.5} for line in (run.folder / "metrics.jsonl").read_text().splitlines()]
        (run.folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        page = self.report(run.folder)
        self.assertEqual(sum(tag == "script" for tag, _ in page.elements), 2)
        self.assertEqual(page.open, [])
        self.assertNotIn("\u202e", page.text)
        self.assertIn("</script>", page.data["runs"][0]["sessions"][0]["error"])
        self.assertNotIn("</script>", page.scripts[0])

    def test_measured_and_planned_timelines(self):
        timeline = self.report(self.restarted().folder).data["runs"][0]["timeline"]
        self.assertEqual(timeline["schedule"], "1F1B")
        step = timeline["steps"][-1]
        self.assertEqual((step["step"], len(step["ranks"]), len(step["plan"])), (150, 4, 4))
        mean = {kind: numpy.mean([span[3] - span[2] - span[4] for rank in step["ranks"] for span in rank["spans"]
                                  if timeline["names"][span[1]].startswith(kind)]) for kind in ("forward", "backward")}
        end = max(action[3] for row in step["plan"] for action in row)
        # 1F1B of 4 stages and 8 microbatches: (8 + 3) (F + B)
        self.assertAlmostEqual(end, 11 * (mean["forward"] + mean["backward"]), places=5)

    def test_differences_of_configurations(self):
        other = json.loads(json.dumps(CONFIG))
        other["optimizer"]["lr"] = 1e-5
        pair = [MadeUpRun(self.folder / name, ranks=1, pipeline=False, config=config).session(0, 10, "finished").folder
                for name, config in (("a", CONFIG), ("b", other))]
        first, second = (run["config"] for run in self.report(*pair).data["runs"])
        self.assertEqual({key for key in first if first[key] != second[key]}, {"optimizer.lr"})
        self.assertEqual(float(second["optimizer.lr"]), 1e-5)

    def test_files_that_are_missing_or_torn_are_named_and_the_rest_is_shown(self):
        run = self.restarted()
        with open(run.folder / "history.jsonl", "a") as file:
            file.write('{"event":"steps","time":\n{"event":"end"')
        (run.folder / "status/rank_1.json").write_text("{\n")
        (run.folder / "metrics.jsonl").unlink()
        (run.folder / "checkpoint/step-50/manifest.json").write_text("{}")
        made = titan("report", run.folder, "--out", self.folder / "report.html")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assert_holds(made.stderr, "history.jsonl has 1 malformed line", "status/rank_1.json")
        shown = Page((self.folder / "report.html").read_text()).data["runs"][0]
        self.assertEqual([saved["complete"] for saved in shown["checkpoints"]], [False, True, True])
        self.assertEqual([rank["rank"] for rank in shown["ranks"]], [0, 2, 3])

    def test_a_folder_of_no_run_is_an_error(self):
        self.assert_holds(self.report(self.folder / "nowhere", code=1).stderr, "there is no folder", "job.dump_folder")
        self.assert_holds(self.report(self.folder, code=1).stderr, "no run has written into")
        self.assertFalse((self.folder / "report.html").exists())


if __name__ == "__main__":
    harness.main()
