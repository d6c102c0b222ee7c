#!/usr/bin/env bash
# Builds the packages of this checkout and checks them: a wheel and an archive per LibTorch, in build/package/dist. Prints a table.
#
#   tools/package.sh                    the newest LibTorch; clean roots of Debian 12 and 13
#   tools/package.sh --torch 2.11.0     another LibTorch of sdk/torch_versions.txt; may be repeated
#   tools/package.sh --torch all        every LibTorch
#   tools/package.sh --build-dir DIR    compile in this build folder (one --torch only); its compiled files are used again
#   tools/package.sh --skip-build       check the packages that build/package/dist has
#   tools/package.sh --roots bookworm   these Debian releases, separated by commas; none: no clean roots
#   tools/package.sh --torchtitan       also times pip install torchtitan to its first loss, in the first root (gigabytes)
#   tools/package.sh --full             in the first root, pip also installs all that torch needs (gigabytes)
#
# Steps: 1 tools, 2 LibTorch, 3 wheel, 4 archive, 5 rules (search paths, paths of the build, symbols, check-wheel-contents, auditwheel),
# 6 clean roots: pip install to the first loss, the archive, a new plugin with a compiler.
#
# Step 6 needs root, debootstrap and the network. Mirror, package index and certificates are those of this host: the first URI of its
# apt sources (or TITAN_DEBIAN_MIRROR), and pip's configuration. They are used while the step runs and are not part of any package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
readonly versions=sdk/torch_versions.txt out=build/package
torches=() build_dir='' skip_build=false roots=bookworm,trixie torchtitan=false full=false

usage() { sed -n '2,20s/^# \{0,1\}//p' "$0"; }
say() { printf '[%s/6 %4ds] %s\n' "$1" "$SECONDS" "$2"; }
fail() { printf 'package: error: %s\n' "$1" >&2; exit 1; }

# row WHAT VALUE: a row of the table at the end
rows=()
row() { rows+=("$1"$'\t'"$2"); say "$step" "$1: $2"; }
print_table() { printf '\n'; printf '%s\n' "${rows[@]}" | column -t -s $'\t'; }

while (($#)); do
  case $1 in
    --torch) torches+=("${2:?--torch needs a version}"); shift ;;
    --build-dir) build_dir=$(realpath -m "${2:?--build-dir needs a folder}"); shift ;;
    --skip-build) skip_build=true ;;
    --roots) roots=${2:?--roots needs names or none}; shift ;;
    --torchtitan) torchtitan=true ;;
    --full) full=true ;;
    -h | --help) usage; exit 0 ;;
    *) printf "package: error: unknown argument '%s'\n" "$1" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
mapfile -t known < <(awk '/^[0-9]/ { print $1 }' "$versions")
((${#torches[@]})) || torches=("${known[0]}")
[[ ${torches[*]} != all ]] || torches=("${known[@]}")
for torch in "${torches[@]}"; do
  [[ " ${known[*]} " == *" $torch "* ]] || fail "LibTorch $torch is not supported; $versions has ${known[*]}"
done
[[ -z $build_dir || ${#torches[@]} == 1 ]] || fail "--build-dir is for one LibTorch, and there are ${#torches[@]}: ${torches[*]}"

# ---- steps 1 to 4: build ---------------------------------------------------------------------------------------------

make_tools() {
  if ! cmp -s requirements-package.txt "$out/venv/requirements"; then
    python3 -m venv --clear "$out/venv"
    "$out/venv/bin/pip" install --quiet --disable-pip-version-check -r requirements-package.txt
    cp requirements-package.txt "$out/venv/requirements"
  fi
  export PATH="$root/$out/venv/bin:$PATH"
}

# torch_wheels TORCH: what a machine without a GPU needs of LibTorch
torch_wheels() {
  awk -v torch="$1" '$1 == torch { printf "torch==%s nvidia-cuda-runtime==%s nvidia-cuda-cupti==%s\n", $1, $4, $5 }' "$versions"
}

# torch_root TORCH: the folder of LibTorch: that of .venv if it is this version, else one that pip fills
torch_root() {
  local folder wheels
  for folder in .venv/lib/python3.*/site-packages/torch "$out/torch-$1/torch"; do
    if [[ -f $folder/version.py ]] && grep -q "^__version__ = '$1[+']" "$folder/version.py"; then
      printf '%s\n' "$root/$folder"
      return
    fi
  done
  read -ra wheels < <(torch_wheels "$1")
  mapfile -t -O "${#wheels[@]}" wheels < <(awk -v torch="$1" '$1 == torch { print "nvidia-cuda-crt==" $6; print "nvidia-nccl-cu13==" $7 }' "$versions"
    grep -m1 '^pyarrow==' requirements-test.txt)
  pip install --quiet --no-deps --only-binary :all: --target "$out/torch-$1" "${wheels[@]}" >&2
  printf '%s\n' "$root/$out/torch-$1/torch"
}

wheel_of() { TITAN_WHEEL_TORCH=$1 python3 tools/wheel/titan_metadata.py version; }

# build_packages TORCH
build_packages() {
  local torch=$1 folder built tag
  step=2
  folder=$(torch_root "$torch")
  say 2 "LibTorch $torch: $folder"
  local build=${build_dir:-$root/$out/build-$torch}
  export TITAN_TORCH_ROOT=$folder TITAN_WHEEL_TORCH=$torch
  [[ ! -d $folder/../pyarrow ]] || export TITAN_PYARROW_ROOT=$folder/../pyarrow
  step=3
  rm -rf "$out/wheel-$torch"
  say 3 "wheel: building in $build (log: $out/wheel-$torch.log)"
  python3 -m build --wheel --no-isolation --outdir "$out/wheel-$torch" "-Cbuild-dir=$build" \
    "-Ccmake.define.TITAN_TORCH_ROOT=$folder" >"$out/wheel-$torch.log" 2>&1 ||
    { tail -n 30 "$out/wheel-$torch.log" >&2; fail "the wheel was not built; the log is $out/wheel-$torch.log"; }
  built=$(ls "$out/wheel-$torch"/*.whl)
  tag=$(tools/check_package.py --tag "$built")
  wheel tags --remove --platform-tag "$tag" "$built" >/dev/null
  rm -f "$out/dist/titan-$(wheel_of "$torch")-"*.whl
  mv "$out/wheel-$torch"/*.whl "$out/dist/"
  step=4
  say 4 "archive: $build"
  (cd "$build" && cpack -B "$root/$out/cpack" >"$root/$out/cpack-$torch.log") || fail "cpack failed; its log is $out/cpack-$torch.log"
  mv "$out/cpack/titan-"*"-torch$torch-"*.tar.gz "$out/dist/"
  unset TITAN_TORCH_ROOT TITAN_WHEEL_TORCH TITAN_PYARROW_ROOT
}

# ---- step 5: rules ---------------------------------------------------------------------------------------------------

# check_rules TORCH WHEEL ARCHIVE
check_rules() {
  local file report tag without=(--without "$root" --without "${build_dir:-$root/$out}")
  step=5
  for file in "$2" "$3"; do
    report=$(tools/check_package.py "$file" --complete "${without[@]}") || fail "$file breaks a rule of tools/check_package.py (above)"
    row "$(basename "$file")" "$(du -h --apparent-size "$file" | cut -f 1)B, $(grep -m1 '^programs' <<<"$report")"
    row "  symbols" "$(grep '^newest GLIBC' <<<"$report" | cut -d ' ' -f 2,3 | paste -sd ' '); $(grep '^systems' <<<"$report")"
  done
  check-wheel-contents --ignore W002,W004,W008 "$2" >/dev/null || fail "check-wheel-contents: $(check-wheel-contents --ignore W002,W004,W008 "$2")"
  # auditwheel judges the tag: with the libraries of other wheels left out, it must have nothing to copy
  rm -rf "$out/audited"
  tag=$(tools/check_package.py --tag "$2")
  auditwheel repair --plat "$tag" --exclude 'libtorch*' --exclude 'libc10*' --exclude 'libgomp*' --exclude 'libcudart*' --exclude 'libarrow*' \
    --exclude 'libparquet*' -w "$out/audited" "$2" >"$out/auditwheel.log" 2>&1 || { tail -n 5 "$out/auditwheel.log" >&2; fail "auditwheel refuses the tag $tag"; }
  if unzip -l "$out/audited"/*.whl | grep -q 'titan\.libs/'; then
    fail "auditwheel would copy libraries into the wheel: $(unzip -l "$out/audited"/*.whl | grep -o 'titan\.libs/.*' | paste -sd ' ')"
  fi
  row "  checks" "no path of the build, RUNPATHs begin with \$ORIGIN, check-wheel-contents, auditwheel accepts $tag"
}

# ---- main ------------------------------------------------------------------------------------------------------------

mkdir -p "$out/dist"
step=1
say 1 "tools: $out/venv"
make_tools
for torch in "${torches[@]}"; do
  "$skip_build" || build_packages "$torch"
  wheel=$(ls "$out/dist/titan-$(wheel_of "$torch")-"*.whl) || fail "there is no wheel for LibTorch $torch in $out/dist; omit --skip-build"
  archive=$(ls "$out/dist/titan-"*"-torch$torch-"*.tar.gz) || fail "there is no archive for LibTorch $torch in $out/dist"
  check_rules "$torch" "$wheel" "$archive"
done
step=6
if [[ $roots == none ]]; then
  row "clean roots" "not run (--roots none)"
elif ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
  row "clean roots" "NOT RUN: they need root and debootstrap"
else
  # shellcheck source=tools/package/clean_roots.sh
  . tools/package/clean_roots.sh
  for suite in ${roots//,/ }; do
    for torch in "${torches[@]}"; do
      check_root "$suite" "$torch"
    done
    torchtitan=false full=false  # in the first root only
  done
fi
print_table
