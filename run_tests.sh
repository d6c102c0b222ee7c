#!/usr/bin/env bash
# Builds everything and runs every test. Arguments go to ctest: `./run_tests.sh -R Tokenizer` runs the tests so named.
# Exits non-zero when the build fails, a test fails, or no test ran.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

"$root/tools/setup.sh" --test --quiet
cd "$root"

results=$root/build/release/test_results.xml
rm -f "$results"
status=0
ctest --test-dir build/release --output-on-failure --no-tests=error --output-junit "$results" \
  -j3 "$@" || status=$?
[[ -f $results ]] || exit "$status"   # nothing was run: ctest only listed, or refused its arguments

count() { grep -m1 -oE "\\b$1=\"[0-9]+\"" "$results" | grep -oE '[0-9]+'; }
total=$(count tests)
failed=$(count failures)
skipped=$(($(count skipped) + $(count disabled)))
passed=$((total - failed - skipped))
printf '\ntests: %d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"

if ((passed + failed == 0)); then
  printf 'run_tests.sh: error: no test ran\n' >&2
  exit 1
fi
exit "$status"
