"""Compares Titan's safetensors code with the safetensors package, PyTorch's distributed checkpoints and xxHash.

    safetensors_referee.py --probe <safetensors_probe>

Written files must equal the package's byte for byte. Titan must read the content of files of the package and of
HuggingFaceStorageWriter. Both must refuse malformed files; where Titan refuses more, the table says why.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import tempfile

import numpy as np
import safetensors
import safetensors.torch
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing
import xxhash
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from safetensors_cases import READ, REFUSED, STRICTER

TORCH_TYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "U16": torch.uint16, "I32": torch.int32,
    "U32": torch.uint32, "I64": torch.int64, "U64": torch.uint64, "F16": torch.float16, "BF16": torch.bfloat16,
    "F32": torch.float32, "F64": torch.float64, "C64": torch.complex64, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2, "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
    "F8_E8M0": torch.float8_e8m0fnu, "F4": torch.float4_e2m1fn_x2,
}
NAMES = ["layers.0.attention.wq.weight", "tok_embeddings.weight", "a", "A", "", "Größe", "\"quoted\"\\", "tab\t\n\x01\x7f",
         "\u2028😀", "norm.weight", "x" * 300]
SHAPES = [[], [0], [1], [7], [3, 4], [2, 0, 5], [1, 1, 1, 2], [64, 33]]


def make_tensor(rng, dtype, shape):
    """A tensor of random bits."""
    count = int(np.prod(shape, dtype=np.int64)) * TORCH_TYPES[dtype].itemsize
    data = bytearray(rng.randbytes(count))
    if dtype == "BOOL":
        data = bytearray(b & 1 for b in data)
    if not data:
        return torch.empty(shape, dtype=TORCH_TYPES[dtype])
    return torch.frombuffer(data, dtype=TORCH_TYPES[dtype]).reshape(shape)


def make_tensors(rng):
    names = rng.sample(NAMES, rng.randint(0, len(NAMES)))
    # the package counts a pair of float4 as one element: shapes need a last dimension
    chosen = {name: (rng.choice(list(TORCH_TYPES)), rng.choice(SHAPES)) for name in names}
    return {name: make_tensor(rng, dtype, shape if dtype != "F4" or shape else [1])
            for name, (dtype, shape) in chosen.items()}


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""


def dtype_of(tensor):
    return next(name for name, dtype in TORCH_TYPES.items() if dtype == tensor.dtype)


def stored_shape(tensor):
    shape = list(tensor.shape)
    if tensor.dtype == torch.float4_e2m1fn_x2:
        shape[-1] *= 2
    return shape


class Probe:
    def __init__(self, program, folder):
        self.program, self.folder = program, pathlib.Path(folder)

    def run(self, *arguments, text=None):
        return subprocess.run([self.program, *map(str, arguments)], input=text, text=True, check=True, capture_output=True).stdout

    def write(self, folder, files):
        """`files`: {name: (tensors, metadata, offsets by tensor or None)}"""
        jobs = []
        for file, (tensors, metadata, sharding) in files.items():
            job = {"file": file, "metadata": metadata, "sharding": sharding, "tensors": []}
            for name, tensor in tensors.items():
                data = self.folder / f"data_{len(jobs)}_{len(job['tensors'])}"
                data.write_bytes(bits(tensor))
                job["tensors"].append({"name": name, "dtype": dtype_of(tensor), "shape": stored_shape(tensor), "data": str(data)})
            jobs.append(job)
        self.run("write", folder, text=json.dumps(jobs))

    def read(self, *paths):
        return [json.loads(line) for line in self.run("read", *paths).split("\n")[:-1]]  # names contain other line ends

    def index(self, folder):
        return json.loads(self.run("index", folder))

    def hashes(self, *paths):
        return self.run("hash", *paths).split()


# --- written by Titan, read by the package ----------------------------------------------------------------------------

def judge_writing(probe, folder, rng):
    for round_ in range(60):
        tensors = make_tensors(rng)
        # the package would write more keys in another order at each run
        metadata = rng.choice([{}, {"format": "pt"}, {"schlüssel \"": "wert\n"}])
        path = folder / "written.safetensors"
        probe.write(folder, {path.name: (tensors, metadata, None)})
        expected = safetensors.torch.save(tensors, metadata or None)
        assert path.read_bytes() == expected, f"round {round_}: the bytes differ from the package's"
    tensors = {name: make_tensor(rng, dtype, [3, 2]) for name, dtype in zip("abcdefghijklmnopqrst", TORCH_TYPES)}
    metadata = {"format": "pt", "a": "", "z": "{\"x\": [1]}"}
    probe.write(folder, {"all.safetensors": (tensors, metadata, None)})
    with safetensors.safe_open(folder / "all.safetensors", framework="pt") as file:
        assert file.metadata() == metadata
        assert sorted(file.keys()) == sorted(tensors)
        for name, tensor in tensors.items():
            if tensor.dtype in (torch.float8_e8m0fnu, torch.float4_e2m1fn_x2):
                continue  # the package writes them but has no reader for them
            assert file.get_tensor(name).dtype == tensor.dtype and bits(file.get_tensor(name)) == bits(tensor), name
    print(f"60 written files equal the package's byte for byte; {len(tensors)} types read back")


# --- written by the package, read by Titan ----------------------------------------------------------------------------

def expect_read(result, tensors, metadata, place):
    assert "error" not in result, (place, result)
    assert result["metadata"] == metadata, place
    found = {tensor["name"]: tensor for tensor in result["tensors"]}
    assert found.keys() == tensors.keys(), place
    for name, tensor in tensors.items():
        assert found[name]["dtype"] == dtype_of(tensor), (place, name)
        assert found[name]["shape"] == stored_shape(tensor), (place, name)
        content = pathlib.Path(place).read_bytes()
        begin = found[name]["position"]
        assert content[begin:begin + found[name]["bytes"]] == bits(tensor), (place, name)


def judge_reading(probe, folder, rng):
    cases, count = [], 0
    for dtype in TORCH_TYPES:
        cases.append({f"{dtype} {shape}": make_tensor(rng, dtype, shape) for shape in SHAPES if shape or dtype != "F4"})
    cases += [make_tensors(rng) for _ in range(40)]
    for i, tensors in enumerate(cases):
        path = folder / f"read_{i}.safetensors"
        metadata = rng.choice([{}, {"format": "pt", "k": "ü\"", "": ""}])
        safetensors.torch.save_file(tensors, path, metadata or None)
        (result,) = probe.read(path)
        expect_read(result, tensors, metadata, path)
        count += len(tensors)
    print(f"{count} tensors in {len(cases)} files of the package are read as saved, {len(TORCH_TYPES)} types among them")


# --- malformed files ----------------------------------------------------------------------------------------------------

def package_refuses(content):
    try:
        safetensors.deserialize(content)
        return False
    except safetensors.SafetensorError:
        return True


def judge_malformed(probe, folder):
    cases = {name: (content, True, True) for name, content in REFUSED.items()}
    cases |= {name: (content, False, True) for name, (content, _) in STRICTER.items()}
    cases |= {name: (content, False, False) for name, content in READ.items()}
    good = safetensors.torch.save({"w": torch.arange(6, dtype=torch.float32).reshape(2, 3), "b": torch.zeros(3)}, {"format": "pt"})
    for length in range(len(good)):
        cases[f"cut to {length} bytes"] = (good[:length], True, True)
    paths = []
    for i, (content, _, _) in enumerate(cases.values()):
        paths.append(folder / f"malformed_{i}")
        paths[-1].write_bytes(content)
    for (name, (content, theirs, ours)), result in zip(cases.items(), probe.read(*paths), strict=True):
        assert package_refuses(content) == theirs, f"{name}: the package {'reads' if theirs else 'refuses'} it"
        assert ("error" in result) == ours, (name, result)
        assert not ours or result["kind"] == "data" and "malformed_" in result["error"], (name, result)
    # flipped bits: Titan refuses everything that the package refuses; both read accepted files
    # equally
    rng, num_both, num_read = random.Random(7), 0, 0
    paths, contents = [], []
    for i in range(600):
        content = bytearray(good)
        for _ in range(rng.randint(1, 3)):
            content[rng.randrange(len(good) - 36)] ^= 1 << rng.randrange(8)
        contents.append(bytes(content))
        paths.append(folder / f"flipped_{i}")
        paths[-1].write_bytes(content)
    for content, result in zip(contents, probe.read(*paths), strict=True):
        if package_refuses(content):
            assert "error" in result, content
            num_both += 1
        elif "error" not in result:
            theirs = {name: (value["dtype"], value["shape"], len(value["data"])) for name, value in safetensors.deserialize(content)}
            assert theirs == {t["name"]: (t["dtype"], t["shape"], t["bytes"]) for t in result["tensors"]}, content
            num_read += 1
    assert num_both > 100 and num_read > 0, (num_both, num_read)
    print(f"{len(REFUSED)} malformed files, {len(good)} truncations and {num_both} of 600 with flipped bits are refused by both; "
          f"{num_read} with flipped bits read alike")
    for name, (_, why) in STRICTER.items():
        print(f"  Titan alone refuses: {name}: {why}")


# --- distributed checkpoints --------------------------------------------------------------------------------------------

def full_state():
    generator = torch.Generator().manual_seed(3)
    return {
        "rows": torch.randn(5, 4, generator=generator), "columns": torch.randn(3, 5, generator=generator).bfloat16(),
        "one_row": torch.randn(1, 6, generator=generator), "vector": torch.randn(7, generator=generator).half(),
        "replicated": torch.randn(3, 3, generator=generator), "plain": torch.randn(2, 2, generator=generator),
        "scalar": torch.tensor(3.5), "integer": torch.tensor([1, -2, 3]), "größe": torch.randn(4, 2, generator=generator),
    }


PLACEMENTS = {"rows": Shard(0), "columns": Shard(1), "one_row": Shard(0), "vector": Shard(0), "replicated": Replicate(),
              "größe": Shard(0)}


def save_rank(rank, size, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}.store", rank=rank, world_size=size)
    mesh = init_device_mesh("cpu", (size,))
    state = {name: distribute_tensor(tensor, mesh, [PLACEMENTS[name]]) if name in PLACEMENTS else tensor
             for name, tensor in full_state().items()}
    assert isinstance(state["rows"], DTensor)
    dcp.save(state, storage_writer=dcp.HuggingFaceStorageWriter(path=str(folder), save_distributed=True))
    dist.destroy_process_group()


def assemble(name, tensor):
    """A whole tensor assembled from the bytes at the places in Titan's index."""
    dtype = TORCH_TYPES[tensor["dtype"]]
    whole = torch.zeros(tensor["shape"], dtype=dtype)
    covered = torch.zeros(tensor["shape"], dtype=torch.int64)
    for piece in tensor["pieces"]:
        content = pathlib.Path(piece["file"]).read_bytes()[piece["position"]:piece["position"] + piece["bytes"]]
        window = tuple(slice(at, at + size) for at, size in zip(piece["offsets"], piece["sizes"]))
        if content:
            whole[window] = torch.frombuffer(bytearray(content), dtype=dtype).reshape(piece["sizes"])
        covered[window] += 1
    assert bool((covered == 1).all()), name
    return whole


def judge_distributed(probe, folder):
    wanted = full_state()
    for size in (1, 2, 3):
        path = folder / f"dcp_{size}"
        torch.multiprocessing.spawn(save_rank, args=(size, path), nprocs=size)
        found = probe.index(path)
        assert found.keys() == wanted.keys(), found
        for name, tensor in wanted.items():
            assert found[name]["shape"] == list(tensor.shape), name
            assert bits(assemble(name, found[name])) == bits(tensor), name
        count = len(found["rows"]["pieces"])
        assert count == size, count
        if size == 1:
            continue
        missing = folder / "missing"
        shutil.copytree(path, missing)
        min(missing.glob("shard-*.safetensors")).unlink()
        assert "has gaps" in probe.index(missing)["error"]
        shutil.rmtree(missing)
    print("shards of HuggingFaceStorageWriter on 1, 2 and 3 ranks: every tensor is put together bit for bit")

    # the reverse: Titan's shards, read by PyTorch
    path = folder / "titan_shards"
    path.mkdir()
    shards = {f"shard-{i}.safetensors": ({}, {"format": "pt", "DCP_VERSION": "1.0"}, {}) for i in range(3)}
    for i, (name, tensor) in enumerate(wanted.items()):
        placement = PLACEMENTS.get(name)
        parts = [tensor] if not isinstance(placement, Shard) else torch.tensor_split(tensor, 3, placement.dim)
        start = 0
        for j, part in enumerate(parts):
            tensors, _, sharding = shards[f"shard-{(i + j) % 3}.safetensors"]
            offsets = [0] * tensor.dim()
            if len(parts) > 1:
                offsets[placement.dim] = start
                start += part.shape[placement.dim]
            if part.numel() or not tensor.numel():
                tensors[name], sharding[name] = part.contiguous(), offsets
    probe.write(path, shards)
    loaded = {name: torch.zeros_like(tensor) for name, tensor in wanted.items()}
    dcp.load(loaded, storage_reader=dcp.HuggingFaceStorageReader(path=str(path)), no_dist=True)
    for name, tensor in wanted.items():
        assert bits(loaded[name]) == bits(tensor), name
    assert probe.index(path).keys() == wanted.keys()
    print(f"{len(wanted)} tensors in 3 of Titan's shards: HuggingFaceStorageReader gives each back bit for bit")


# --- hashes -------------------------------------------------------------------------------------------------------------

def judge_hashes(probe, folder, rng):
    paths = []
    for size in [0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 512, 1024, 1025, 65536, 1_000_003]:
        paths.append(folder / f"hashed_{size}")
        paths[-1].write_bytes(rng.randbytes(size))
    found = probe.hashes(*paths)
    wanted = [xxhash.xxh3_128(path.read_bytes()).hexdigest() for path in paths]
    assert found == wanted, list(zip(paths, found, wanted))
    print(f"{len(found)} hashes equal those of the xxhash package")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probe", required=True)
    program = parser.parse_args().probe
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        probe, rng = Probe(program, folder), random.Random(11)
        judge_writing(probe, folder, rng)
        judge_reading(probe, folder, rng)
        judge_malformed(probe, folder)
        judge_hashes(probe, folder, rng)
        judge_distributed(probe, folder)


if __name__ == "__main__":
    main()
