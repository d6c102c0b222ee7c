"""Makes a bundle: a folder of programs, plugins, tests and scripts to copy to a machine that has a GPU but no build tree.

    tools/gpu_bundle.sh OUT_DIR                # builds what is out of date, then makes OUT_DIR
    tools/gpu_bundle.sh OUT_DIR --check        # also runs a copy of it on the CPU, with the build tree hidden
    tools/gpu_bundle.sh OUT_DIR --archs 90a    # with kernels for Hopper only

On the machine with the GPU, in bash: `. OUT_DIR/env.sh`, then `titan ...`, `titan_gpu_tests`, `device_probe` or
`tests/gpu/run_all.sh`. That machine needs Ubuntu 24.04 (or another system with its glibc and libstdc++), Python 3, and the torch
wheel of the version that the build uses (bundle.json names it). For another version of sdk/torch_versions.txt, make the bundle in a
clone that was set up by `tools/setup.sh --torch VERSION --cuda`. OUT_DIR/bundle.json lists the content and the commit of the bundle.
Standard library only; needs binutils and CMake.
"""

import argparse
import ast
import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

from scrub_paths import scrub_files

ROOT = pathlib.Path(__file__).resolve().parents[1]
TORCH_VERSIONS = [line.split()[0] for line in (ROOT / "sdk/torch_versions.txt").read_text().splitlines() if line[:1].isdigit()]
LIMIT = 45 << 20  # maximum size of a bundle in bytes
PROGRAMS = ("titan", "titan-train", "titan_gpu_tests", "device_probe")
TARGETS = ("titan", "titan_train", "titan_gpu_tests", "device_probe", "plugins")
# Plugins that need libcurl or Arrow; the tests and benchmarks for GPUs do not use them.
LEFT_OUT = ("download.plugin.so", "mlflow.plugin.so", "parquet_dataset.plugin.so", "plugin_index.plugin.so")
SCRIPTS = ("tests/gpu", "tests/parity/ladder.py")  # the modules of the tree that they import are added
MODULE_FOLDERS = ("tests/gpu", "tests/benchmarks", "tests/parity", "tests/end_to_end", "tests/referee", "tools")
DATA = ("train_configs", "tests/assets")
SOURCE_SUFFIXES = (".cpp", ".h", ".cu", ".cuh", ".cmake", ".pyc")
SECTION = b".titan_plugin"
# Libraries that the machine has: those of Ubuntu 24.04's base system (libc6, libgcc-s1, libstdc++6, zlib1g, libcrypt1) and of
# NVIDIA's driver.
BASE = {"ld-linux-x86-64.so.2", "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1",
        "libresolv.so.2", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "libcrypt.so.1", "libcuda.so.1", "libnvidia-ml.so.1"}
# The newest symbol versions of the libraries in BASE.
NEWEST = {"GLIBC": (2, 39), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15), "GCC": (14,)}
ENVIRONMENT = '''# Prepares a shell for this bundle: . env.sh
TITAN_BUNDLE=$(cd "$(dirname "${BASH_SOURCE:-$0}")" && pwd)
if [ ! -f "$TITAN_BUNDLE/bundle.json" ]; then
  echo "env.sh: error: source this file from bash: . OUT_DIR/env.sh" >&2
  return 1
fi
if [ -z "${TITAN_TORCH_ROOT:-}" ]; then
  TITAN_TORCH_ROOT=$(python3 -c '
import importlib.util
found = importlib.util.find_spec("torch")  # without importing it, which takes seconds
print(found.submodule_search_locations[0] if found else "")')
fi
if [ ! -f "$TITAN_TORCH_ROOT/lib/libtorch_cpu.so" ]; then
  echo "env.sh: error: no torch found; install the wheel of the version in bundle.json, or set TITAN_TORCH_ROOT to its folder torch" >&2
  return 1
fi
LD_LIBRARY_PATH=$TITAN_BUNDLE/lib:$TITAN_BUNDLE/debian:$TITAN_TORCH_ROOT/lib$(
  for folder in "$(dirname "$TITAN_TORCH_ROOT")"/nvidia/*/lib /usr/local/cuda/lib64; do
    [ ! -d "$folder" ] || printf ':%s' "$folder"
  done)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
PATH=$TITAN_BUNDLE/bin:$PATH
export TITAN_BUNDLE TITAN_TORCH_ROOT LD_LIBRARY_PATH PATH
'''


class Problem(Exception):
    """The reason why a bundle could not be made or failed its check."""


def run(*words, **more):
    words = [str(word) for word in words]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode:
        raise Problem(f"{shlex.join(words)[:300]} failed with code {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


# ---- ELF files ---------------------------------------------------------------------------------------------------------


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


class Elf:
    """The libraries, search paths and symbol versions that a program or library needs."""

    def __init__(self, path):
        text = run("readelf", "-W", "-d", "-V", path, env=dict(os.environ, LC_ALL="C"))
        self.needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
        self.search_path = ":".join(re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text)).split(":")
        # needed versions are lines "Name: ... Flags"; lines of defined versions have other columns
        needs = text.partition("Version needs section")[2].partition("Version definition section")[0]
        self.versions = set(re.findall(r"Name: (\w+_[\d.]+)\s+Flags", needs))


def too_new(versions):
    """The symbol versions that Ubuntu 24.04 does not have."""
    found = []
    for version in versions:
        name, _, number = version.rpartition("_")
        if name in NEWEST and tuple(map(int, number.split("."))) > NEWEST[name]:
            found.append(version)
    return sorted(found)


def torch_libraries(torch):
    return {path.name for folder in (torch / "lib", *torch.parent.glob("nvidia/*/lib")) for path in folder.glob("*.so*")}


def system_libraries():
    """{name: file} of the libraries that the loader of this system finds."""
    found = {}
    for name, path in re.findall(r"^\s+(\S+) \(libc6,x86-64.*\) => (\S+)$", run("/sbin/ldconfig", "-p"), re.M):
        found.setdefault(name, path)
    return found


def copy_needed(out, torch):
    """Copies to `debian` the system libraries that files of the bundle need and that Ubuntu 24.04's base system lacks."""
    here, theirs = system_libraries(), torch_libraries(torch) | BASE
    to_read = [path for path in files_of(out) if is_elf(path)]
    ours = {path.name for path in to_read}
    while to_read:
        reader = to_read.pop()
        for name in Elf(reader).needed:
            if name in ours or name in theirs:
                continue
            if name not in here:
                raise Problem(f"{reader.name} needs {name}, which was not found: not in the build, in torch, or on this system")
            copy = out / "debian" / name
            copy.parent.mkdir(exist_ok=True)
            shutil.copy(here[name], copy)
            ours.add(name)
            to_read.append(copy)


# ---- making --------------------------------------------------------------------------------------------------------------


def cache_of(build):
    """The variables of CMake's cache."""
    try:
        return dict(re.findall(r"^([\w-]+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))
    except FileNotFoundError:
        raise Problem(f"{build} is not a build tree; run tools/setup.sh --cuda first, or omit --skip-build")


def torch_version(torch):
    found = re.search(r"__version__ = '(.*)'", (torch / "version.py").read_text())
    return found[1] if found else "unknown"


@contextlib.contextmanager
def setup_lock():
    """The lock of tools/setup.sh: one build of a tree at a time."""
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / ".setup.lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_tree(build, archs):
    if not (build / "build.ninja").exists() or (
            build == ROOT / "build/release" and cache_of(build).get("TITAN_CUDA_KERNELS") != "ON"):
        subprocess.run([ROOT / "tools" / "setup.sh", "--cuda"], check=True)
    with setup_lock():
        if archs and cache_of(build).get("TITAN_CUDA_ARCHS") != ";".join(archs):
            run("cmake", f"-DTITAN_CUDA_ARCHS={';'.join(archs)}", build)
        run("ninja", "-C", build, *TARGETS)


def imports_of(script):
    """The files of the modules of the tree that a script imports."""
    for node in ast.walk(ast.parse(script.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        for name in names:
            for folder in (script.parent, *(ROOT / folder for folder in MODULE_FOLDERS)):
                file = folder / f"{name}.py"
                if file.exists():
                    yield file
                    break


def scripts():
    found = set()
    to_read = []
    for name in SCRIPTS:
        path = ROOT / name
        to_read += files_of(path) if path.is_dir() else [path]
    while to_read:
        path = to_read.pop()
        if path in found or path.suffix in SOURCE_SUFFIXES:
            continue
        found.add(path)
        if path.suffix == ".py":
            to_read += imports_of(path)
    return sorted(found)


def copy_built(build, out):
    for folder in ("bin", "lib/titan/plugins"):
        (out / folder).mkdir(parents=True)
    wanted = [(build / "bin" / name, out / "bin") for name in PROGRAMS]
    wanted += [(path, out / "lib") for path in sorted((build / "lib").glob("*.so"))]
    wanted += [(path, out / "lib/titan/plugins") for path in sorted((build / "lib/titan/plugins").glob("*.plugin.so"))
               if path.name not in LEFT_OUT]
    for source, folder in wanted:
        if not source.exists():
            raise Problem(f"{source} is missing; omit --skip-build to build it")
        shutil.copy(source, folder)
    if not (out / "lib/titan/plugins/cuda.plugin.so").exists():
        raise Problem("this build has no cuda plugin; the line 'CUDA: off, because ...' in the output of cmake has the reason")


def make_relocatable(out, folders):
    """Strips symbols, search paths and the paths of the build's folders."""
    libraries = files_of(out / "lib")
    run("strip", "-s", *files_of(out / "bin"))
    run("strip", "--strip-unneeded", *libraries)
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
        for path in files_of(out / "bin") + libraries:
            script.write(f'file(RPATH_REMOVE FILE "{path}")\n')
        script.flush()
        run("cmake", "-P", script.name)
    return scrub_files(files_of(out / "bin") + libraries, folders)


def copy_data(out, wheels):
    for name in DATA:
        shutil.copytree(ROOT / name, out / name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    for path in scripts():
        copy = out / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    (out / "env.sh").write_text(ENVIRONMENT)
    if wheels:
        (out / "wheels").mkdir()
        for wheel in sorted(wheels.glob("*.whl")):
            shutil.copy(wheel, out / "wheels")


def git(*words):
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True)
    return done.stdout if done.returncode == 0 else b""


def changes():
    """A short hash of the uncommitted changes; None if there are none."""
    status = git("status", "--porcelain=v1", "-z")
    if not status:
        return None
    digest = hashlib.sha256(git("diff", "HEAD"))
    for name in git("ls-files", "--others", "--exclude-standard", "-z").split(b"\0"):
        path = ROOT / os.fsdecode(name)
        if name and path.is_file():
            digest.update(name + path.read_bytes())
    return digest.hexdigest()[:12]


def describe(out, build, torch, places):
    cache = cache_of(build)
    archs = re.search(rb"\0cuda_archs=([^\0]*)", (out / "lib/titan/plugins/cuda.plugin.so").read_bytes())
    nvcc = cache.get("TITAN_NVCC", "")
    nvcc_version = re.search(r"V([\d.]+)", run(nvcc, "--version")) if os.path.exists(nvcc) else None
    files = {str(path.relative_to(out)): path for path in files_of(out)}
    sizes = {}
    for name, path in files.items():
        top = name.split("/")[0]
        sizes[top] = sizes.get(top, 0) + path.stat().st_size
    facts = {
        "schema": 1, "commit": git("rev-parse", "HEAD").decode().strip() or None, "changes": changes(),
        "date": git("show", "-s", "--format=%cI", "HEAD").decode().strip() or None, "torch": torch_version(torch),
        "cuda_archs": archs[1].decode().split() if archs else [], "nvcc": nvcc_version[1] if nvcc_version else None,
        "paths_removed": places, "bytes": sum(sizes.values()), "sizes": sizes,
        "sha256": {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()}}
    (out / "bundle.json").write_text(json.dumps(facts, indent=1) + "\n")
    return facts


def expected_losses(build):
    """The file with losses computed on the CPU, with which those of a GPU are compared. Cached by a hash of the programs, the plugins
    that the jobs use, and the jobs."""
    digest = hashlib.sha256()
    for path in [build / "bin/titan-train", *sorted((build / "lib").glob("*.so")),
                 *sorted((build / "lib/titan/plugins").glob("*.plugin.so")), *sorted((ROOT / "tests/gpu").glob("*.py"))]:
        if path.name not in ("cuda.plugin.so", *LEFT_OUT):
            digest.update(path.read_bytes())
    file = build / "gpu_expected" / f"{digest.hexdigest()[:16]}.json"
    if not file.exists():
        print("bundle: computing the losses on the CPU, which takes some minutes", flush=True)
        with tempfile.TemporaryDirectory(prefix="titan_expected_") as name:
            run(sys.executable, ROOT / "tests/gpu/checks.py", "expected", "--device", "cpu", "--root", ROOT, "--programs", build / "bin",
                "--out", name, "--seconds", "3600")
            shutil.rmtree(file.parent, ignore_errors=True)
            file.parent.mkdir()
            shutil.copy(pathlib.Path(name) / "expected.json", file)
    return file


def make(out, build, torch, wheels, with_losses=True):
    if out.exists() and not (out / "bundle.json").exists() and any(out.iterdir()):
        raise Problem(f"{out} exists and is not a bundle; choose another folder")
    if torch_version(torch).split("+")[0] not in TORCH_VERSIONS:
        raise Problem(f"{build} is built for torch {torch_version(torch)}, not for {' or '.join(TORCH_VERSIONS)}; choose another build with --build")
    new = out.with_name(out.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    copy_built(build, new)
    places = make_relocatable(new, build_folders(torch))
    copy_needed(new, torch)
    copy_data(new, wheels)
    if with_losses:
        shutil.copy(expected_losses(build), new / "tests/gpu/expected.json")
    facts = describe(new, build, torch, places)
    shutil.rmtree(out, ignore_errors=True)
    new.rename(out)
    return facts


def build_folders(torch):
    """Folders whose paths must not occur in a bundle."""
    return {ROOT, torch, torch.resolve()}


# ---- checking ------------------------------------------------------------------------------------------------------------


def static_problems(bundle, torch):
    """Problems that the files of a bundle show without being run."""
    problems = []
    paths = files_of(bundle)
    facts = json.loads((bundle / "bundle.json").read_text())
    found = {str(path.relative_to(bundle)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    found.pop("bundle.json")
    for name in sorted(set(found) ^ set(facts["sha256"])):
        problems.append(f"{name} is {'missing' if name not in found else 'not listed in bundle.json'}")
    problems += [f"{name} differs from its hash in bundle.json" for name, digest in found.items()
                 if facts["sha256"].get(name, digest) != digest]

    names = {path.name for folder in ("lib", "debian") for path in (bundle / folder).glob("*.so*")}
    known = names | torch_libraries(torch) | BASE
    for path in paths:
        name = path.relative_to(bundle)
        content = path.read_bytes()
        problems += [f"{name} contains the path {folder}" for folder in sorted(build_folders(torch)) if bytes(folder) in content]
        if "__pycache__" in path.parts:
            problems.append(f"{name} is in a Python cache")
        if not is_elf(path):
            continue
        elf = Elf(path)
        problems += [f"{name} has the search path {folder}" for folder in elf.search_path if folder and not folder.startswith("$ORIGIN")]
        problems += [f"{name} links the path {needed}" for needed in elf.needed if "/" in needed]
        problems += [f"{name} needs {needed}, which neither the bundle nor Ubuntu 24.04 has" for needed in elf.needed
                     if "/" not in needed and needed not in known]
        problems += [f"{name} needs {version}, which Ubuntu 24.04 does not have" for version in too_new(elf.versions)]
        if path.name.endswith(".plugin.so") and SECTION not in content:
            problems.append(f"{name} has no manifest")
    size = sum(path.stat().st_size for path in paths)
    if size > LIMIT:
        problems.append(f"the bundle has {size / 2**20:.1f} MiB, at most {LIMIT >> 20} are allowed")
    return problems


def can_hide():
    words = namespace() + ["mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def namespace():
    return ["unshare", "-m" if os.geteuid() == 0 else "-rm"]


def elsewhere(command, bundle, work, torch, hides):
    """The command line that runs `command` in the bundle, with the torch wheel in another folder. If `hides`, mounts hide the source
    tree and the build."""
    copy = work / "python"
    copy.mkdir(exist_ok=True)
    steps = ["set -e"]
    for folder in (torch, torch.parent / "nvidia"):
        if not folder.is_dir():
            continue
        if hides:
            (copy / folder.name).mkdir(exist_ok=True)
            steps.append(f"mount --rbind {shlex.quote(str(folder))} {copy}/{folder.name}")
        elif not (copy / folder.name).exists():
            (copy / folder.name).symlink_to(folder)
    if hides:
        steps += [f"mount -t tmpfs none {shlex.quote(str(folder))}" for folder in (torch, ROOT)]
    steps += [f"cd {bundle}", f"export PYTHONPATH={copy}", ". ./env.sh", "set +e", command]
    return (namespace() if hides else []) + ["bash", "-c", "\n".join(steps)]


def plays(work):
    """The commands to run: (name, command, allowed exit codes, regular expression that the output must match)."""
    train = ("titan train --job.config_file train_configs/debug_model.toml --device.name cpu --training.steps 10 "
             f"--training.seq_len 256 --training.local_batch_size 1 --job.dump_folder {work}/run")
    return [
        ("titan list", "titan list", (0,), r"\bcuda\b"),
        ("ten steps of the debug model", train, (0,), r"step: *10\b"),
        ("device_probe", "device_probe --plugins lib/titan/plugins ops cpu 2 --only rms_norm", (0,), r'"done":true,"ok":true'),
        # with its path, because death tests start the program again; exit code 77: all tests were skipped
        ("titan_gpu_tests", "bin/titan_gpu_tests", (0, 77), r"\[ +(PASSED|SKIPPED) +\]"),
    ]


def play_problems(bundle, work, torch):
    problems = []
    kept = {name: value for name, value in os.environ.items() if not re.match("TITAN_|PYTHON|LD_", name)}
    hides = can_hide()
    if not hides:
        print("check: this system has no mount namespaces (unshare -rm), so the source tree and the build are not hidden", flush=True)
    unreachable = ("source tree and build are hidden", f"! ls {shlex.quote(str(ROOT / 'tools'))} 2>&1", (0,), "")
    for what, command, codes, pattern in [unreachable] * hides + plays(work):
        try:
            done = subprocess.run(elsewhere(command, bundle, work, torch, hides), env=kept, timeout=300, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except subprocess.TimeoutExpired:
            problems.append(f"{what}: not finished after 300 s")
            continue
        skipped = ", ".join(sorted(set(re.findall(r"Skipped\n(?:\S+: )?(.*)", done.stdout))))
        if done.returncode in codes and re.search(pattern, done.stdout):
            print(f"check: {what}: passed" + (f" (skipped: {skipped})" if skipped else ""), flush=True)
        else:
            problems.append(f"{what}: exit code {done.returncode}:\n{done.stdout[-3000:]}")
    return problems


def check(bundle, torch):
    with tempfile.TemporaryDirectory(prefix="titan_bundle_") as name:
        work = pathlib.Path(name).resolve()
        if ROOT in work.parents:
            raise Problem(f"temporary files are in {work}, inside the source tree; set TMPDIR to a folder outside of it")
        copy = work / "bundle"
        shutil.copytree(bundle, copy)
        problems = static_problems(copy, torch)
        size = sum(path.stat().st_size for path in files_of(copy))
        print(f"check: {len(files_of(copy))} files, {size / 2**20:.1f} MiB", flush=True)
        if not problems:
            print("check: libraries, symbol versions, search paths, paths of the build: passed", flush=True)
        problems += play_problems(copy, work, torch)
    if problems:
        raise Problem("check: failed\n" + "\n".join(problems))
    print("check: passed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", metavar="OUT_DIR", type=pathlib.Path, help="folder of the bundle; an older bundle there is replaced")
    parser.add_argument("--check", action="store_true", help="run a copy of it on the CPU, with source tree and build hidden")
    parser.add_argument("--skip-build", action="store_true", help="use the build as it is, even if it is out of date")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release", help="the build tree (default: %(default)s)")
    parser.add_argument("--archs", nargs="+", metavar="ARCH",
                        help="configure the build tree's kernels for these architectures, such as 90a; default: no change")
    parser.add_argument("--wheels", type=pathlib.Path, help="copy the wheels of this folder into the bundle; downloads them if it is empty")
    parser.add_argument("--no-losses", action="store_true",
                        help="omit the losses of the CPU; the machine with the GPU then computes them")
    options = parser.parse_args()
    try:
        build = options.build.resolve()
        if not options.skip_build:
            build_tree(build, options.archs)
        torch = pathlib.Path(cache_of(build)["TITAN_TORCH_ROOT"])
        fetch = ROOT / "tests" / "gpu" / "fetch_wheels.sh"
        if options.wheels and fetch.exists() and not list(options.wheels.glob("*.whl")):
            run(fetch, options.wheels)
        facts = make(options.out.resolve(), build, torch, options.wheels, not options.no_losses)
        print(f"bundle: {options.out}: {facts['bytes'] / 2**20:.1f} MiB, {len(facts['sha256'])} files, torch {facts['torch']}, "
              f"kernels for {' '.join(facts['cuda_archs'])}", flush=True)
        if options.check:
            check(options.out.resolve(), torch)
    except Problem as problem:
        sys.exit(f"gpu_bundle: {problem}")


if __name__ == "__main__":
    main()
