"""titan submit: the run's folder holds programs, plugins and recipe with their hashes; a rerun of that folder gives the same
numbers, also after the installed plugins have changed. Stand-ins play Slurm's programs and kubectl. sha256sum checks the hashes."""

import json
import os
import pathlib
import re
import shutil
import subprocess

from harness import HANG, ROOT, TITAN, Case, environment, main, metrics, thorough, titan

JOB = ["train_configs/debug_model.toml", "--training.seq_len", "64", "--metrics.no_enable_tensorboard", "--model.dim", "64", "--model.n_layers", "2",
       "--model.n_heads", "4"]
RESULTS = ("loss_metrics/global_avg_loss", "grad_norm")


class SubmitCase(Case):
    def submit(self, *flags, program=TITAN, code=0, steps=2, **env):
        run = subprocess.run([program, "submit", *JOB, "--training.steps", str(steps), "--job.dump_folder", self.out, *map(str, flags)], cwd=ROOT,
                             env=environment(**env), timeout=HANG, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def rerun(self, *flags, code=0, **env):
        run = subprocess.run([self.out / "submitted/run.sh", *map(str, flags)], cwd="/", env=environment(**env), timeout=HANG,
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        self.assertEqual(run.returncode, code, f"\n--- stdout\n{run.stdout}\n--- stderr\n{run.stderr}")
        return run

    def results(self, folder):
        return [[line[tag] for tag in RESULTS] for line in metrics(folder)]


class SubmitTest(SubmitCase):
    def test_the_folder_starts_its_own_copies_and_checks_them(self):
        self.submit()
        folder = self.out / "submitted"
        manifest = json.loads((folder / "manifest.json").read_text())
        listed = {file["path"]: file["sha256"] for file in manifest["files"]}
        self.assert_holds(sorted(listed), "bin/titan", "bin/titan-train", "lib/libtitan_sdk.so", "lib/titan/plugins/adamw.plugin.so", "recipe.toml", "run.sh")
        sums = {line[66:]: line[:64] for line in (folder / "SHA256SUMS").read_text().splitlines()}
        self.assertEqual({path: sums[path] for path in listed}, listed)
        self.assertEqual(sorted(sums), sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                                              if path.is_file() and path.name != "SHA256SUMS"))
        outside = [file["path"] for file in manifest["libraries"] + manifest["inputs"]]
        self.assert_holds(" ".join(outside), "libtorch_cpu.so", "tokenizer.json", "train.jsonl")
        self.assert_holds(self.submit(code=2).stderr, "exists already")
        self.rerun()  # checks all hashes with sha256sum
        self.assertEqual(len(metrics(self.out)), 2)
        with open(folder / "lib/titan/plugins/adamw.plugin.so", "ab") as plugin:
            plugin.write(b"x")
        self.assert_holds(self.rerun(code=2).stderr, "adamw.plugin.so: FAILED", "have changed since titan submit")


@thorough
class SubmissionsAtLength(SubmitCase):
    def installation(self):
        """A copy of the built programs and plugins, which the test may change."""
        prefix = self.folder / "installed"
        built = pathlib.Path(TITAN).parent.parent
        (prefix / "bin").mkdir(parents=True)
        for name in ("titan", "titan-train"):
            shutil.copy2(built / "bin" / name, prefix / "bin")
        shutil.copytree(built / "lib/titan/plugins", prefix / "lib/titan/plugins")
        return prefix

    def test_a_rerun_is_bitwise_the_same_also_after_a_plugin_was_replaced(self):
        prefix = self.installation()
        self.submit("--scheduler", "none", program=prefix / "bin/titan", steps=5)
        self.rerun("--job.dump_folder", self.folder / "first")
        self.rerun("--job.dump_folder", self.folder / "second")
        first = self.results(self.folder / "first")
        self.assertEqual(len(first), 5)
        self.assertEqual(self.results(self.folder / "second"), first)

        # a plugin that the linker would load, but that provides another optimizer
        plugins = prefix / "lib/titan/plugins"
        shutil.copy2(plugins / "sgd.plugin.so", plugins / "adamw.plugin.so")
        now = subprocess.run([prefix / "bin/titan", "train", "--job.config_file", *JOB, "--dry-run"], cwd=ROOT, env=environment(), capture_output=True, text=True)
        self.assertNotEqual(now.returncode, 0)
        self.rerun("--job.dump_folder", self.folder / "third")
        self.assertEqual(self.results(self.folder / "third"), first)

    def test_several_ranks_of_one_machine(self):
        self.submit("--ranks-per-node", "2")
        self.rerun("--ranks", "2")
        self.rerun("--ranks", "2", "--job.dump_folder", self.folder / "again")
        self.assertEqual(self.results(self.folder / "again"), self.results(self.out))

    def test_changed_data_is_refused_unless_asked_for(self):
        corpus = self.write("data.jsonl", (ROOT / "tests/assets/corpus/train.jsonl").read_bytes())
        self.submit("--training.dataset_path", corpus)
        corpus.write_text(corpus.read_text().replace("the", "teh"))
        self.assert_holds(self.rerun(code=2).stderr, "data.jsonl: FAILED", "TITAN_SUBMIT_CHANGED=1")
        self.rerun(TITAN_SUBMIT_CHANGED="1")

    def test_sources_are_copied_without_build_folders(self):
        for name in ("src/plugin.cpp", "build/plugin.o", ".git/HEAD", "src/a b.h"):
            self.write(f"my code/{name}", name)
        self.submit("--code", self.folder / "my code")
        code = self.out / "submitted/code"
        self.assertEqual(sorted(str(path.relative_to(code)) for path in code.rglob("*") if path.is_file()), ["my code/src/a b.h", "my code/src/plugin.cpp"])

    def test_an_invalid_job_leaves_nothing(self):
        run = self.submit("--optimizer.lr", "-1", code=2)
        self.assert_holds(run.stderr, "the job cannot start; nothing was submitted", "must be > 0, got -1")
        self.assertEqual([path for path in self.out.rglob("*")], [])

    def test_wrong_flags_name_the_right_ones(self):
        self.assert_holds(self.submit("--scheduler", "slrum", code=2).stderr, "did you mean 'slurm'?")
        template = self.write("my.sbatch", "#!/bin/bash\necho @RNU@\n")
        self.assert_holds(self.submit("--scheduler", template, code=2).stderr, "my.sbatch:2: unknown placeholder @RNU@; did you mean 'RUN'?")

    def test_slurm_starts_the_copies_and_requeues_a_stopped_run(self):
        self.write("bin/sbatch", """#!/bin/bash
[[ $1 == --parsable && $2 == --output=*/slurm-%j.log ]] || exit 9
export SLURM_JOB_ID=7
bash "$3" > "$STAND_IN/said" 2>&1; echo $? > "$STAND_IN/end"
echo 7
""").chmod(0o755)
        self.write("bin/srun", """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
if [[ ! -e $STAND_IN/failed ]]; then touch "$STAND_IN/failed"; exit 1; fi
if [[ -e $STAND_IN/stopped ]]; then "$@"; else touch "$STAND_IN/stopped"; exit 75; fi
""").chmod(0o755)
        self.write("bin/scontrol", '#!/bin/bash\necho "$@" > "$STAND_IN/scontrol"\n').chmod(0o755)
        env = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "STAND_IN": str(self.folder)}
        self.assertEqual(self.submit("--scheduler", "slurm", "--name", "My run/1", **env).stdout, "7\n")
        job = self.out / "submitted/job.sbatch"
        self.assert_holds(job.read_text(), "#SBATCH --job-name=my-run-1\n", "#SBATCH --nodes=1\n", "#SBATCH --requeue\n")
        self.assertEqual((self.folder / "end").read_text(), "75\n", (self.folder / "said").read_text())
        self.assertEqual((self.folder / "scontrol").read_text(), "requeue 7\n")
        subprocess.run(["sbatch", "--parsable", f"--output={self.out}/slurm-%j.log", job], env=environment(**env), check=True, capture_output=True)
        self.assertEqual((self.folder / "end").read_text(), "0\n", (self.folder / "said").read_text())
        self.assertEqual(len(metrics(self.out)), 2)
        for script in (job, self.out / "submitted/run.sh"):
            subprocess.run(["bash", "-n", script], check=True)
            subprocess.run(["shellcheck", script], check=True)

    def test_a_refusal_of_the_scheduler_is_an_error_and_keeps_the_folder(self):
        run = self.submit("--scheduler", "jobset", "--send", "echo no such kind >&2; false", code=1)
        self.assert_holds(run.stderr, "no such kind", "ended with exit code 1", "everything is in")
        self.assertTrue((self.out / "submitted/job.yaml").exists())

    def test_a_node_of_a_jobset_starts_its_ranks(self):
        """The container's command of the template, run once for each of two nodes on this machine."""
        import yaml
        self.submit("--scheduler", "jobset", "--nodes", "2", "--dry-run")
        job = yaml.safe_load((self.out / "submitted/job.yaml").read_text())
        pod = job["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
        given = {entry["name"]: entry["value"] for entry in pod["env"]}
        self.assertEqual({name: given[name] for name in ("TITAN_NODES", "TITAN_RANKS_PER_NODE")}, {"TITAN_NODES": "2", "TITAN_RANKS_PER_NODE": "1"})
        (line,) = pod["args"]
        line, count = re.subn(r'"\$TITAN_NAME-node-0-0\.\$TITAN_NAME:29500"', f"127.0.0.1:{self.free_port()}", line)
        self.assertEqual(count, 1)
        nodes = [subprocess.Popen([*pod["command"], line], env=environment(JOB_COMPLETION_INDEX=str(node), **given), text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for node in range(2)]
        outputs = [node.communicate(timeout=HANG)[0] for node in nodes]
        self.assertEqual([node.returncode for node in nodes], [0, 0], "\n".join(outputs))
        self.assertEqual(len(metrics(self.out)), 2)


if __name__ == "__main__":
    main()
