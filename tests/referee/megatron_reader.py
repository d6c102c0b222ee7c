"""Reads Megatron's .bin and .idx with NumPy only, as a reference for Titan's reader and writer."""

import pathlib

import numpy as np

DTYPES = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.float64, 7: np.float32, 8: np.uint16}


class MegatronFile:
    """A pair of files; `prefix` is their path without the suffix. Raises AssertionError for malformed files."""

    def __init__(self, prefix):
        index = pathlib.Path(f"{prefix}.idx").read_bytes()
        assert index[:9] == b"MMIDIDX\0\0", "magic"
        assert int.from_bytes(index[9:17], "little") == 1, "version"
        self.dtype = np.dtype(DTYPES[index[17]]).newbyteorder("<")
        num_sequences = int.from_bytes(index[18:26], "little")
        num_entries = int.from_bytes(index[26:34], "little")
        rest = index[34:]
        self.lengths = np.frombuffer(rest, "<i4", num_sequences)
        self.pointers = np.frombuffer(rest, "<i8", num_sequences, 4 * num_sequences)
        self.entries = np.frombuffer(rest, "<i8", num_entries, 12 * num_sequences)
        used = 12 * num_sequences + 8 * num_entries
        assert len(rest) in (used, used + num_sequences), "size of the index"
        self.tokens = np.fromfile(f"{prefix}.bin", self.dtype)
        size = pathlib.Path(f"{prefix}.bin").stat().st_size
        assert size == self.tokens.nbytes, "the .bin file ends inside an id"
        assert (self.lengths >= 0).all(), "lengths"
        ends = np.cumsum(self.lengths.astype(np.int64)) * self.dtype.itemsize
        assert (self.pointers == ends - self.lengths.astype(np.int64) * self.dtype.itemsize).all(), "pointers"
        assert (int(ends[-1]) if num_sequences else 0) == size, "size of the .bin file"
        assert num_entries >= 1 and self.entries[0] == 0 and self.entries[-1] == num_sequences, "document entries"
        assert (np.diff(self.entries) >= 0).all(), "order of the documents"

    def __len__(self):
        return len(self.entries) - 1

    def sequences(self, document):
        for sequence in range(self.entries[document], self.entries[document + 1]):
            begin = self.pointers[sequence] // self.dtype.itemsize
            yield self.tokens[begin:begin + self.lengths[sequence]]

    def document(self, document):
        """The ids of a document, all its sequences in order."""
        return [int(id) for sequence in self.sequences(document) for id in sequence]

    def documents(self):
        return [self.document(document) for document in range(len(self))]
