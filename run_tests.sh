#!/usr/bin/env bash
# Builds everything and runs tests. Exits non-zero when the build fails, a test fails, or no test ran.
#
#   ./run_tests.sh                the everyday suite, to run after every change
#   ./run_tests.sh --all          every test
#   ./run_tests.sh --slice 2/8    the second of eight parts of all tests, equal in cost
#   ./run_tests.sh --touched      the everyday suite, and the tests of the folders that changed in the last day
#   ./run_tests.sh -R tokenizers  other arguments are passed to ctest, which selects among all tests
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

usage() { sed -n '2,8s/^# \{0,1\}//p' "$0"; }

suite=everyday slice='' arguments=()
while (($#)); do
  case $1 in
    --all) suite=all ;;
    --touched) suite=touched ;;
    --slice)
      suite=all slice=${2:-}
      [[ $slice =~ ^[1-9][0-9]*/[1-9][0-9]*$ ]] && ((${slice%/*} <= ${slice#*/})) ||
        { printf "run_tests.sh: error: --slice takes K/N with 1 <= K <= N, got '%s'\n" "$slice" >&2; exit 2; }
      shift
      ;;
    -h | --help) usage; exit 0 ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
# ctest arguments select among all tests
((${#arguments[@]} == 0)) || suite=all

"$root/tools/setup.sh" --test --quiet
cd "$root"

if [[ $suite == touched ]]; then
  touched=$(.venv/bin/python tools/touched_tests.py)
  case $touched in
    all) suite=all ;;
    '') suite=everyday ;;
  esac
fi

case $suite in
  everyday) arguments+=(-LE '^thorough$') ;;
  touched)
    printf 'in addition to the everyday suite: %s\n' "$(xargs <<<"$touched")"
    # shellcheck disable=SC2086  # names are single words
    arguments+=(-I "$(.venv/bin/python tools/test_slices.py --everyday-and $touched)")
    ;;
  all) [[ -z $slice ]] || arguments+=(-I "$(.venv/bin/python tools/test_slices.py "$slice")") ;;
esac

results=$root/build/release/test_results.xml
rm -f "$results"
status=0
ctest --test-dir build/release --output-on-failure --no-tests=error --output-junit "$results" \
  -j3 "${arguments[@]}" || status=$?
[[ -f $results ]] || exit "$status"   # no test ran: ctest only listed tests, or rejected its arguments

count() { grep -m1 -oE "\b$1=\"[0-9]+\"" "$results" | grep -oE '[0-9]+'; }
total=$(count tests)
failed=$(count failures)
skipped=$(($(count skipped) + $(count disabled)))
passed=$((total - failed - skipped))
printf '\ntests: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[[ $suite == all ]] || printf 'this was the everyday suite; ./run_tests.sh --all runs every test\n'

if ((passed + failed == 0)); then
  printf 'run_tests.sh: error: no test ran\n' >&2
  exit 1
fi
exit "$status"
