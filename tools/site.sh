#!/usr/bin/env bash
# Builds the documentation as a site that needs no server: tools/site.sh [FOLDER], build/site without one.
# The first call makes .venv-site and downloads what requirements-site.txt names; later ones need no network.
# --links also looks at every link that leads out of the site.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build/site builder=html
for word in "$@"; do
  case $word in
    --links) builder=linkcheck ;;
    -*) printf 'error: unknown option %s; see the head of tools/site.sh\n' "$word" >&2; exit 2 ;;
    *) out=$word ;;
  esac
done
if ! cmp -s requirements-site.txt .venv-site/requirements; then
  python3 -m venv .venv-site
  .venv-site/bin/pip install --quiet --disable-pip-version-check -r requirements-site.txt
  cp requirements-site.txt .venv-site/requirements
fi
.venv-site/bin/sphinx-build -q -W --keep-going -b "$builder" docs "$out"
printf 'site: %s\n' "$out/README.html"
