"""The installation that the test `end_to_end.install` has made, and building projects against it."""

import os
import pathlib
import shutil
import subprocess

from harness import HANG, ROOT, environment

PREFIX = pathlib.Path(os.environ["TITAN_PREFIX"])
CMAKE = os.environ.get("TITAN_CMAKE", "cmake")


def run_checked(*command, timeout=HANG, **env):
    run = subprocess.run([str(part) for part in command], env=environment(**env), timeout=timeout,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if run.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} gave {run.returncode}\n{run.stdout}\n{run.stderr}")
    return run


def launcher():
    """ccache where there is one: the same sources are built again at each test run."""
    ccache = shutil.which("ccache")
    return [f"-DCMAKE_CXX_COMPILER_LAUNCHER={ccache}"] if ccache else []


def build_project(source, build):
    """Configures and builds the project in `source` as its author would; gives the build folder."""
    shutil.rmtree(build, ignore_errors=True)
    run_checked(CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DTitan_ROOT={PREFIX}", *launcher())
    run_checked(CMAKE, "--build", build, "-j", "1")
    return build


def titan_installed(*arguments, cwd=ROOT, **env):
    return subprocess.run([PREFIX / "bin/titan", *map(str, arguments)], cwd=cwd, env=environment(**env), timeout=HANG,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
