#!/usr/bin/env bash
# Runs the checks that are too long for ./run_tests.sh. Each runs once for a commit: called again, the script continues with
# the remaining checks. It writes the last result of each into docs/results/long_checks.md.
#
#   tools/long_checks.sh             all checks that this commit has not passed yet
#   tools/long_checks.sh NAME...     these checks, unless this commit has passed them
#   tools/long_checks.sh --list      the names of all checks, and when each last ran
#   tools/long_checks.sh --again ... also checks that this commit has passed
#
# The ladder and the mutations keep a log of their own and resume from it after an interruption.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly state=build/long_checks page=docs/results/long_checks.md python=.venv/bin/python
readonly titan_env=(env "TITAN_SOURCE_DIR=$PWD" "TITAN_PROGRAM=$PWD/build/release/bin/titan" "TITAN_PREFIX=$PWD/build/release/tests/prefix"
  "TITAN_WORK=$PWD/build/release/tests/work" TITAN_CMAKE=cmake "VIRTUAL_ENV=$PWD/.venv" OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= "PYTHONPYCACHEPREFIX=$PWD/build/release/pycache")

# name | approximate time on two cores | description
checks='combinations|30 min|200 random combinations of layouts, converters, optimizers, dtypes and recomputation
ladder|60 min|every layout with every model, 20 steps in float64 and float32
recompute|20 min|every activation checkpoint mode under every layout
float8_curve|5 min|200 steps of float8 and MXFP8 compared with float32
convergence|40 min|loss curves of two models over seeds, layouts, dtypes and optimizers, compared with torchtitan
op_profile|6 min|share and speed of every operation of a step, compared with the peaks of the machine
presets|1 min|docs/results/presets.md equals the output of titan estimate
experts|20 min|300 steps of a mixture of experts, compared with a dense model of as many active parameters
large_folder|7 min|DeepSeek-V3 671B in its true shapes: conversion planned and run in part, with its peak memory
drills|15 min|ranks that fail, die or hang, 30 of each kind
replicas|20 min|200 kills, 50 stops and 20 cuts of the network over three replica groups, compared with one undisturbed group
checkpoint_layouts|5 min|checkpoints through every ordered pair of layouts, with experts too
checkpoint_kills|30 min|100 runs killed at random moments, all resumed
drawn_mistakes|5 min|400 random wrong configurations: every mistake is reported with its line
conformance|90 min|titan check --conformance over every plugin of the tree, and every test over plugins with deliberate defects
wandb|5 min|runs read and uploaded by wandb itself, to a stand-in server
mlflow|10 min|runs on an MLflow server, read back by its client
fuzz|60 min|every fuzz target for five minutes with a new seed
mutations|90 min|small wrong changes of the code; each must make a test fail
asan|60 min|unit tests and six end-to-end tests with AddressSanitizer and UndefinedBehaviorSanitizer
tsan|40 min|unit tests without torch, and those of shared memory, under ThreadSanitizer
cuda_kernels|5 min|the CUDA kernels compiled by nvcc: registers, spills, widths of accesses
report_page|2 min|the page of titan report in headless Chromium
tensorboard_pages|2 min|screenshots of TensorBoard pages, for a person to look at
benchmarks|15 min|start-up, step, loader and operations
first_loss|20 min|three clones, timed to the first loss
other_torch|90 min|the other LibTorch of sdk/torch_versions.txt: build, unit tests, ladder, referees; bits, runs and plugins of both
trace_readers|5 min|traces of four ranks, read by HolisticTraceAnalysis and the plugin of TensorBoard'
for part in {1..8}; do
  checks+=$'\n'"slice_$part|10 min|./run_tests.sh --slice $part/8: an eighth of all tests"
done
readonly checks

# with_package PACKAGE==VERSION SCRIPT...: runs SCRIPT in a venv of its own, for packages that the everyday suite does not need
with_package() {
  local venv="$state/venv-${1%%==*}"
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "$1"
  "$venv/bin/python" "${@:2}" --titan build/release/bin/titan
}

# Prints the path of a Python that has torchtitan in addition to the packages of the tests.
with_torchtitan() {
  local venv="$state/venv-torchtitan"
  if [[ ! -x $venv/bin/python ]]; then
    python3 -m venv "$venv"
    "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/beside.pth"
  fi
  "$venv/bin/pip" install --quiet torchtitan==0.2.2 >&2
  echo "$PWD/$venv/bin/python"
}

# Builds this commit in a worktree with a LibTorch that .venv does not have, tests it, and compares the two trees.
other_torch() {
  local other here folder="$PWD/$state/other_torch"
  here=$("$python" -c 'import torch; print(torch.__version__.split("+")[0])') || return
  other=$(awk -v here="$here" '/^[0-9]/ && $1 != here { print $1; exit }' sdk/torch_versions.txt)
  git worktree prune
  [[ -d $folder ]] || git worktree add --detach "$folder" HEAD || return
  git -C "$folder" checkout --quiet --detach "$(git rev-parse HEAD)" || return
  (cd "$folder" && env -u TITAN_TORCH_ROOT tools/setup.sh --torch "$other" --test &&
    ctest --test-dir build/release -j2 --output-on-failure -R '^(unit|tools|referee|parity|fuzz)\.') || return
  # results of the two may differ by rounding: docs/internals/libtorch.md
  "$python" tests/other_torch/torch_free_plugins.py "$folder" . && "$python" tools/same_bits.py "$folder" . --within 2e-4 &&
    "$python" tools/same_bits.py "$folder" . --across --within 2e-4
}

# Judges the plugins with deliberate defects by every test, two kinds at a time; the largest, which take the longest, start first.
wrong_plugins() {
  "${titan_env[@]}" "$python" tests/conformance/wrong_test.py WrongPluginsTest.test_loading &&
    stat --format '%s %n' tests/conformance/wrong/*.cpp | sort --reverse --numeric-sort | sed -n 's|.*/\(.*\)\.cpp$|\1|p' | grep -vx quiet_load |
    xargs -P 2 -I KIND "${titan_env[@]}" TITAN_EVERY_TEST=1 "$python" tests/conformance/wrong_test.py WrongPluginsTest.test_KIND
}

run_check() {
  local target torchtitan
  case $1 in
    combinations) "${titan_env[@]}" "$python" tests/parity/combinations.py --draws 200 --seed "$RANDOM" ;;
    ladder) "${titan_env[@]}" "$python" tests/parity/ladder.py --full --log "$PWD/$state/ladder-$commit.jsonl" ;;
    recompute) "${titan_env[@]}" "$python" tests/parity/recompute.py --full ;;
    float8_curve) "${titan_env[@]}" TITAN_FLOAT8_STEPS=200 "$python" tests/end_to_end/float8_test.py ;;
    convergence)
      torchtitan=$(with_torchtitan) && "${titan_env[@]}" "$python" tests/convergence/convergence.py --complete --torchtitan "$torchtitan" \
        --results "$PWD/$state/convergence-$commit"
      ;;
    op_profile) ninja -C build/release benchmarks && "${titan_env[@]}" "$python" tests/benchmarks/op_profile.py ;;
    experts) "${titan_env[@]}" "$python" tests/convergence/experts.py ;;
    large_folder) "${titan_env[@]}" "$python" tests/benchmarks/large_folder.py --work "$PWD/$state" ;;
    presets) "${titan_env[@]}" "$python" tests/benchmarks/presets.py --check docs/results/presets.md ;;
    drills)
      "${titan_env[@]}" TITAN_DRILLS=30 "$python" tests/end_to_end/failing_rank_test.py &&
        "${titan_env[@]}" TITAN_DRILLS=30 "$python" tests/end_to_end/pipeline_test.py
      ;;
    replicas)
      "$python" -m pip install --quiet --no-deps --requirement requirements-torchft.txt &&
        "${titan_env[@]}" "$python" tests/end_to_end/replicas_drill.py --complete --write docs/results/fault_tolerance.md
      ;;
    checkpoint_layouts) "${titan_env[@]}" TITAN_EVERY_PAIR=1 "$python" tests/end_to_end/layouts_checkpoint_test.py TourTest ;;
    checkpoint_kills) "${titan_env[@]}" "$python" tests/end_to_end/checkpoint_kills_test.py --kills 100 ;;
    drawn_mistakes) "${titan_env[@]}" "$python" tests/end_to_end/drawn_mistakes.py --draws 400 --strict-time ;;
    conformance)
      "${titan_env[@]}" "$python" tools/conformance.py --jobs 2 && ninja -C build/release wrong_plugins && wrong_plugins ;;
    wandb) with_package wandb==0.31.0 tests/referee/wandb_check.py ;;
    mlflow) with_package mlflow==3.17.2 tests/referee/mlflow_check.py ;;
    fuzz)
      ninja -C build/release fuzz_programs || return
      for target in safetensors manifest; do
        build/release/bin/checkpoint_fuzz "$target" --seconds 300 --seed "$RANDOM" || return
      done
      for target in tokenizer_json tiktoken sentencepiece megatron_index jsonl pipeline_csv chat_template; do
        build/release/bin/data_fuzz "$target" --seconds 300 --seed "$RANDOM" || return
      done
      ;;
    mutations) "$python" tests/mutations/run.py --copy "$PWD/$state/mutated" --resume "$PWD/$state/mutations-$commit.jsonl" --write docs/results/mutations.md ;;
    asan)
      cmake --preset asan && cmake --build --preset asan && ctest --preset asan -j2 -LE 'end_to_end|slow|parity|gpu|thorough|tools' &&
        ctest --preset asan -j2 -R '^end_to_end\.(train|checkpoint|pipeline|context|generate|expert_parallel)$'
      ;;
    tsan)
      cmake --preset tsan && cmake --build --preset tsan && ctest --preset tsan -j2 -LE 'end_to_end|slow|parity|gpu' &&
        TSAN_OPTIONS="suppressions=$PWD/tests/tsan_suppressions.txt" build/tsan/bin/titan_torch_tests --gtest_filter='*SharedMemory*'
      ;;
    cuda_kernels)
      cmake --preset cuda "-DTITAN_TORCH_ROOT=$(grep -oP '(?<=^TITAN_TORCH_ROOT:PATH=).*' build/release/CMakeCache.txt)" &&
        ninja -C build/cuda cuda.plugin && "$python" tools/cuda_kernels.py --check --logs build/cuda/plugins/devices/cuda
      ;;
    report_page)
      python3 -m venv "$state/browser" && "$state/browser/bin/pip" install -q websocket-client==1.9.2 html5lib==1.1 pandas==3.1.1 &&
        "${titan_env[@]}" "$state/browser/bin/python" tests/end_to_end/report_page_check.py "$PWD/$state/report_page"
      ;;
    tensorboard_pages) "$python" tests/referee/tensorboard_server_referee.py --probe build/release/bin/tensorboard_probe --screenshots "$state/tensorboard" ;;
    benchmarks)
      ninja -C build/release benchmarks && build/release/bin/ops_benchmark && "${titan_env[@]}" "$python" tests/benchmarks/data.py --rounds 3 &&
        "${titan_env[@]}" "$python" tests/benchmarks/train_benchmark.py
      ;;
    first_loss) tools/time_first_loss.sh --write ;;
    other_torch) other_torch ;;
    slice_?) ./run_tests.sh --slice "${1#slice_}/8" ;;
    trace_readers) "${titan_env[@]}" "$python" tests/benchmarks/trace_readers.py ;;
  esac
}

names() { cut -d '|' -f 1 <<<"$checks"; }

# field NAME K: field K of the last run: 1 commit, 2 date, 3 passed or FAILED, 4 seconds, 5 last line of output
field() { [[ ! -f $state/$1.row ]] || cut -f "$2" "$state/$1.row"; }

write_page() {
  {
    # shellcheck disable=SC2016  # the backticks are Markdown
    printf '# Long checks\n\nChecks that are too long for `./run_tests.sh`. `tools/long_checks.sh` runs them by hand and writes this page.\n\n'
    printf '| check | what | about | last run | commit | took | result |\n| --- | --- | --- | --- | --- | --- | --- |\n'
    local name about what row
    while IFS='|' read -r name about what; do
      # if this machine never ran the check, the row of the page stays unchanged
      if [[ -f $state/$name.row ]]; then
        printf '| %s | %s | %s | %s | %s | %s s | %s: %s |\n' "$name" "$what" "$about" "$(field "$name" 2)" "$(field "$name" 1)" \
          "$(field "$name" 4)" "$(field "$name" 3)" "$(field "$name" 5)"
      elif row=$(grep -m1 "^| $name |" "$page" 2>/dev/null); then
        printf '%s\n' "$row"
      else
        printf '| %s | %s | %s | never | | | |\n' "$name" "$what" "$about"
      fi
    done <<<"$checks"
  } >"$state/page"
  mv "$state/page" "$page"
}

list() {
  local name about what
  while IFS='|' read -r name about what; do
    printf '%-17s %-7s %-75s %s %s %s\n' "$name" "$about" "$what" "$(field "$name" 2)" "$(field "$name" 1)" "$(field "$name" 3)"
  done <<<"$checks"
}

mkdir -p "$state"
again=false wanted=()
while (($#)); do
  case $1 in
    --list) list; exit 0 ;;
    --again) again=true ;;
    -*) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
    *)
      names | grep -qx -e "$1" || { printf "long_checks: error: unknown check '%s'; there are: %s\n" "$1" "$(names | xargs)" >&2; exit 2; }
      wanted+=("$1")
      ;;
  esac
  shift
done
((${#wanted[@]})) || mapfile -t wanted < <(names)

tools/setup.sh --test --quiet
commit=$(git rev-parse --short=12 HEAD)
[[ -z $(git status --porcelain --untracked-files=no -- . ":!$page" ':!docs/results/mutations.md' ':!README.md') ]] || commit+=+
failed=0
for name in "${wanted[@]}"; do
  if ! "$again" && [[ $(field "$name" 1) == "$commit" && $(field "$name" 3) == passed ]]; then
    printf '%s: passed before for this commit; --again repeats it\n' "$name"
    continue
  fi
  printf '\n=== %s\n' "$name"
  start=$SECONDS result=passed
  # not under `if`, which would make the shell continue after a failed line
  set +e
  (set -e; run_check "$name") 2>&1 | tee "$state/$name.log"
  ((PIPESTATUS[0] == 0)) || { result=FAILED; failed=$((failed + 1)); }
  set -e
  last=$(grep -v '^[[:space:]]*$' "$state/$name.log" | tail -n 1 | tr '|\t' '/ ' | cut -c 1-140)
  printf '%s\t%s\t%s\t%d\t%s\n' "$commit" "$(date +%F)" "$result" $((SECONDS - start)) "$last" >"$state/$name.row"
  write_page
done
printf '\n%d checks, %d failed; results are in %s\n' "${#wanted[@]}" "$failed" "$page"
((failed == 0))
