#!/usr/bin/env bash
# Builds the documentation as a site that needs no server: tools/site.sh [--links] [FOLDER]. FOLDER: build/site by default.
# The first call makes .venv-site, downloads the packages of requirements-site.txt and installs Debian's doxygen; later calls need
# no network. --links checks the links that lead out of the site instead of building it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=build/site builder=html
for word in "$@"; do
  case $word in
    --links) builder=linkcheck ;;
    -*) printf "error: unknown option '%s'; usage: tools/site.sh [--links] [FOLDER]\n" "$word" >&2; exit 2 ;;
    *) out=$word ;;
  esac
done
if ! cmp -s requirements-site.txt .venv-site/requirements; then
  python3 -m venv .venv-site
  .venv-site/bin/pip install --quiet --disable-pip-version-check -r requirements-site.txt
  cp requirements-site.txt .venv-site/requirements
fi
if ! command -v doxygen >/dev/null; then
  as_root=()
  ((EUID == 0)) || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends doxygen >/dev/null ||
    { printf 'error: doxygen is missing and could not be installed; install it, for example: apt-get install doxygen\n' >&2; exit 1; }
fi
mkdir -p docs/made
# writes the sdk's headers as XML, from which Breathe makes pages
doxygen - <<'END'
PROJECT_NAME = Titan
INPUT = sdk/include/titan
FILE_PATTERNS = *.h
RECURSIVE = YES
STRIP_FROM_PATH = sdk/include
STRIP_FROM_INC_PATH = sdk/include
OUTPUT_DIRECTORY = docs/made
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
HIDE_UNDOC_MEMBERS = NO
JAVADOC_AUTOBRIEF = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = TITAN_API= TITAN_OPTIONAL_HEADER(x)=
QUIET = YES
WARNINGS = NO
WARN_LOGFILE = docs/made/doxygen.log
END
.venv-site/bin/sphinx-build -q -W --keep-going -b "$builder" -d docs/made/doctrees docs "$out"
printf 'site: %s\n' "$out/README.html"
