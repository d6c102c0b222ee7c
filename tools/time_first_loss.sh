#!/usr/bin/env bash
# Times a newcomer's wait from `git clone` to the first logged loss, in new folders and without a compiler cache.
#
#   tools/time_first_loss.sh           three clones of this checkout's HEAD, one after the other
#   tools/time_first_loss.sh --runs 5  five clones
#   tools/time_first_loss.sh --torch 2.11.0  with this LibTorch of sdk/torch_versions.txt
#   tools/time_first_loss.sh --write   also puts the median into README.md, between the marks `first-loss`
#
# Installed Debian packages are not installed again. pip installs the wheels again, from its cache or the network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD runs=3 torch= write=false
while (($#)); do
  case $1 in
    --runs) runs=${2:?--runs needs a number}; shift ;;
    --torch) torch=${2:?--torch needs a version}; shift ;;
    --write) write=true ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
  shift
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
times=()
for ((run = 1; run <= runs; ++run)); do
  start=$EPOCHREALTIME
  git clone -q "$root" "$folder/$run"
  [[ -z $torch ]] || { mkdir "$folder/$run/build" && echo "$torch" >"$folder/$run/build/.titan-torch"; }
  # the program trains two steps; the time ends with the line of the first
  first=$(cd "$folder/$run" && CCACHE_DISABLE=1 ./run_train.sh --training.steps 2 2>"$folder/errors" |
    while IFS= read -r line; do
      [[ $line != 'step:  1 '* ]] || printf '%s %s\n' "$EPOCHREALTIME" "$line"
    done)
  if [[ -z $first ]]; then
    tail -n 20 "$folder/errors" >&2
    printf 'time_first_loss: error: run %d printed no loss\n' "$run" >&2
    exit 1
  fi
  seconds=$(awk -v a="$start" -v b="${first%% *}" 'BEGIN { printf "%.0f", b - a }')
  times+=("$seconds")
  printf 'run %d: %d s to %s\n' "$run" "$seconds" "$(cut -d ' ' -f 2-6 <<<"$first")"
  rm -rf "${folder:?}/$run"
done
mapfile -t sorted < <(printf '%s\n' "${times[@]}" | sort -n)
median=${sorted[$((runs / 2))]}
cores=$(nproc)
load=$(cut -d ' ' -f 2 /proc/loadavg)
printf 'median of %d: %d s (%d to %d) on %d cores, load average over five minutes %s\n' \
  "$runs" "$median" "${sorted[0]}" "${sorted[-1]}" "$cores" "$load"
if "$write"; then
  text="From clone to the first loss: $median seconds on $cores cores (\`tools/time_first_loss.sh\`, median of $runs)."
  sed -i "/<!-- first-loss -->/,/<!-- end -->/c\\<!-- first-loss -->\n$text\n<!-- end -->" README.md
fi
