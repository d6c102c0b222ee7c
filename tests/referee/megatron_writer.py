"""Writes Megatron's token files with NumPy."""

import struct

import numpy as np

from megatron_reader import DTYPES

CODES = {np.dtype(dtype): code for code, dtype in DTYPES.items()}


def write_megatron(prefix, documents, dtype, with_modes=False):
    """`documents`: each a list of sequences, each a list of ids."""
    dtype = np.dtype(dtype)
    sequences = [np.array(sequence, dtype) for document in documents for sequence in document]
    lengths = np.array([len(sequence) for sequence in sequences], "<i4")
    pointers = (np.cumsum(lengths, dtype="<i8") - lengths) * dtype.itemsize
    entries = np.cumsum([0] + [len(document) for document in documents], dtype="<i8")
    with open(f"{prefix}.bin", "wb") as file:
        for sequence in sequences:
            file.write(sequence.astype(dtype.newbyteorder("<")).tobytes())
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, CODES[dtype], len(sequences), len(entries)))
        file.write(lengths.tobytes() + pointers.astype("<i8").tobytes() + entries.astype("<i8").tobytes())
        if with_modes:
            file.write(bytes(len(sequences)))
