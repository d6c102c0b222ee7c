"""Reads token files written by NumPy with the data sets `megatron` and `tokens`."""

import struct

import numpy as np

from dataset_cases import Referee
from megatron_reader import MegatronFile
from megatron_writer import write_megatron

random = np.random.default_rng(20240817)


def draw(limit, length):
    return [int(id) for id in random.integers(0, limit, length)]


def draw_documents(limit, count):
    """Includes documents without sequences, sequences without ids, and long ones."""
    documents = []
    for _ in range(count):
        num_sequences = int(random.choice([0, 1, 1, 1, 2, 5]))
        documents.append([draw(limit, int(random.choice([0, 1, 7, 100, 3000]))) for _ in range(num_sequences)])
    documents[3] = [draw(limit, 70000)]  # more than one block of reading
    return documents


def flat(documents):
    return [[id for sequence in document for id in sequence] for document in documents]


def judge_megatron(referee):
    folder = referee.folder / "megatron"
    folder.mkdir()
    expected = {}
    for dtype in (np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64):
        name = np.dtype(dtype).name
        documents = draw_documents(min(np.iinfo(dtype).max, 2**31 - 1), 40)
        write_megatron(folder / name, documents, dtype, with_modes=dtype == np.int32)
        expected[name] = flat(documents)
        referee.equal(f"our writer, {name}", MegatronFile(folder / name).documents(), expected[name])
        for suffix in ("", ".bin", ".idx"):
            referee.equal(f"megatron {name}{suffix}", referee.documents("megatron", f"{folder / name}{suffix}"), expected[name])
    in_order = sorted(expected)
    everything = [document for name in in_order for document in expected[name]]
    referee.equal("megatron folder", referee.documents("megatron", folder), everything)
    referee.equal("megatron pattern", referee.documents("megatron", f"{folder}/u*"), expected["uint16"] + expected["uint8"])

    bad = referee.folder / "bad"

    def refused(what, *parts, dtype=np.int32, documents=None, change=None, cut_bin=0):
        write_megatron(bad, documents or [[[1, 2, 3]], [[4], [5, 6]]], dtype)
        index = bytearray(open(f"{bad}.idx", "rb").read())
        if change:
            change(index)
        open(f"{bad}.idx", "wb").write(index)
        with open(f"{bad}.bin", "r+b") as file:
            file.truncate(file.seek(0, 2) + cut_bin)
        referee.refused(f"megatron {what}", "megatron", bad, [], f"{bad}", *parts)

    def put(offset, form, value):
        return lambda index: struct.pack_into(form, index, offset, value)

    lengths, pointers, entries = 34, 34 + 4 * 3, 34 + 12 * 3
    refused("magic", "MMIDIDX", change=put(0, "<B", 0))
    refused("version", "version 2", "byte 9", change=put(9, "<Q", 2))
    refused("float64", "float64", "byte 17", change=put(17, "<B", 6))
    refused("float32", "float32", "byte 17", change=put(17, "<B", 7))
    refused("unknown type", "type 9", "byte 17", change=put(17, "<B", 9))
    refused("too many sequences", "byte 18", change=put(18, "<Q", 2**61))
    refused("too many documents", "byte 26", change=put(26, "<Q", 2**63))
    refused("negative length", "sequence 1", "-1", f"byte {lengths + 4}", change=put(lengths + 4, "<i", -1))
    refused("gap", "sequence 2", f"byte {pointers + 16}", change=put(pointers + 16, "<q", 20))
    refused("negative pointer", "sequence 0", "-4", f"byte {pointers}", change=put(pointers, "<q", -4))
    refused("first document", "document 0", f"byte {entries}", change=put(entries, "<q", 1))
    refused("order of documents", "document 2", f"byte {entries + 16}", change=put(entries + 16, "<q", 2))
    refused("documents beyond", "document 1", f"byte {entries + 8}", change=put(entries + 8, "<q", 4))
    refused("short .bin", "23 bytes", "24", cut_bin=-1)
    refused("long .bin", "28 bytes", "24", cut_bin=4)
    refused("no document", "no document", documents=[[]])
    refused("negative id", "-7", "byte 12", "bad.bin: document 1", documents=[[[1, 2, 3]], [[-7]]])
    refused("negative int8", "-1", "byte 2", dtype=np.int8, documents=[[[1]], [[5, -1]]])
    refused("large id", str(2**31), "byte 8", "bad.bin: document 0", dtype=np.int64, documents=[[[1, 2**31]]])
    referee.refused("megatron without .bin", "megatron", referee.folder / "lonely", [], "lonely.idx' does not exist")
    (referee.folder / "lonely.idx").write_bytes(open(f"{bad}.idx", "rb").read())
    referee.refused("megatron without .bin", "megatron", referee.folder / "lonely", [], "lonely.bin' is missing")


def chunks(ids, length):
    return [ids[i:i + length] for i in range(0, len(ids), length)]


def cut(ids, mark, before):
    """The documents between marks, like sentences with a mark at their start or end."""
    documents, document = [], []
    for id in ids:
        if before and id == mark and document:
            documents.append(document)
            document = []
        document.append(id)
        if not before and id == mark:
            documents.append(document)
            document = []
    return documents + ([document] if document else [])


def write_llmc(path, ids, magic, version, dtype, count=None):
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, len(ids) if count is None else count
    path.write_bytes(header.tobytes() + np.array(ids, dtype).tobytes())


def judge_tokens(referee):
    folder = referee.folder / "tokens"
    folder.mkdir()
    read = lambda path, *options: referee.documents("tokens", path, *options)
    refused = lambda what, path, options, *parts: referee.refused(f"tokens {what}", "tokens", path, options, *parts)
    gpt2 = draw(50256, 30001)
    for at in (0, 1, 500, 9000, 9001, 30000):
        gpt2[at] = 50256
    llama = draw(128000, 70000)

    write_llmc(folder / "a_gpt2.bin", gpt2, 20240520, 1, "<u2")
    write_llmc(folder / "b_llama3.bin", llama, 20240801, 7, "<u4")
    np.array(gpt2, "<u2").tofile(folder / "c_nano.bin")
    np.array(llama, "<u4").tofile(folder / "d_olmo.npy")
    np.array(gpt2, "<u2").tofile(folder / "e_olmo.npy")
    for name, ids, options in (("a_gpt2.bin", gpt2, []), ("b_llama3.bin", llama, []), ("c_nano.bin", gpt2, ["--format", "raw"]),
                               ("d_olmo.npy", llama, ["--dtype", "uint32"]), ("e_olmo.npy", gpt2, ["--dtype", "uint16"])):
        path = folder / name
        referee.equal(f"{name} in chunks", read(path, *options), chunks(ids, 8192))
        referee.equal(f"{name} in small chunks", read(path, *options, "--chunk_tokens", 999), chunks(ids, 999))
        for option, before in (("--document_start", True), ("--document_end", False)):
            mark = ids[500]
            referee.equal(f"{name} by {option}", read(path, *options, option, mark), cut(ids, mark, before))
    referee.equal("tokens of a pattern", read(f"{folder}/[ab]*.bin"), chunks(gpt2, 8192) + chunks(llama, 8192))
    refused("bare ids that nobody named", folder / "c_nano.bin", [], "c_nano.bin' has no known header or suffix", "format = \"raw\"")
    refused("a mark as a proof", folder / "c_nano.bin", ["--document_end", 50256], "has no known header or suffix")
    refused("uint32 without dtype", folder / "d_olmo.npy", [], "d_olmo.npy", "dtype = \"uint32\"")
    refused("a mark that is nowhere", folder / "a_gpt2.bin", ["--document_end", 60000], "60000", "document_end")
    refused("both marks", folder / "a_gpt2.bin", ["--document_end", 1, "--document_start", 2], "both set")
    refused("other dtype than the header's", folder / "a_gpt2.bin", ["--dtype", "uint32"], "uint16", "leave the option out")

    np.save(folder / "real.npy", np.arange(10, dtype=np.uint16))
    refused("a NumPy file", folder / "real.npy", [], "NumPy", "tofile")
    write_llmc(folder / "hellaswag.bin", gpt2, 20240522, 1, "<u2")
    refused("an evaluation file", folder / "hellaswag.bin", [], "evaluation file of llm.c")
    write_llmc(folder / "v2.bin", gpt2, 20240520, 2, "<u2")
    refused("another version", folder / "v2.bin", [], "version 2", "byte 4")
    write_llmc(folder / "short.bin", gpt2, 20240520, 1, "<u2", len(gpt2) + 1)
    refused("a short file", folder / "short.bin", [], "30002 tokens", "61026 bytes")
    (folder / "odd.bin").write_bytes(bytes([200] * 1001))
    refused("half an id", folder / "odd.bin", ["--format", "raw"], "1001 bytes", "uint16")
    (folder / "empty.bin").write_bytes(b"")
    refused("an empty file", folder / "empty.bin", ["--format", "raw"], "no token")
    np.array([1, 2**31], "<u4").tofile(folder / "large.bin")
    refused("a large id", folder / "large.bin", ["--dtype", "uint32"], str(2**31), "byte 4", "document 0")
    np.array([1, -3], "<i8").tofile(folder / "negative.bin")
    refused("a negative id", folder / "negative.bin", ["--dtype", "int64"], "-3", "byte 8")
    write_megatron(folder / "megatron", [[[1, 2]]], np.uint16)
    refused("a Megatron file", folder / "megatron.bin", [], "dataset 'megatron'")
    referee.equal("a Megatron file as raw", read(folder / "megatron.bin", "--format", "raw"), [[1, 2]])


def judge_datatrove(referee):
    folder = referee.folder / "datatrove"
    folder.mkdir()
    documents = [draw(60000, length) for length in (5, 1, 0, 700, 12)]
    ids = [id for document in documents for id in document]
    ends = np.cumsum([len(document) for document in documents]).astype("<u8")
    for dtype in ("<u2", "<u4"):
        path = folder / f"{dtype[1:]}.ds"
        np.array(ids, dtype).tofile(path)
        ends.tofile(f"{path}.index")
        referee.equal(f"datatrove {dtype}", referee.documents("tokens", path), documents)
    refused = lambda what, options, *parts: referee.refused(f"datatrove {what}", "tokens", path, options, path, *parts)
    refused("other dtype", ["--dtype", "uint16"], "uint32")
    refused("with a mark", ["--document_end", 1], "remove")
    path.write_bytes(path.read_bytes()[:-2])
    refused("cut", [], "2870 bytes", "718 tokens")
    np.array([3, 2, 718], "<u8").tofile(f"{path}.index")
    refused("order", [], "token 2", "byte 8")
    (folder / "u4.ds.index").unlink()
    refused("without its index", [], "u4.ds.index' is missing", "format")


referee = Referee(__doc__)
judge_megatron(referee)
judge_tokens(referee)
judge_datatrove(referee)
referee.finish()
