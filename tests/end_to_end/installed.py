"""The installation that the test `end_to_end.install` has made, and building projects against it."""

import os
import pathlib
import shutil
import subprocess

from harness import HANG, ROOT, environment, losses

PREFIX = pathlib.Path(os.environ["TITAN_PREFIX"])
CMAKE = os.environ.get("TITAN_CMAKE", "cmake")


def run_checked(*command, timeout=HANG, **env):
    run = subprocess.run([str(part) for part in command], env=environment(**env), timeout=timeout,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if run.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} gave {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run


def launcher():
    """Uses ccache if it is installed: the same sources are built again at each test run."""
    ccache = shutil.which("ccache")
    return [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if ccache else []


def build_project(source, build):
    """Configures and builds the project in `source` as its author would; returns the build folder."""
    shutil.rmtree(build, ignore_errors=True)
    run_checked(CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DTitan_ROOT={PREFIX}", *launcher())
    run_checked(CMAKE, "--build", build, "-j", "2")
    return build


def titan_installed(*arguments, cwd=ROOT, **env):
    return subprocess.run([PREFIX / "bin/titan", *map(str, arguments)], cwd=cwd, env=environment(**env), timeout=HANG,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")


def train_installed(ranks, *arguments):
    """`titan train`, on several ranks under `titan launch`."""
    launch = ["launch", "--nproc", ranks, "--"] if ranks > 1 else []
    return titan_installed(*launch, "train", *arguments)


def assert_resumes_exactly(case, folder, *arguments):
    """Six steps in one run and in two, on one rank and over a pipeline: bitwise equal losses, weights and states.
    `arguments`: of `titan train`; each rank has at least two sequences per step, and the learning rate depends only on
    the step."""
    for ranks in (1, 2):
        flags = [*arguments, "--parallelism.pipeline_parallel_degree", ranks, "--lr_scheduler.warmup_steps", "0",
                 "--lr_scheduler.decay_ratio", "0", "--checkpoint.enable", "--checkpoint.interval", "3",
                 "--checkpoint.no_last_save_model_only", "--debug.deterministic"]

        def run(out, steps):
            done = train_installed(ranks, *flags, "--job.dump_folder", out, "--training.steps", steps)
            case.assertEqual(done.returncode, 0, done.stderr)
            return done

        straight, parts = folder / f"straight_{ranks}", folder / f"parts_{ranks}"
        run(straight, 6)
        run(parts, 3)
        case.assertIn("resumed after step 3", run(parts, 6).stderr)
        case.assertEqual(losses(parts), losses(straight), f"{ranks} ranks")
        saved = sorted((straight / "checkpoint/step-6").glob("*.safetensors"))
        case.assertTrue([path for path in saved if path.name.startswith("optimizer")], "no states were saved")
        for path in saved:
            case.assertEqual(path.read_bytes(), (parts / "checkpoint/step-6" / path.name).read_bytes(), path)
