"""Reads Parquet files written by pyarrow with the data set `parquet`."""

import datetime
import random

import pyarrow as pa
import pyarrow.parquet as pq

from dataset_cases import Referee

rng = random.Random(20240817)
ALPHABET = "abcdefghij klmnop\n\täöß€漢字😀\"\\\u2028\u0000"


def text(length):
    return "".join(rng.choice(ALPHABET) for _ in range(length))


def fineweb(count):
    """Rows with FineWeb's columns."""
    texts = [text(rng.choice([0, 1, 20, 300, 5000])) for _ in range(count)]
    return texts, pa.table({
        "text": texts,
        "id": [f"<urn:uuid:{i}>" for i in range(count)],
        "dump": ["CC-MAIN-2013-20"] * count,
        "url": [f"http://example.org/{i}" for i in range(count)],
        "date": [datetime.datetime(2013, 5, 18)] * count,
        "file_path": ["s3://example"] * count,
        "language": ["en"] * count,
        "language_score": [0.9] * count,
        "token_count": list(range(count)),
    })


def judge_texts(referee):
    folder = referee.folder / "texts"
    folder.mkdir()
    read = lambda path, *options: referee.documents("parquet", path, *options)
    texts, table = fineweb(3000)
    for compression in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        for row_group_size in (1, 1000, 1024, 3000):
            if row_group_size == 1 and compression != "snappy":
                continue
            path = folder / f"{compression}_{row_group_size}.parquet"
            pq.write_table(table, path, compression=compression, row_group_size=row_group_size)
            referee.equal(path.name, read(path), texts)
    path = folder / "snappy_1000.parquet"
    lines, _ = referee.probe("parquet", path)
    referee.equal("places", [lines[i]["place"] for i in (0, 999, 1000, 2999)],
                  [f"snappy_1000.parquet: row group {i // 1000}, row {i % 1000}" for i in (0, 999, 1000, 2999)])
    referee.equal("shards", [line["shard"] for line in lines[:-1]], [i // 1000 for i in range(3000)])
    for every in (1, 37, 999, 1000):
        referee.equal(f"continued every {every} documents", read(path, "--resume-every", every), texts)
    referee.equal("every second", read(path, "--skip-odd"), texts[::2])
    referee.equal("every second, continued", read(path, "--skip-odd", "--resume-every", 3), texts[::2])
    referee.equal("a folder", read(folder), [t for _ in sorted(folder.glob("*.parquet")) for t in texts])
    for file in sorted(folder.glob("*.parquet"))[2:]:
        file.unlink()
    referee.equal("a pattern", read(f"{folder}/*.parquet"), texts + texts)

    variants = {
        "large_string": (pa.array(texts, pa.large_string()), {}),
        "string_view": (pa.array(texts, pa.string_view()), {}),
        "dictionary": (pa.array(texts[:50] * 60).dictionary_encode(), {}),
        "large_dictionary": (pa.array(texts[:50] * 60, pa.large_string()).dictionary_encode(), {}),
        "plain": (pa.array(texts), {"use_dictionary": False}),
        "delta_length": (pa.array(texts), {"use_dictionary": False, "column_encoding": {"text": "DELTA_LENGTH_BYTE_ARRAY"}}),
        "delta": (pa.array(texts), {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}),
        "pages_v2": (pa.array(texts), {"data_page_version": "2.0", "data_page_size": 4096}),
        "small_pages": (pa.array(texts), {"data_page_size": 1024, "write_page_index": True}),
        "checksums": (pa.array(texts), {"write_page_checksum": True}),
        "old_version": (pa.array(texts), {"version": "1.0"}),
        "no_arrow_schema": (pa.array(texts), {"store_schema": False}),
        "required": (pa.array(texts), {}),
    }
    for name, (column, options) in variants.items():
        field = pa.field("text", column.type, nullable=name != "required")
        table = pa.table([pa.array([[i] for i in range(3000)]), column], pa.schema([pa.field("nested", pa.list_(pa.int32())), field]))
        path = referee.folder / f"{name}.parquet"
        pq.write_table(table, path, row_group_size=700, **options)
        expected = column.to_pylist()
        referee.equal(name, read(path), expected)
        referee.equal(f"{name}, continued", read(path, "--resume-every", 211), expected)
    path = referee.folder / "body.parquet"
    pq.write_table(pa.table({"text": [1, 2], "body": ["x", "y"]}), path)
    referee.equal("another column", read(path, "--field", "body"), ["x", "y"])


def judge_nulls(referee):
    values = [None if i % 7 == 3 else f"text {i}" for i in range(100)]
    kept = [value for value in values if value is not None]
    for name, column, options in (("null", pa.array(values), {}),
                                  ("null_uncounted", pa.array(values), {"write_statistics": False}),
                                  ("null_dictionary", pa.array(values).dictionary_encode(), {}),
                                  ("null_large", pa.array(values, pa.large_string()), {"data_page_version": "2.0"})):
        path = referee.folder / f"{name}.parquet"
        pq.write_table(pa.table({"text": column}), path, row_group_size=30, **options)
        referee.refused(name, "parquet", path, [], f"{name}.parquet", "row group 0", "skip_nulls", "null")
        referee.equal(f"{name} left out", referee.documents("parquet", path, "--skip_nulls", "true"), kept)
        referee.equal(f"{name} left out, continued",
                      referee.documents("parquet", path, "--skip_nulls", "true", "--resume-every", 4), kept)
        odd = [value for begin in range(0, 100, 30) for value in [v for v in values[begin:begin + 30] if v is not None][::2]]
        referee.equal(f"{name} left out, every second",
                      referee.documents("parquet", path, "--skip_nulls", "true", "--skip-odd"), odd)
    referee.refused("a null without statistics", "parquet", referee.folder / "null_uncounted.parquet", [], "row group 0, row 3")


def judge_tokens(referee):
    lists = [[rng.randrange(2**31) for _ in range(rng.choice([0, 1, 5, 2000]))] for _ in range(500)]
    small = [[id % 100 for id in ids] for ids in lists]
    for kind, values in ((pa.int32(), lists), (pa.int64(), lists), (pa.uint32(), lists), (pa.uint16(), small), (pa.int8(), small)):
        for make in (pa.list_, pa.large_list):
            path = referee.folder / "tokens.parquet"
            column = pa.array(values, make(kind))
            pq.write_table(pa.table({"text": ["x"] * 500, "ids": column, "after": column}), path, row_group_size=120)
            for options in ([], ["--resume-every", 50]):
                referee.equal(f"{make.__name__} of {kind} {options}",
                              referee.documents("parquet", path, "--tokens_field", "ids", *options), values)
    path = referee.folder / "fixed.parquet"
    fixed = [[i, i + 1, i + 2] for i in range(300)]
    pq.write_table(pa.table({"ids": pa.array(fixed, pa.list_(pa.int32(), 3))}), path, row_group_size=100)
    referee.equal("lists of one length", referee.documents("parquet", path, "--tokens_field", "ids", "--resume-every", 7), fixed)

    def refused(what, values, kind, *parts):
        path = referee.folder / "bad_ids.parquet"
        pq.write_table(pa.table({"ids": pa.array(values, pa.list_(kind))}), path)
        referee.refused(what, "parquet", path, ["--tokens_field", "ids"], "bad_ids.parquet", *parts)

    refused("a large id", [[1], [2, 2**31]], pa.int64(), "row group 0, row 1", "value 1", 2**31)
    refused("a negative id", [[1], [2], [-5]], pa.int32(), "row 2", "value 0", "-5")
    refused("a null id", [[1, None]], pa.int32(), "row 0", "value 1", "null")
    refused("a null list", [[1], None], pa.int32(), "row group 0, row 1", "null")
    refused("lists of floats", [[1.0]], pa.float32(), "list<", "float", "lists of integers")


def judge_refused(referee):
    refused = lambda what, path, options, *parts: referee.refused(what, "parquet", path, options, path.name, *parts)
    path = referee.folder / "types.parquet"
    pq.write_table(pa.table({
        "number": [1], "bytes": [b"x"], "struct": [{"text": "x"}], "list": [["x"]], "ids": [[1]],
        "map": pa.array([[("a", "b")]], pa.map_(pa.string(), pa.string()))}), path)
    for field, kind in (("number", "int64"), ("bytes", "binary"), ("struct", "struct<"), ("list", "list<"), ("map", "map<")):
        refused(f"text in {kind}", path, ["--field", field], field, kind)
    refused("ids as text", path, ["--field", "ids"], "tokens_field")
    refused("no such column", path, [], "'text'", "'number', 'bytes', 'struct', 'list', 'ids', 'map'", "'field'")
    path = referee.folder / "latin1.parquet"
    raw = pa.array([b"fine", b"na\xefve"], pa.binary())
    pq.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), 2, raw.buffers())}), path)
    refused("text that is no UTF-8", path, [], "row group 0, row 1", "byte 2")
    path = referee.folder / "empty.parquet"
    pq.write_table(pa.table({"text": pa.array([], pa.string())}), path)
    refused("no rows", path, [], "holds no row")
    (referee.folder / "none").mkdir()
    refused("an empty folder", referee.folder / "none", [], "*.parquet")
    path = referee.folder / "text.parquet"
    path.write_text("PAR1 this is no Parquet file PAR1")
    refused("not Parquet", path, [])


def judge_damage(referee):
    """Truncated files are always refused by name; files with a changed byte are refused or read equally if pages have
    checksums."""
    path = referee.folder / "whole.parquet"
    texts = [text(200) for _ in range(40)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=10, write_page_checksum=True, use_dictionary=False)
    whole = path.read_bytes()
    damaged = referee.folder / "damaged.parquet"
    for length in sorted({0, 1, 4, 8, 11, 12, len(whole) - 1, len(whole) - 8, *rng.sample(range(len(whole)), 40)}):
        damaged.write_bytes(whole[:length])
        referee.refused(f"cut to {length} bytes", "parquet", damaged, [], "damaged.parquet")
    num_refused = 0
    for at in rng.sample(range(4, len(whole)), 250):
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.randrange(8)
        damaged.write_bytes(changed)
        found = referee.documents("parquet", damaged)
        if isinstance(found, str):
            num_refused += 1
            referee.equal(f"byte {at}: the error names the file", "damaged.parquet" in found, True)
        else:
            referee.equal(f"byte {at}: all is read", len(found), len(texts))
    print(f"{num_refused} of 250 changed bytes were refused")
    assert num_refused > 100


referee = Referee(__doc__)
judge_texts(referee)
judge_nulls(referee)
judge_tokens(referee)
judge_refused(referee)
judge_damage(referee)
referee.finish()
