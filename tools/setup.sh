#!/usr/bin/env bash
# Prepares this clone: Debian packages, .venv with the pinned wheels, CMake configuration and build. Does only what is
# missing, so it can be called at any time, from any folder. run_train.sh and run_tests.sh call it.
#
#   tools/setup.sh                    the program and every plugin
#   tools/setup.sh --for-job ARG...   the program and the plugins of one job; ARG... as for `titan train`
#   tools/setup.sh --plugins NAME...  the program and these plugins (`titan list` shows the names)
#   tools/setup.sh --test             every build target, and the packages that the tests compare with
#   --cuda                            also compile the CUDA plugin's kernels with nvcc; later calls do so too
#   --torch VERSION                   use this LibTorch, one of sdk/torch_versions.txt; later calls do so too
#   --quiet                           print nothing when everything is up to date
#   --ranks N                         number of ranks of the job; before --for-job
#
# TITAN_TORCH_ROOT  an installed LibTorch (the folder with lib/ and include/) to use instead of the torch wheel
# TITAN_PYTHON      the Python that makes .venv; default: the first suitable one of `python3` and /usr/bin/python3
set -euo pipefail

readonly logs=build/logs preset=release packages_file=tools/debian-packages.txt
readonly versions=sdk/torch_versions.txt test_wheels=requirements-test.txt lone_wheels=requirements-torchft.txt chat_templates=.venv/share/chat_templates
with_test=false quiet=false cuda=false remember_torch=false scope=all ranks=1
missing=() as_root=() pip_flags=() job=() plugins=()
python='' torch_root='' apt_pid='' test_pip_pid='' torch='' min_python_minor='' max_python_minor=''
run_wheels=() header_wheels=()

usage() { sed -n '2,16s/^# \{0,1\}//p' "$0"; }

# say STEP TEXT: prints one line of progress with the step and the seconds since the start.
say() { printf '[%s/4 %4ds] %s\n' "$1" "$SECONDS" "$2"; }

# fail WHAT ADVICE...: prints the error and the advice, and exits.
fail() {
  {
    printf '\nsetup: error: %s\n' "$1"
    shift
    (($# == 0)) || printf '  %s\n' "$@"
  } >&2
  exit 1
}

# fail_with_log LOG WHAT ADVICE...: like fail, after the last lines of a step's log.
fail_with_log() {
  local log=$1
  shift
  {
    printf '\n--- last lines of %s\n' "$log"
    tail -n 30 "$log"
    printf -- '---\n'
  } >&2
  fail "$@" "full log: $PWD/$log"
}

# await PID STEP LABEL: waits for a background step and prints a line every 30 seconds meanwhile.
await() {
  local next=$((SECONDS + 30))
  while kill -0 "$1" 2>/dev/null; do
    if ((SECONDS >= next)); then
      say "$2" "$3: still running"
      next=$((SECONDS + 30))
    fi
    sleep 0.1
  done
  wait "$1"
}

# Waits for a running apt-get, because an interrupted dpkg needs repair by hand. pip can be stopped at any point.
clean_up() {
  [[ -z $test_pip_pid ]] || kill "$test_pip_pid" 2>/dev/null || true
  if [[ -n $apt_pid ]] && kill -0 "$apt_pid" 2>/dev/null; then
    printf 'setup: waiting for apt-get to finish\n' >&2
    wait "$apt_pid" || true
  fi
}

# ---- what is missing -------------------------------------------------------------------------------------------------

find_missing_packages() {
  if ! command -v dpkg-query >/dev/null; then
    "$quiet" || printf 'setup: this system has no dpkg; install the equivalents of the packages in %s yourself\n' "$packages_file" >&2
    return
  fi
  local name rest known wanted=()
  while read -r name rest; do
    [[ "$name $rest" != '# Only with --test'* ]] || "$with_test" || break
    [[ -z $name || $name == '#'* ]] || wanted+=("$name")
  done <"$packages_file"
  # dpkg-query fails when it does not know a name, but still lists the others.
  known=$'\n'$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "${wanted[@]}" 2>/dev/null || true)$'\n'
  for name in "${wanted[@]}"; do
    [[ $known == *$'\n'"ii $name"$'\n'* ]] || missing+=("$name")
  done
}

hash_of() { sha256sum "$@" | sha256sum | cut -d ' ' -f 1; }

torch_versions() { awk '/^[0-9]/ { print $1 }' "$versions" | paste -sd ' '; }

# Chooses the LibTorch and reads its row of the table. In this order: TITAN_TORCH_ROOT, --torch of this call, --torch of
# an earlier call, the first row.
choose_torch() {
  if [[ -n ${TITAN_TORCH_ROOT:-} ]]; then
    find_torch || fail "TITAN_TORCH_ROOT=$TITAN_TORCH_ROOT contains no LibTorch" \
      "set it to a folder that contains lib/libtorch_cpu.so and include/ATen, or unset it to use the torch wheel"
    torch=$(awk '/^#define TORCH_VERSION_(MAJOR|MINOR|PATCH) / { printf "%s%s", dot, $3; dot = "." }' \
      "$torch_root/include/torch/headeronly/version.h")
  elif [[ -z $torch && -f build/.titan-torch ]]; then
    torch=$(<build/.titan-torch)
  fi
  local known pythons runtime cupti crt nccl
  while read -r known pythons _ runtime cupti crt nccl; do
    [[ $known == "${torch:-$known}" ]] || continue
    torch=$known run_wheels=("torch==$known" "nvidia-cuda-runtime==$runtime" "nvidia-cuda-cupti==$cupti")
    header_wheels=("nvidia-cuda-crt==$crt" "nvidia-nccl-cu13==$nccl")
    min_python_minor=${pythons#3.} max_python_minor=${pythons#*-3.}
    min_python_minor=${min_python_minor%-*}
    ! "$remember_torch" || echo "$torch" >build/.titan-torch
    return
  done < <(grep '^[0-9]' "$versions")
  fail "LibTorch $torch is not supported" "choose a supported version with --torch or TITAN_TORCH_ROOT: $(torch_versions)"
}

# is_stamped FILE TEXT: whether the stamp FILE of a finished step contains TEXT.
is_stamped() { [[ -f $1 && $(<"$1") == "$2" ]]; }

# Whether this machine has a GPU, or --cuda was given.
wants_cuda() { [[ -e /dev/nvidiactl ]] || cuda_wanted; }

run_stamp() { printf '%s%s' "${run_wheels[*]}" "$(wants_cuda && echo ' and their dependencies' || true)"; }

needs_run_wheels() {
  [[ -z ${TITAN_TORCH_ROOT:-} ]] || return 1
  find_torch || return 0
  ! is_stamped .venv/.titan-run-wheels "$(run_stamp)"
}

needs_header_wheels() {
  [[ -z ${TITAN_TORCH_ROOT:-} ]] && { "$with_test" || wants_cuda; } && ! is_stamped .venv/.titan-header-wheels "${header_wheels[*]}"
}

needs_test_wheels() {
  "$with_test" && ! is_stamped .venv/.titan-test-wheels "$torch $(hash_of "$test_wheels" "$lone_wheels")"
}

needs_chat_templates() { "$with_test" && [[ ! -f $chat_templates/.complete ]]; }

find_torch() {
  local candidate candidates=(.venv/lib/python3.*/site-packages/torch)
  [[ -z ${TITAN_TORCH_ROOT:-} ]] || candidates=("$TITAN_TORCH_ROOT")
  for candidate in "${candidates[@]}"; do
    if [[ -f $candidate/lib/libtorch_cpu.so && -d $candidate/include/ATen ]]; then
      torch_root=$(cd "$candidate" && pwd)
      return
    fi
  done
  return 1
}

# Arrow's libraries come with the pyarrow wheel. The dataset `parquet` is built only if they are installed.
arrow_folder() { printf '%s\n' .venv/lib/python3.*/site-packages/pyarrow | grep -v '[*]' || true; }

cuda_wanted() { [[ -f build/.titan-cuda ]]; }

configure_key() {
  printf '%s %s %s %s %s %s' "$(hash_of CMakePresets.json)" "$torch" "$(cat .venv/.titan-header-wheels 2>/dev/null)" "$torch_root" "$(arrow_folder)" "$(cuda_wanted && echo cuda || true)"
}

needs_configure() {
  [[ ! -f build/$preset/build.ninja ]] ||
    ! is_stamped "build/$preset/.titan-configured" "$(configure_key)"
}

# The plugins of the job that this tree can build. The program lists them, so it must be built first. Mistakes in the job
# are ignored here; `titan train` reports them.
job_plugins() {
  "build/$preset/bin/titan" list --ranks "$ranks" --for-job "${job[@]}" 2>/dev/null | awk 'NR > 1 { print $3 }' | sort -u |
    while read -r name; do
      grep -q "^$name " "build/$preset/lib/titan/plugins/plugins.txt" && printf '%s\n' "$name"
    done || true
}

# Whether Arrow must be installed: the plugin that reads Parquet needs it.
wants_arrow() {
  [[ -z $(arrow_folder) ]] || return 1
  "$with_test" || [[ " ${plugins[*]} " == *' parquet_dataset '* ]]
}

# Targets that ninja can build now. The plugins of a job are known only after the program is built.
targets() {
  case $scope in
    test) printf 'all\n' ;;
    all) printf 'programs\nplugins\n' ;;
    *)
      printf 'titan\n'
      local name
      for name in "${plugins[@]}"; do printf '%s.plugin\n' "$name"; done
      [[ $ranks == 1 ]] || printf 'launch.plugin\n'
      ;;
  esac
}

has_work() {
  local plan
  # shellcheck disable=SC2046  # target names are single words
  plan=$(ninja -C "build/$preset" -n $(targets) 2>/dev/null) || return 0
  [[ $plan != *'no work to do'* ]]
}

needs_build() {
  if [[ $scope == job ]]; then
    plugins=()
    ! has_work || return 0
    mapfile -t plugins < <(job_plugins)
  fi
  has_work
}

# ---- step 1: Debian packages -----------------------------------------------------------------------------------------

become_root() {
  if ((EUID == 0)); then
    as_root=()
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    local install="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
    local line="sudo sh -c '$install'"
    command -v sudo >/dev/null || line="su -c '$install'"
    fail "${#missing[@]} Debian packages are missing, and installing them needs root" \
      "run this line, then the same command again:" "" "$line"
  fi
}

apt_install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 \
    install -y --no-install-recommends "$@" >>"$logs/apt.log" 2>&1 </dev/null
}

apt_failed() {
  fail_with_log "$logs/apt.log" "apt-get could not install the Debian packages" \
    "missing: ${missing[*]}" \
    "fix what apt-get reports above (often the network or the package sources), then run the same command again"
}

start_packages() {
  if ((${#missing[@]} == 0)); then
    say 1 "Debian packages: nothing to install"
    return
  fi
  become_root
  say 1 "Debian packages: installing ${missing[*]}"
  : >"$logs/apt.log"
  # The old package lists may suffice, so only a failed installation is an error.
  "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update >>"$logs/apt.log" 2>&1 </dev/null ||
    say 1 "Debian packages: apt-get update failed, continuing with the existing package lists; log: $logs/apt.log"
  # With a Python that can make environments, pip runs in parallel with apt-get.
  if ! find_python; then
    apt_install python3-venv || apt_failed
  fi
  apt_install "${missing[@]}" &
  apt_pid=$!
}

finish_packages() {
  [[ -n $apt_pid ]] || return 0
  await "$apt_pid" 1 "Debian packages (log: $logs/apt.log)" || { apt_pid=''; apt_failed; }
  apt_pid=''
  say 1 "Debian packages: installed"
}

# ---- step 2: wheels --------------------------------------------------------------------------------------------------

find_python() {
  local candidate
  for candidate in "${TITAN_PYTHON:-}" python3 /usr/bin/python3; do
    if [[ -n $candidate ]] && "$candidate" - "$min_python_minor" "$max_python_minor" 2>/dev/null <<'PY'; then
import ensurepip, sys, venv
low, high = (int(v) for v in sys.argv[1:])
sys.exit(not (sys.version_info[0] == 3 and low <= sys.version_info[1] <= high))
PY
      python=$candidate
      return
    fi
  done
  return 1
}

make_venv() {
  ! .venv/bin/python -c 'import pip' 2>/dev/null || return 0
  find_python || fail "no suitable Python found: LibTorch $torch needs Python 3.$min_python_minor to 3.$max_python_minor with venv" \
    "install python3-venv, set TITAN_PYTHON to such a Python, or choose another LibTorch with --torch: $(torch_versions)"
  rm -f .venv/.titan-*
  "$python" -m venv --clear .venv >"$logs/venv.log" 2>&1 ||
    fail_with_log "$logs/venv.log" "$python could not create the environment .venv" \
      "install python3-venv, or set TITAN_PYTHON to another Python"
}

# Does not byte-compile: Titan runs no Python, and the tests compile the modules that they import.
pip_install() {
  .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-compile --only-binary :all: "$@"
}

# pip_now WHAT ARG...: like pip_install, in the foreground; exits with an error if pip fails.
pip_now() {
  local what=$1
  shift
  pip_install "${pip_flags[@]}" "$@" ||
    fail "pip could not install $what" \
      "fix what pip reports above (often the network or a full disk), then run the same command again"
}

install_run_wheels() {
  if [[ -n ${TITAN_TORCH_ROOT:-} ]]; then
    say 2 "wheels: no LibTorch to download, using TITAN_TORCH_ROOT=$TITAN_TORCH_ROOT"
    return
  fi
  if ! needs_run_wheels; then
    say 2 "wheels: LibTorch $torch is installed"
    return
  fi
  local size='about 545 MB' deps=(--no-deps)
  ! wants_cuda || size='about 2.5 GB with the CUDA libraries' deps=()
  say 2 "wheels: downloading LibTorch $torch into .venv ($size)"
  make_venv
  pip_now "${run_wheels[*]}" "${deps[@]}" "${run_wheels[@]}"
  find_torch || fail "the torch wheel contains no lib/libtorch_cpu.so" "remove the folder $PWD/.venv, then run the same command again"
  run_stamp >.venv/.titan-run-wheels
  say 2 "wheels: LibTorch $torch is installed"
}

# The CUDA plugin is compiled only if these headers are installed.
install_header_wheels() {
  needs_header_wheels || return 0
  say 2 "wheels: downloading the headers of CUDA and NCCL into .venv (about 215 MB)"
  make_venv
  pip_now "${header_wheels[*]}" --no-deps "${header_wheels[@]}"
  echo "${header_wheels[*]}" >.venv/.titan-header-wheels
}

# The configuration looks for Arrow, so it is installed before the other wheels of the tests.
install_arrow() {
  wants_arrow || return 0
  say 2 "wheels: downloading Arrow into .venv"
  make_venv
  pip_now pyarrow --no-deps "$(grep -m1 '^pyarrow==' "$test_wheels")"
}

# The packages that the tests compare with are large and the build does not need them: pip installs them during the build.
start_test_wheels() {
  needs_test_wheels || return 0
  say 2 "wheels: downloading the packages that the tests compare with into .venv during the build (about 2.5 GB)"
  make_venv
  { # torchft without what it needs: the tests load one file of it
    pip_install --progress-bar off "torch==$torch" -r "$test_wheels" &&
      pip_install --progress-bar off --no-deps -r "$lone_wheels"
  } >"$logs/pip_test.log" 2>&1 </dev/null &
  test_pip_pid=$!
}

# Chat templates of published models, which the tests render. They are downloaded once.
fetch_chat_templates() {
  needs_chat_templates || return 0
  say 2 "chat templates: downloading those of published models, for the tests (77 MB)"
  make_venv
  .venv/bin/python tools/fetch_chat_templates.py "$chat_templates" ||
    say 2 "chat templates: not downloaded, see the error above; the tests that render them will be skipped"
}

finish_test_wheels() {
  [[ -n $test_pip_pid ]] || return 0
  await "$test_pip_pid" 2 "wheels of the tests (log: $logs/pip_test.log)" ||
    { test_pip_pid=''; fail_with_log "$logs/pip_test.log" "pip could not install $test_wheels and $lone_wheels" \
      "fix what pip reports above (often the network or a full disk), then run the same command again; finished steps are kept"; }
  test_pip_pid=''
  echo "$torch $(hash_of "$test_wheels" "$lone_wheels")" >.venv/.titan-test-wheels
  say 2 "wheels: the packages that the tests compare with are installed"
}

# ---- steps 3 and 4: CMake --------------------------------------------------------------------------------------------

configure() {
  if ! needs_configure; then
    say 3 "configure: up to date"
    return
  fi
  say 3 "configure: cmake --preset $preset"
  local flags=("-DTITAN_TORCH_ROOT=$torch_root")
  ! cuda_wanted || flags+=(-DTITAN_CUDA=ON -DTITAN_CUDA_KERNELS=ON)
  cmake --fresh --preset "$preset" "${flags[@]}" >"$logs/configure.log" 2>&1 </dev/null ||
    fail_with_log "$logs/configure.log" "cmake could not configure the build" \
      "fix what cmake reports above, then run the same command again"
  configure_key >"build/$preset/.titan-configured"
}

# Turns ninja's status lines into one line of progress, which a terminal overwrites and a file gets every 15 seconds.
# Other lines pass unchanged.
show_progress() {
  local line finished total elapsed last=0
  while IFS= read -r line; do
    if [[ $line != @* ]]; then
      [[ $line == 'ninja: '* ]] || printf '%s\n' "$line"
      continue
    fi
    IFS=' ' read -r finished total elapsed _ <<<"${line#@}"
    elapsed=${elapsed%.*}
    ((finished > 0 && total > 1)) || continue
    local text="[4/4 ${SECONDS}s] build: $finished of $total steps"
    ((elapsed < 5)) || text+=", about $(((total - finished) * elapsed / finished + 1)) s left"
    if [[ -t 1 ]]; then
      printf '\r\033[K%s' "$text"
      ((finished < total)) || printf '\n'
    elif ((SECONDS >= last + 15 || finished == total)); then
      printf '%s\n' "$text"
      last=$SECONDS
    fi
  done
}

run_ninja() {
  local target_list
  mapfile -t target_list < <(targets)
  NINJA_STATUS='@%f %t %e ' ninja -C "build/$preset" "${target_list[@]}" </dev/null 2>&1 | show_progress ||
    fail "the build failed; the first compiler error above shows where" \
      "after a fix, run the same command again; finished files are not compiled again" \
      "if the compiler was killed, memory ran out: first run  ninja -C $PWD/build/$preset -j 1 ${target_list[*]}"
}

build() {
  local what='the program'
  [[ $scope != all ]] || what+=' and all plugins'
  [[ $scope != test ]] || what='everything'
  say 4 "build: $what (the first time 2 to 8 minutes on 2 cores, then only what changed)"
  run_ninja
  [[ $scope == job ]] || return 0
  # The flavors of a model are known once its plugin is built, so the plugins are listed again until none is new.
  local before=none
  while
    mapfile -t plugins < <(job_plugins)
    [[ $before != "${plugins[*]}" ]]
  do
    before=${plugins[*]}
    if wants_arrow; then
      install_arrow
      configure
    fi
    ! has_work || { say 4 "build: plugins of the job: ${plugins[*]}"; run_ninja; }
  done
}

main() {
  while (($#)); do
    case $1 in
      --test) with_test=true scope=test ;;
      --ranks) ranks=${2:?--ranks needs a number}; shift ;;
      --for-job) scope=job; shift; job=("$@"); break ;;
      --plugins) scope=some; shift; plugins=("$@"); break ;;
      --cuda) cuda=true ;;
      --torch) torch=${2:?--torch needs a version} remember_torch=true; shift ;;
      --quiet) quiet=true ;;
      -h | --help) usage; exit 0 ;;
      *) printf "setup: error: unknown argument '%s'\n" "$1" >&2; usage >&2; exit 2 ;;
    esac
    shift
  done
  # Both may be relative to the caller's folder.
  [[ -z ${TITAN_TORCH_ROOT:-} || $TITAN_TORCH_ROOT == /* ]] || TITAN_TORCH_ROOT=$PWD/$TITAN_TORCH_ROOT
  [[ ${TITAN_PYTHON:-} != */* || $TITAN_PYTHON == /* ]] || TITAN_PYTHON=$PWD/$TITAN_PYTHON
  cd "$(dirname "${BASH_SOURCE[0]}")/.."

  mkdir -p "$logs"
  ! "$cuda" || touch build/.titan-cuda
  choose_torch
  exec 9>build/.setup.lock
  flock -n 9 || { printf 'setup: waiting for another setup of this clone to finish\n'; flock 9; }

  find_missing_packages
  if ((${#missing[@]} == 0)) && ! needs_run_wheels && ! needs_header_wheels && ! needs_test_wheels && ! needs_chat_templates && find_torch &&
    ! wants_arrow && ! needs_configure && ! needs_build; then
    "$quiet" || printf 'setup: everything is up to date\n'
    return
  fi

  [[ -t 1 ]] || pip_flags=(--progress-bar off)
  trap clean_up EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  start_packages
  install_run_wheels
  finish_packages
  install_header_wheels
  install_arrow
  start_test_wheels
  fetch_chat_templates
  configure
  build
  finish_test_wheels
  printf 'setup: ready after %d s; the program is %s; to call it as "titan": export PATH="%s:$PATH"\n' \
    "$SECONDS" "build/$preset/bin/titan" "$PWD/build/$preset/bin"
}

main "$@"
