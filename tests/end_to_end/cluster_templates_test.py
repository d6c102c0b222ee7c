"""The templates of titan submit for Kubernetes, and the Dockerfile. Software that we did not write judges them: the schemas of
kubernetes-validate (core kinds), the API models of kubeflow_trainer_api (JobSet) and kubeflow-training (PyTorchJob), and hadolint."""

import importlib.util
import json
import pathlib
import shutil
import subprocess
import sys

from harness import ROOT, Case, main, titan

CLUSTER = ROOT / "plugins/commands/submit/cluster"
HADOLINT = pathlib.Path(sys.executable).parent / "hadolint"
KUBERNETES = "1.34"


def missing():
    names = [name for name in ("yaml", "kubernetes_validate", "kubernetes", "kubeflow_trainer_api", "kubeflow.training")
             if not importlib.util.find_spec(name.split(".")[0]) or not importlib.util.find_spec(name)]
    if not HADOLINT.exists():
        names.append("hadolint")
    return names


class ClusterTemplates(Case):
    @classmethod
    def setUpClass(cls):
        if names := missing():
            cls.skipTest(cls, "not installed: " + ", ".join(names))

    def job(self, scheduler, nodes, *flags):
        import yaml
        out = self.folder / f"{scheduler} {nodes}"
        run = titan("submit", "train_configs/debug_model.toml", "--job.dump_folder", out, "--scheduler", scheduler, "--nodes", nodes, "--ranks-per-node", 2,
                    "--dry-run", *flags)
        self.assertEqual(run.returncode, 0, run.stderr)
        return yaml.safe_load((out / "submitted/job.yaml").read_text()), str(out)

    def validate(self, kind, version, **content):
        """Unknown and missing fields are errors."""
        import kubernetes_validate
        kubernetes_validate.validate({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **content}, KUBERNETES, strict=True)

    def assert_pod(self, pod, out):
        self.validate("Pod", "v1", spec=pod)
        (container,) = pod["containers"]
        self.assertEqual(container["image"], 'my "image"')
        self.assertIn({"name": "TITAN_START", "value": f"{out}/submitted/run.sh"}, container["env"])
        self.assertIn({"name": "TITAN_RANKS_PER_NODE", "value": "2"}, container["env"])
        shell = subprocess.run(["bash", "-n", "-c", container["args"][0]], capture_output=True, text=True)
        self.assertEqual((shell.returncode, shell.stderr), (0, ""))

    def test_the_validator_refuses_unknown_and_missing_fields(self):
        import kubernetes_validate
        pod = {"containers": [{"name": "a", "image": "b"}]}
        self.validate("Pod", "v1", spec=pod)
        for wrong in ({**pod, "restartPolice": "Never"}, {"restartPolicy": "Never"}, {"containers": [{"name": 1}]}):
            with self.assertRaises(kubernetes_validate.ValidationError):
                self.validate("Pod", "v1", spec=wrong)

    def test_jobset(self):
        from kubeflow_trainer_api.models import JobsetV1alpha2JobSet
        job, out = self.job("jobset", 2, "--image", 'my "image"')
        model = JobsetV1alpha2JobSet.from_dict(job)
        # the model drops fields that it does not know
        self.assertEqual(json.loads(json.dumps(model.to_dict(), default=str)), job)
        template = job["spec"]["replicatedJobs"][0]["template"]
        self.validate("Job", "batch/v1", spec=template["spec"])
        self.assertEqual((template["spec"]["completions"], template["spec"]["parallelism"]), (2, 2))
        self.assert_pod(template["spec"]["template"]["spec"], out)
        broken = json.loads(json.dumps(job))
        broken["spec"]["failurePolicy"]["maxRestart"] = 1
        self.assertNotEqual(json.loads(json.dumps(JobsetV1alpha2JobSet.from_dict(broken).to_dict(), default=str)), broken)

    def test_pytorchjob(self):
        from kubernetes.client import ApiClient
        from kubeflow.training import models

        class Answer:
            def __init__(self, value):
                self.data = json.dumps(value)

        client = ApiClient()
        client.configuration.client_side_validation = True
        for nodes in (1, 3):
            job, out = self.job("pytorchjob", nodes, "--image", 'my "image"')
            import kubernetes.client.models as kinds
            for name in dir(models):  # the client looks its types up among its own
                if name.startswith("KubeflowOrgV1"):
                    setattr(kinds, name, getattr(models, name))
            model = client.deserialize(Answer(job), "KubeflowOrgV1PyTorchJob")
            self.assertEqual(client.sanitize_for_serialization(model), job)
            replicas = job["spec"]["pytorchReplicaSpecs"]
            self.assertEqual({name: replica["replicas"] for name, replica in replicas.items()}, {"Master": 1, "Worker": nodes - 1})
            for replica in replicas.values():
                self.assert_pod(replica["template"]["spec"], out)
                self.assertEqual(replica["template"]["spec"]["containers"][0]["name"], "pytorch")  # the operator looks for it

    def test_dockerfile(self):
        run = subprocess.run([HADOLINT, CLUSTER / "Dockerfile"], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)
        wrong = self.write("Dockerfile", "FROM debian\nRUN apt-get install nginx\n")
        self.assertNotEqual(subprocess.run([HADOLINT, wrong], capture_output=True).returncode, 0)

    def test_the_shell_template_passes_shellcheck(self):
        template = self.write("slurm.sbatch", (CLUSTER / "slurm.sbatch").read_text().replace("@", "_"))
        self.assertTrue(shutil.which("shellcheck"), "install shellcheck")
        run = subprocess.run(["shellcheck", template], capture_output=True, text=True)
        self.assertEqual((run.returncode, run.stdout), (0, ""))


if __name__ == "__main__":
    main()
