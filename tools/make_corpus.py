#!/usr/bin/env python3
"""Makes the bundled corpus, tests/assets/corpus, from two public-domain dictionaries of Debian.

    tools/make_corpus.py [--from FOLDER] [--output FOLDER]

Fetches the packages dict-devil and dict-jargon with apt-get into a temporary folder (nothing is
installed) and writes one JSON line per entry. The same packages give the same bytes. Run by hand to
renew the corpus; building, training and testing read the committed files.
"""

import argparse
import base64
import gzip
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

PACKAGES = {"devil": "dict-devil", "jargon": "dict-jargon"}
MIN_CHARACTERS = 64  # shorter entries are cross references: "See {bot}."
VALIDATION_EVERY = 10  # every tenth document goes to the validation set
MAX_BYTES = 2_000_000
ROOT = pathlib.Path(__file__).resolve().parent.parent


def fetch_packages(folder):
    """Downloads and unpacks both packages below `folder`; returns the folder of the dictionaries."""
    command = ["apt-get", "-o", "APT::Sandbox::User=root", "download", *PACKAGES.values()]
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)
    for archive in sorted(folder.glob("*.deb")):
        print(f"unpacking {archive.name}", file=sys.stderr)
        subprocess.run(["dpkg-deb", "-x", archive.name, "."], cwd=folder, check=True)
    return folder / "usr/share/dictd"


def decode_number(digits):
    """A number of a dict index: base64 digits, most significant first, without padding."""
    padded = digits.rjust(-(-len(digits) // 4) * 4, "A")  # "A" is the digit 0
    return int.from_bytes(base64.b64decode(padded, validate=True), "big")


def read_entries(folder, source):
    """The entries of one dictionary in the order of its index, without entries about the dictionary."""
    # dictzip is gzip with a table of offsets in its header.
    data = gzip.decompress((folder / f"{source}.dict.dz").read_bytes())
    for line in (folder / f"{source}.index").read_text(encoding="utf-8").splitlines():
        headword, offset, length = line.split("\t")[:3]
        if headword.startswith(("00-database", "00database")):
            continue
        begin, size = decode_number(offset), decode_number(length)
        if begin + size > len(data):
            raise ValueError(f"{source}.index: entry '{headword}' ends past the dictionary's end")
        yield data[begin : begin + size].decode("utf-8").strip("\n")


def read_documents(folder, source):
    """The entries as documents, without short ones and duplicates."""
    seen = set()
    for text in read_entries(folder, source):
        if len(text) >= MIN_CHARACTERS and text not in seen:
            seen.add(text)
            yield {"text": text, "source": source}


def mix(documents):
    """Interleaves the dictionaries evenly, each in its own order, so that every part has both."""
    places = []
    for number, entries in enumerate(documents):
        places += [((i + 0.5) / len(entries), number, e) for i, e in enumerate(entries)]
    return [entry for _, _, entry in sorted(places, key=lambda place: place[:2])]


def write_lines(path, documents):
    data = "".join(json.dumps(d, ensure_ascii=False) + "\n" for d in documents).encode("utf-8")
    path.write_bytes(data)
    counts = ", ".join(f"{sum(d['source'] == s for d in documents)} {s}" for s in PACKAGES)
    text_bytes = sum(len(d["text"].encode("utf-8")) for d in documents)
    print(
        f"{path.name}: {len(documents)} documents ({counts}), {text_bytes} bytes of text, "
        f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()}"
    )
    return len(data)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--from", dest="dictionaries", type=pathlib.Path, metavar="FOLDER",
        help="read the .dict.dz and .index files of this folder instead of downloading them",
    )
    parser.add_argument(
        "--output", type=pathlib.Path, default=ROOT / "tests/assets/corpus", metavar="FOLDER"
    )
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.dictionaries or fetch_packages(pathlib.Path(temporary))
        documents = mix([list(read_documents(folder, source)) for source in PACKAGES])
    held_out = documents[VALIDATION_EVERY - 1 :: VALIDATION_EVERY]
    training = [d for i, d in enumerate(documents, start=1) if i % VALIDATION_EVERY]

    arguments.output.mkdir(parents=True, exist_ok=True)
    size = write_lines(arguments.output / "train.jsonl", training)
    size += write_lines(arguments.output / "validation.jsonl", held_out)
    if size > MAX_BYTES:
        sys.exit(f"error: the corpus has {size} bytes, the limit is {MAX_BYTES}; raise MIN_CHARACTERS")


if __name__ == "__main__":
    main()
