"""Text data sets against Python: files written by json, gzip and zstandard, read through dataset_probe and compared
with Python's results; damaged ones must be refused."""

import argparse
import gzip
import io
import json
import pathlib
import random
import subprocess
import tempfile

import zstandard

NASTY = ['"', "\\", "/", "\n", "\r", "\t", "\b", "\f", "\x00", "\x1f", "\x7f", "\x80", "\xa0", "é", "\u07ff", "\u0800",
         "\u2028", "\ud7ff", "\ue000", "\ufeff", "\ufffd", "\uffff", "\U00010000", "\U0001f600", "\U0010ffff", "\\n", "\\u0041"]
LINE_ENDS = ["\n", "\r\n", "\n\n", "\n \t\r\n"]


class Probe:
    def __init__(self, program, plugins):
        self.command = [program, plugins]
        self.num_runs = 0

    def run(self, dataset, path, *options):
        """The documents' texts, or the error as a string."""
        self.num_runs += 1
        done = subprocess.run([*self.command, dataset, str(path), *map(str, options)], capture_output=True, timeout=1800)
        lines = [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]
        if done.returncode == 1:
            return lines[-1]["error"]
        assert done.returncode == 0, done.stderr.decode()
        assert lines[-1]["documents"] == len(lines) - 1
        return [line["text"] for line in lines[:-1]]


def random_text(rng):
    pieces = [rng.choice(NASTY) if rng.random() < 0.3 else "word" * rng.randrange(6) for _ in range(rng.randrange(40))]
    return "".join(pieces) * (200 if rng.random() < 0.02 else 1)


def random_lines(rng, texts):
    """A JSON lines file in one of the common styles."""
    ends = rng.choice([["\n"], ["\r\n"], LINE_ENDS])
    content = "\ufeff" if rng.random() < 0.3 else ""
    for text in texts:
        document = {"id": rng.choice([rng.randrange(10**12), 10**400]), "meta": {"text": "not this", "x": [1.5e-3, None, True]}, "text": text, "z": "é"}
        names = list(document)
        rng.shuffle(names)
        content += json.dumps({name: document[name] for name in names}, ensure_ascii=rng.random() < 0.5) + rng.choice(ends)
    return (content.rstrip("\r\n \t") if rng.random() < 0.3 else content).encode()


def cuts(rng, content, count):
    at = sorted(rng.randrange(len(content)) for _ in range(count))
    return [content[a:b] for a, b in zip([0, *at], [*at, len(content)])]


def gzip_files(rng, content):
    yield "one_member", gzip.compress(content, 9, mtime=0)
    yield "members", b"".join(gzip.compress(piece, rng.randrange(10)) for piece in cuts(rng, content, 5))
    padded = b"".join(gzip.compress(piece) + bytes(rng.choice([0, 1, 512, 70000])) for piece in cuts(rng, content, 3)) + bytes(3)
    assert gzip.decompress(padded) == content
    yield "padded", padded
    named = io.BytesIO()
    with gzip.GzipFile("a name in the header", "wb", fileobj=named) as file:
        for piece in cuts(rng, content, 3):
            file.write(piece)
            file.flush()
    yield "named_and_flushed", named.getvalue()


def zstd_files(rng, content):
    def frame(piece, **options):
        return zstandard.ZstdCompressor(**options).compress(piece)

    skippable = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"notes"
    yield "one_frame", frame(content)
    yield "frames", skippable.join(
        frame(piece, level=rng.randrange(1, 12), write_content_size=rng.random() < 0.5, write_checksum=rng.random() < 0.5)
        for piece in cuts(rng, content, 5))
    streamed = io.BytesIO()
    with zstandard.ZstdCompressor().stream_writer(streamed, closefd=False) as file:
        for piece in cuts(rng, content, 7):
            file.write(piece)
            file.flush()
    yield "streamed", streamed.getvalue()
    long_window = zstandard.ZstdCompressionParameters.from_level(3, window_log=30, write_content_size=False, enable_ldm=True)
    long_file = io.BytesIO()
    with zstandard.ZstdCompressor(compression_params=long_window).stream_writer(long_file, closefd=False) as file:
        file.write(content)
    yield "long_window", long_file.getvalue()


def check_round_trips(probe, folder, rng):
    num_files = 0
    for round_ in range(6):
        texts = [random_text(rng) for _ in range(rng.choice([1, 7, 60]))]
        content = random_lines(rng, texts)
        files = [("plain.jsonl", content)]
        files += [(f"{name}.json.gz", packed) for name, packed in gzip_files(rng, content)]
        files += [(f"{name}.jsonl.zst", packed) for name, packed in zstd_files(rng, content)]
        for name, packed in files:
            path = folder / f"{round_}_{name}"
            path.write_bytes(packed)
            num_files += 1
            assert probe.run("jsonl", path) == texts, path
            every = rng.randrange(1, 5)
            assert probe.run("jsonl", path, "--index", "false", "--resume-every", every) == texts, path
            assert probe.run("jsonl", path, "--index", "false", "--resume-every", every, "--skip-odd") == texts[::2], path
    return num_files


def check_cuts(probe, folder, rng):
    """Files that Python's own readers call truncated, also in the second member."""
    texts = [random_text(rng) for _ in range(20)]
    content = random_lines(rng, texts)
    num_cuts = 0
    for name, pack in [("cut.jsonl.gz", gzip.compress), ("cut.jsonl.zst", zstandard.ZstdCompressor().compress)]:
        first, second = pack(content[: len(content) // 2]), pack(content[len(content) // 2:])
        packed = first + second
        for size in [0, 1, 3, len(first) + 1, len(packed) - 1, *(rng.randrange(len(packed)) for _ in range(20))]:
            if size == len(first):
                continue
            path = folder / name
            path.write_bytes(packed[:size])
            error = probe.run("jsonl", path)
            assert isinstance(error, str) and str(path) in error and f"at byte {size} of the file" in error, (size, error)
            if name.endswith(".gz") and size > 0:
                try:
                    gzip.decompress(packed[:size])
                    raise AssertionError(f"Python takes {size} bytes for all of the file")
                except (EOFError, gzip.BadGzipFile):
                    pass
            num_cuts += 1
        path.write_bytes(packed + b"garbage")
        assert "continues after its last" in probe.run("jsonl", path)
    return num_cuts


def accepted_text(line):
    """The text of a line by Python's json, made as strict as JSON in UTF-8; None when the line is malformed."""
    def check(pairs):
        for name, value in pairs:
            for item in [name, value] if not isinstance(value, list) else [name, *flat(value)]:
                if isinstance(item, str):
                    item.encode("utf-8")  # refuses lone surrogates
        return dict(pairs)

    def flat(items):
        for item in items:
            yield from flat(item) if isinstance(item, list) else [item]

    def refuse(name):
        raise ValueError(name)

    try:
        document = json.loads(line.decode("utf-8"), object_pairs_hook=check, parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    text = document.get("text") if isinstance(document, dict) else None
    return text if isinstance(text, str) else None


def check_damaged_lines(probe, folder, rng, num_lines):
    alphabet = b'"\\{}[],: \t0123456789-+.eEutfnal\x80\xbf\xc3\xe0\xed\xf4\xff\x00\x1f'
    lines = []
    while len(lines) < num_lines:
        line = bytearray(random_lines(rng, [random_text(rng)[:60]]).removeprefix(b"\xef\xbb\xbf").strip())
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(line))
            line[at:at + rng.randrange(3)] = bytes(rng.choice(alphabet) for _ in range(rng.randrange(3)))
        if b"\n" not in line and line.strip(b" \t\r"):
            lines.append(bytes(line))
    wanted = [text for text in map(accepted_text, lines) if text is not None]
    path = folder / "damaged.jsonl"
    path.write_bytes(b"\n".join(lines))
    for options in [(), ("--index", "false")]:
        assert probe.run("jsonl", path, "--skip_bad_lines", "true", *options) == wanted
    return len(lines), len(lines) - len(wanted)


def check_text_folder(probe, folder, rng):
    contents = {}
    for i in range(300):
        pieces = [bytes([rng.randrange(256)]) if rng.random() < 0.3 else rng.choice(NASTY).encode("utf-8", "surrogatepass")
                  if rng.random() < 0.5 else b"text" for _ in range(rng.randrange(1, 30))]
        contents[f"{rng.choice('abc')}/{i:03}.txt"] = b"".join(pieces)
    for name, content in contents.items():
        path = folder / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    wanted = [contents[name].decode("utf-8", "replace").removeprefix("\ufeff") for name in sorted(contents)]
    assert probe.run("text_folder", folder / "tree", "--invalid_utf8", "replace") == wanted
    num_refused = 0
    for name in sorted(contents)[:40]:
        single = folder / "single"
        single.mkdir(exist_ok=True)
        (single / "one.txt").write_bytes(contents[name])
        result = probe.run("text_folder", single)
        try:
            assert result == [contents[name].decode("utf-8").removeprefix("\ufeff")]
        except UnicodeDecodeError as error:
            assert f"is not UTF-8 at byte {error.start};" in result, (result, error)
            num_refused += 1
    return len(contents), num_refused


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", required=True, help="the dataset_probe program")
    parser.add_argument("--plugins", required=True, help="folder of the plugins")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lines", type=int, default=20000, help="of damaged JSON")
    args = parser.parse_args()
    probe, rng = Probe(args.probe, args.plugins), random.Random(args.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print("files of json, gzip and zstandard read alike:", check_round_trips(probe, folder, rng))
        print("cut files refused:", check_cuts(probe, folder, rng))
        print("lines judged as by Python's json: %d, %d of them refused" % check_damaged_lines(probe, folder, rng, args.lines))
        print("text files read as by Python: %d; %d refused at the same byte" % check_text_folder(probe, folder, rng))
    print("runs of the probe:", probe.num_runs)


if __name__ == "__main__":
    main()
