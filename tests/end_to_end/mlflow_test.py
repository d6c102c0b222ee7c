"""A run with an MLflow server that answers, refuses, fails, hangs and recovers: training continues, and the data arrive completely and
once."""

import json
import os
import pathlib
import signal
import subprocess
import tomllib

from harness import HANG, ROOT, TINY, TITAN, Case, environment, main, metrics, titan
from mlflow_server import MlflowServer, basic

PLUGINS = pathlib.Path(TITAN).parents[1] / "lib/titan/plugins"
NAMES = {"throughput(tps)": "throughput_tps", "memory/max_active(%)": "memory/max_active_pct",
         "time_metrics/end_to_end(s)": "time_metrics/end_to_end_s"}
PATIENT = ["--logger.mlflow.finish_timeout", "10min"]


def clean_environment():
    names = ("TRACKING_URI", "TRACKING_USERNAME", "TRACKING_PASSWORD", "TRACKING_TOKEN", "EXPERIMENT_NAME", "EXPERIMENT_ID", "RUN_ID",
             "RUN_NAME", "TRACKING_SERVER_CERT_PATH")
    return {**{"MLFLOW_" + name: "" for name in names}, **{name: "" for name in ("http_proxy", "https_proxy", "all_proxy")}}


class ServerCase(Case):
    def serve(self, **options):
        server = MlflowServer(**options)
        server.__enter__()
        self.addCleanup(server.__exit__)
        return server


class MlflowTest(ServerCase):
    def log_to(self, server, *flags, **options):
        env = {**clean_environment(), **options.pop("env", {})}
        return self.train("--metrics.loggers", "console,jsonl,mlflow", "--metrics.log_freq", "1",
                          "--logger.mlflow.tracking_uri", getattr(server, "url", server), *flags, **options, **env)

    def assert_all_arrived(self, run, steps=(1, 2, 3)):
        """Each number of metrics.jsonl arrived once, under its name there."""
        for line in metrics(self.out):
            for tag, value in line.items():
                if tag in ("step", "wall_time"):
                    continue
                name = tag.replace("(%)", "_pct").replace("(", "_").replace(")", "")
                points = [p for p in run.metrics[name] if p[0] == line["step"]]
                self.assertEqual([p[1] for p in points], [value], f"{name} at step {line['step']}")
        self.assertEqual([p[0] for p in run.metrics["loss_metrics/global_avg_loss"]], list(steps))

    def test_numbers_configuration_and_end_arrive(self):
        server = self.serve()
        said = self.log_to(server, "--logger.mlflow.experiment_name", "tiny ones", "--logger.mlflow.run_name", "first", *PATIENT).stderr
        (run,) = server.runs.values()
        self.assertEqual((run.name, run.status, run.experiment), ("first", "FINISHED", server.experiments["tiny ones"]))
        self.assertGreaterEqual(run.end_time, run.start_time)
        self.assert_all_arrived(run)
        for tag, name in NAMES.items():
            self.assertIn(tag, metrics(self.out)[0])
            self.assertIn(name, run.metrics)
        config = tomllib.loads((self.out / "config.toml").read_text())
        self.assertEqual(run.params["training.seq_len"], str(config["training"]["seq_len"]))
        self.assertEqual(run.params["model.name"], config["model"]["name"])
        self.assertEqual(run.params["training.steps"], "3")
        self.assertEqual(run.tags["mlflow.note.content"], config["job"]["description"])
        self.assert_holds(said, f"mlflow: run {run.id} of experiment ")
        self.assertNotIn("warning mlflow", said)

    def test_the_environment_fills_what_is_not_set(self):
        server = self.serve(token=basic("me", "secret"))
        said = self.log_to("", *PATIENT, env={"MLFLOW_TRACKING_URI": server.url + "/", "MLFLOW_TRACKING_USERNAME": "me",
                                              "MLFLOW_TRACKING_PASSWORD": "secret", "MLFLOW_EXPERIMENT_NAME": "e"}).stderr
        (run,) = server.runs.values()
        self.assertEqual((run.status, run.experiment), ("FINISHED", server.experiments["e"]))
        for path in self.out.rglob("*"):
            if path.is_file():
                self.assertNotIn(b"secret", path.read_bytes())
        self.assertNotIn("secret", said + str(run.params))

    def test_a_refusal_stops_only_this_logger(self):
        server = self.serve(token="Bearer right")
        said = self.log_to(server, env={"MLFLOW_TRACKING_TOKEN": "wrong"}).stderr
        self.assert_holds(said, "status 401: who are you?", "training completed after step 3")
        self.assertEqual(said.count("who are you?"), 1, said)
        self.assertEqual((len(server.runs), len(metrics(self.out))), (0, 3))

    def test_a_server_that_fails_at_first_gets_everything_once(self):
        # an unanswered search of the experiment, an unanswered creation of the run, and unanswered batches that were
        # stored
        server = self.serve(faults=["reset", 500, None, "lose", 503, None, None, None, None, "lose", "reset"])
        said = self.log_to(server, *PATIENT).stderr
        self.assertEqual(len(server.runs), 1, server.requests)
        (run,) = server.runs.values()
        self.assert_all_arrived(run)
        self.assertEqual((run.status, server.faults), ("FINISHED", []))
        self.assertEqual(said.count("mlflow: http"), 1, said)
        self.assert_holds(said, "training continues, and logged values are sent when the server answers again")

    def test_numbers_whose_answer_is_lost_are_not_sent_again(self):
        server = self.serve(lose_numbers=True)
        said = self.log_to(server, *PATIENT).stderr
        (run,) = server.runs.values()
        self.assert_holds(said, "training continues")
        self.assert_all_arrived(run)
        self.assertEqual((run.status, server.lose_numbers), ("FINISHED", False))

    def test_nobody_at_the_address_costs_a_warning(self):
        said = self.log_to(f"http://127.0.0.1:{self.free_port()}", "--logger.mlflow.finish_timeout", "0.1s").stderr
        self.assert_holds(said, "values did not reach", "training completed after step 3")
        self.assertLessEqual(said.count("training continues"), 1, said)  # zero if the run ends before the first attempt has failed
        self.assertEqual(len(metrics(self.out)), 3)

    def test_a_server_that_hangs_is_left_at_the_end(self):
        server = self.serve(then="hang")
        said = self.log_to(server, "--logger.mlflow.finish_timeout", "0.1s", "--logger.mlflow.request_timeout", "10min").stderr
        self.assert_holds(said, "values did not reach", "training completed after step 3")
        self.assertEqual(len(metrics(self.out)), 3)

    def test_an_old_server_gets_shorter_values(self):
        server = self.serve(longest_value=500)
        said = self.log_to(server, *PATIENT, "--job.description", "x" * 800).stderr
        (run,) = server.runs.values()
        self.assertEqual(run.params["job.description"], "x" * 500)
        self.assertNotIn("warning mlflow", said)

    def test_a_resumed_run_goes_on_without_doubled_points(self):
        server = self.serve()
        flags = [*PATIENT, "--checkpoint.enable", "--checkpoint.interval", "2"]
        self.log_to(server, *flags)
        self.log_to(server, *flags, "--training.steps", "5", "--checkpoint.load_step", "2")
        (run,) = server.runs.values()
        self.assertEqual([p[0] for p in run.metrics["loss_metrics/global_avg_loss"]], [1, 2, 3, 4, 5])
        self.assertEqual((run.status, run.params["training.steps"]), ("FINISHED", "3"))
        self.log_to(server, *flags, "--checkpoint.folder", "other")  # from scratch: another run
        self.assertEqual(len(server.runs), 2)

    def test_a_run_that_the_server_has_forgotten_begins_anew(self):
        server = self.serve()
        flags = [*PATIENT, "--checkpoint.enable", "--checkpoint.interval", "2"]
        self.log_to(server, *flags)
        server.runs.clear()
        said = self.log_to(server, *flags, "--training.steps", "5", "--checkpoint.load_step", "2").stderr
        self.assert_holds(said, "the server does not know the resumed run, starting a new one")
        (run,) = server.runs.values()
        self.assertEqual([p[0] for p in run.metrics["loss_metrics/global_avg_loss"]], [3, 4, 5])

    def test_an_address_that_cannot_be_is_found_before_the_start(self):
        for uri, wanted in [("file:mlruns", "must begin with http:// or https://"), ("http://me:pw@host", "holds a password")]:
            run = self.log_to(uri, code=2)
            self.assert_holds(run.stderr, wanted, "nothing was started")
        said = self.log_to("").stderr
        self.assert_holds(said, "logger 'mlflow' failed", "set tracking_uri in [logger.mlflow] or MLFLOW_TRACKING_URI")

    def test_a_server_behind_tls_is_believed_by_its_certificate_alone(self):
        pair = [str(self.folder / "cert.pem"), str(self.folder / "key.pem")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-out", pair[0], "-keyout", pair[1]], check=True, capture_output=True, stdin=subprocess.DEVNULL)
        server = self.serve(tls=pair)
        self.log_to(server, "--logger.mlflow.finish_timeout", "1s")
        self.assertEqual(server.requests, [])
        self.log_to(server, *PATIENT, env={"MLFLOW_TRACKING_SERVER_CERT_PATH": pair[0]})
        (run,) = server.runs.values()
        self.assertEqual(run.status, "FINISHED")

    def test_an_interrupt_of_the_whole_group_does_not_cut_off_the_end(self):
        server = self.serve()
        process = subprocess.Popen(
            [TITAN, "train", *TINY, "--training.steps", "1000000", "--metrics.log_freq", "1", "--metrics.loggers", "jsonl,mlflow",
             "--logger.mlflow.tracking_uri", server.url, *PATIENT, "--job.dump_folder", self.out],
            cwd=ROOT, env=environment(**clean_environment()), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            server.wait_for(lambda: any(run.metrics for run in server.runs.values()), HANG)
            os.killpg(process.pid, signal.SIGINT)
            said = process.communicate(timeout=HANG)[1]
        finally:
            process.kill()
        self.assertEqual(process.returncode, 130, said)
        (run,) = server.runs.values()
        self.assert_all_arrived(run, [line["step"] for line in metrics(self.out)])
        self.assertEqual(run.status, "KILLED")

    def test_every_rank_has_a_run_when_all_log(self):
        server = self.serve()
        done = titan("launch", "--nproc", 2, "--", "train", *TINY, "--metrics.loggers", "mlflow", "--metrics.log_freq", 1,
                     "--metrics.save_for_all_ranks", "--logger.mlflow.tracking_uri", server.url, "--logger.mlflow.run_name", "pair",
                     *PATIENT, "--job.dump_folder", self.out, **clean_environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(run.name for run in server.runs.values()), ["pair rank_0", "pair rank_1"])
        for run in server.runs.values():
            self.assertEqual([p[0] for p in run.metrics["loss_metrics/global_avg_loss"]], [1, 2, 3])

    def test_the_run_loads_no_network_library(self):
        for file, wanted in [("mlflow.plugin.so", False), ("titan-post", True)]:
            needed = subprocess.run(["readelf", "-d", PLUGINS / file], capture_output=True, text=True, check=True).stdout
            self.assertEqual("libcurl" in needed, wanted, needed)


class PostTest(ServerCase):
    """titan-post without a run."""

    def answers(self, *requests):
        done = subprocess.run([PLUGINS / "titan-post"], input="".join(r + "\n" for r in requests), text=True,
                              capture_output=True, timeout=HANG, env=environment(**clean_environment()))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_every_line_has_an_answer_in_order(self):
        server = self.serve(faults=[None, 302])
        url = server.url + "/api/2.0/mlflow/"
        asked = [{"url": url + "experiments/get-by-name?experiment_name=Default"}, {"url": url + "runs/create", "body": "{}"},
                 {"url": f"file://{self.write('secret', 'secret')}"}, {"url": url, "timeout_s": 0}, {}]
        answers = self.answers(*map(json.dumps, asked), "nonsense")
        self.assertEqual([a["status"] for a in answers], [200, 302, 0, 0, 0, 0])
        self.assertEqual(json.loads(answers[0]["body"])["experiment"]["experiment_id"], "0")
        self.assertEqual([a["problem"] != "" for a in answers], [False, False, True, True, True, True])
        self.assertNotIn("secret", answers[2]["body"])
        self.assertEqual(server.requests[1], ("runs/create", {}))


if __name__ == "__main__":
    main()
