# Step 6 of tools/package.sh, which reads this file: the packages in clean roots of Debian. Uses its variables and functions.
# shellcheck shell=bash disable=SC2154,SC2016

# debian_mirror: the mirror of this host's apt
debian_mirror() {
  [[ -z ${TITAN_DEBIAN_MIRROR:-} ]] || { printf '%s\n' "$TITAN_DEBIAN_MIRROR"; return; }
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.sources /etc/apt/sources.list.d/*.list 2>/dev/null |
    awk '$1 == "URIs:" { print $2; exit } $1 == "deb" { for (i = 2; i <= NF; ++i) if ($i ~ /^https?:/) { print $i; exit } }'
}

# in_root FOLDER COMMAND: runs COMMAND in the root with the network, certificates and pip configuration of this host. The mounts end with it.
in_root() {
  local variables=(HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive) name
  for name in PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_CERT PIP_DEFAULT_TIMEOUT http_proxy https_proxy no_proxy; do
    [[ -z ${!name:-} ]] || variables+=("$name=${!name}")
  done
  # shellcheck disable=SC2016  # the inner shell expands it
  unshare --mount --pid --fork -- bash -c '
    set -e; folder=$1; out=$2; shift 2
    mount -t proc proc "$folder/proc"; mount --rbind /dev "$folder/dev"; mount -t tmpfs tmpfs "$folder/tmp"
    [[ ! -d /etc/apt/apt.conf.d ]] || mount --bind /etc/apt/apt.conf.d "$folder/etc/apt/apt.conf.d"
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
      [[ ! -f $file ]] || { touch "$folder$file"; mount --bind "$(realpath "$file")" "$folder$file"; }
    done
    mkdir -p "$folder/etc/ssl/certs" "$folder/usr/share/ca-certificates" "$folder/packages"
    [[ ! -d /usr/share/ca-certificates ]] || mount --bind /usr/share/ca-certificates "$folder/usr/share/ca-certificates"
    mount --bind /etc/ssl/certs "$folder/etc/ssl/certs"
    mount --bind "$out" "$folder/packages"
    exec chroot "$folder" env -i "$@"' in_root "$1" "$root/$out" "${variables[@]}" bash -c "set -euo pipefail; $2"
}

# make_root SUITE PACKAGES: a root with only these packages, kept in build/package/roots and unpacked anew from there
make_root() {
  local kept=$out/roots/$1.tar folder=$out/roots/$1
  if [[ ! -f $kept ]]; then
    rm -rf "$folder"
    debootstrap --variant=minbase --include="$2" "$1" "$folder" "$(debian_mirror)" >"$out/roots/$1.log" 2>&1 ||
      { tail -n 5 "$out/roots/$1.log" >&2; fail "debootstrap $1 failed; its log is $out/roots/$1.log"; }
    tar -C "$folder" -cf "$kept.part" . && mv "$kept.part" "$kept"
  fi
  rm -rf "$folder"
  mkdir -p "$folder"
  tar -C "$folder" -xf "$kept"
}

# The seconds until `titan train` prints the first loss of the debug model, and the loss: `first_loss TITAN`, in an empty folder
readonly first_loss='first_loss() {
  local start=$EPOCHREALTIME
  mkdir -p /tmp/run && cd /tmp/run && rm -rf outputs
  "$1" train --job.config_file train_configs/debug_model.toml --training.steps 2 2>errors | while IFS= read -r line; do
    [[ $line != "step:  1 "* ]] || printf "titan train to the first loss: %s s, %s\n" "$(awk -v a="$start" -v b="$EPOCHREALTIME" "BEGIN { printf \"%.1f\", b - a }")" "$(sed "s/  */ /g; s/ grad_norm.*//" <<<"$line")"
  done | grep . || { tail -n 20 errors >&2; exit 1; }
}
'

# timed FOLDER COMMAND: runs it in the root, and sets `seconds` ("12.3 s (4.5 CPU s)") and `printed`
timed() {
  local TIMEFORMAT='%R %U %S'
  { time in_root "$1" "$first_loss$2" >"$1.printed" 2>"$1.errors"; } 2>"$1.times" ||
    { tail -n 20 "$1.errors" >&2; fail "in the root $1 this failed: $2"; }
  printed=$(<"$1.printed")
  seconds=$(awk '{ printf "%.1f s (%.1f CPU s)", $1, $2 + $3 }' "$1.times")
}

readonly venv=/opt/venv pip=/opt/venv/bin/pip titan=/opt/venv/bin/titan

# check_root SUITE TORCH: all checks in a new root
check_root() {
  local suite=$1 folder=$root/$out/roots/$1
  mkdir -p "$out/roots"
  make_root "$suite" python3-venv
  in_root "$folder" 'for tool in gcc g++ cc c++ clang ld; do ! command -v $tool || exit 1; done' >/dev/null ||
    fail "the root $suite has a compiler"
  check_wheel "$suite" "$2" "$folder"
  check_archive "$suite" "$2" "$folder"
  check_plugin "$suite" "$folder"
  if "$full"; then
    timed "$folder" "python3 -m venv /opt/full; /opt/full/bin/pip install -q --no-cache-dir /packages/dist/$(name_of_wheel "$2"); first_loss /opt/full/bin/titan"
    row "$suite, everything" "pip install with all dependencies of torch to the first loss: $seconds"
  fi
  ! "$torchtitan" || check_torchtitan "$suite" "$folder" "$2"
  rm -rf "$folder" "$folder".{printed,errors,times}
}

name_of_wheel() { basename "$out"/dist/titan-"$(wheel_of "$1")"-*.whl; }

check_wheel() {
  local suite=$1 torch=$2 folder=$3 torch_seconds
  timed "$folder" "python3 -m venv $venv; $pip install -q --no-deps --no-cache-dir $(torch_wheels "$torch")"
  torch_seconds=$seconds
  timed "$folder" "$pip install -q --no-deps --no-cache-dir /packages/dist/$(name_of_wheel "$torch"); first_loss $titan"
  row "$suite, LibTorch $torch" "pip install to the first loss: $seconds with torch there; $printed"
  row "  before" "venv and pip install torch: $torch_seconds"
  # libraries of CUDA and Arrow come from wheels that this root lacks
  timed "$folder" "$titan --version; cd /; $titan list >/dev/null; $titan train --training.steps 1 --training.seq_len 64 2>/dev/null | grep -q 'step:  1 '
    cd $venv/lib/python3*/site-packages/titan; missing=\$(ldd bin/* lib/*.so lib/titan/libs/* \$(ls -d lib/titan/plugins/* | grep -vE '/(cuda|parquet_dataset).plugin') 2>&1 | grep 'not found' || true)
    [[ -z \$missing ]] || { echo \"\$missing\" >&2; exit 1; }"
  row "  installed" "$printed"
}

# LibTorch by each of the three ways, and the refusal
check_archive() {
  timed "$3" "mkdir -p /opt/moved; tar -C /opt/moved -xf /packages/dist/$(basename "$out"/dist/titan-*-torch"$2"-*.tar.gz); bin=\$(echo /opt/moved/titan-*/bin)
    steps='train --training.steps 1 --training.seq_len 64'; cd /tmp
    TITAN_TORCH_ROOT=\$(echo $venv/lib/python3*/site-packages/torch) \$bin/titan \$steps
    VIRTUAL_ENV=$venv \$bin/titan \$steps
    PATH=$venv/bin:\$PATH \$bin/titan \$steps
    if \$bin/titan train 2>refused; then exit 1; fi; grep -q 'pip install torch==$2' refused"
  row "$1, archive" "finds LibTorch by TITAN_TORCH_ROOT, VIRTUAL_ENV and python3, and refuses to run without"
}

# a plugin of one's own, which needs a compiler
check_plugin() {
  timed "$2" 'apt-get -qq update && apt-get -qq install -y --no-install-recommends g++ cmake ninja-build'
  timed "$2" "cd /tmp; $titan new-plugin optimizer acme/signsgd
    cmake -S signsgd -B signsgd/build -G Ninja -DTitan_ROOT=\$($titan --cmake-prefix); cmake --build signsgd/build
    export TITAN_PLUGIN_PATH=/tmp/signsgd/build/lib/titan/plugins
    $titan train --optimizer.name acme/signsgd --training.steps 10 --training.seq_len 64 | grep 'step: 10 '"
  row "$1, with a compiler" "titan new-plugin to the end of a run of 10 steps: $seconds"
}

# check_torchtitan SUITE FOLDER TORCH: the same way with torchtitan, which needs all dependencies of torch
check_torchtitan() {
  local suite=$1 folder=$2 torch=$3
  timed "$folder" "python3 -m venv /opt/torchtitan; /opt/torchtitan/bin/pip install -q --no-cache-dir torchtitan==0.2.2 torch==$torch"
  row "$suite, torchtitan" "pip install torchtitan==0.2.2 torch==$torch: $seconds"
  timed "$folder" "cd /tmp; assets=\$(echo /opt/venv/lib/python3*/site-packages/titan/share/titan/tests/assets)
    /opt/torchtitan/bin/torchrun --nproc_per_node 1 -m torchtitan.train --model.hf_assets_path \$assets/tokenizer --training.dataset c4_test \
      --training.dataset_path \$assets/corpus --training.steps 2 >log 2>&1 || true
    { grep -m1 'step:  *1 ' log || grep -E 'Error' log || tail -n 1 log; } | tail -n 1"
  row "$suite, torchtitan" "torchrun -m torchtitan.train: $printed ($seconds)"
}
