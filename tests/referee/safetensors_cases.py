"""Malformed or unusual safetensors files, and which side refuses them. Used by safetensors_referee.py."""

import struct


def raw(header, data=b"", length=None):
    header = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype="F32", shape="1", offsets="0,4", more=""):
    return f'{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{offsets}]{more}}}'


A = '"a":' + entry()
FOUR = b"1234"
# both refuse
REFUSED = {
    "nothing": b"",
    "half a length": b"\x10\0\0",
    "length beyond the file": raw("{}", length=100),
    "length of 200 MB": raw("{}", length=200_000_000),
    "length of 2^64 - 1": raw("{}", length=2**64 - 1),
    "length of 2^63": raw("{}", length=2**63),
    "empty header": raw(""),
    "no JSON": raw("hello"),
    "cut JSON": raw("{" + A, FOUR),
    "text behind the JSON": raw("{" + A + "}x", FOUR),
    "a list": raw("[]"),
    "not UTF-8": raw(b'{"\xff":' + entry().encode() + b"}", FOUR),
    "overlong UTF-8": raw(b'{"\xc0\x80":' + entry().encode() + b"}", FOUR),
    "half a surrogate pair": raw('{"\\ud800":' + entry() + "}", FOUR),
    "a byte order mark": raw(b"\xef\xbb\xbf{" + A.encode() + b"}", FOUR),
    "a zero byte behind the JSON": raw("{" + A + "}\0", FOUR),
    "a name without value": raw('{"a"}'),
    "a number for a tensor": raw('{"a":1}'),
    "no dtype": raw('{"a":{"shape":[1],"data_offsets":[0,4]}}', FOUR),
    "no shape": raw('{"a":{"dtype":"F32","data_offsets":[0,4]}}', FOUR),
    "no data_offsets": raw('{"a":{"dtype":"F32","shape":[1]}}', FOUR),
    "unknown dtype": raw('{"a":' + entry("F33") + "}", FOUR),
    "dtype twice": raw('{"a":{"dtype":"F32",' + entry()[1:] + "}", FOUR),
    "shape of a fraction": raw('{"a":' + entry(shape="1.0") + "}", FOUR),
    "shape with exponent": raw('{"a":' + entry(shape="1e0") + "}", FOUR),
    "negative shape": raw('{"a":' + entry(shape="-1") + "}", FOUR),
    "minus zero": raw('{"a":' + entry(offsets="-0,4") + "}", FOUR),
    "shape beyond 64 bits": raw('{"a":' + entry(shape="18446744073709551616") + "}", FOUR),
    "shape whose product overflows": raw('{"a":' + entry(shape="4294967296,4294967296,2") + "}", FOUR),
    "bytes that overflow": raw('{"a":' + entry(shape="4611686018427387904") + "}", FOUR),
    "half a byte": raw('{"a":' + entry("F4", "3", "0,2") + "}", b"12"),
    "three offsets": raw('{"a":' + entry(offsets="0,4,4") + "}", FOUR),
    "one offset": raw('{"a":' + entry(offsets="0") + "}", FOUR),
    "end before begin": raw('{"a":' + entry(offsets="4,0") + "}", FOUR),
    "bytes of another shape": raw('{"a":' + entry(shape="2") + "}", FOUR),
    "overlap": raw('{"a":' + entry() + ',"b":' + entry(offsets="2,6") + "}", b"123456"),
    "two tensors at one place": raw('{"a":' + entry() + ',"b":' + entry() + "}", FOUR),
    "gap": raw('{"a":' + entry() + ',"b":' + entry(offsets="8,12") + "}", b"123456789abc"),
    "gap at the start": raw('{"a":' + entry(offsets="4,8") + "}", b"12345678"),
    "data too short": raw("{" + A + "}", b"123"),
    "data too long": raw("{" + A + "}", b"12345"),
    "metadata of numbers": raw('{"__metadata__":{"k":1},' + A + "}", FOUR),
    "metadata that is a list": raw('{"__metadata__":[],' + A + "}", FOUR),
    "metadata twice": raw('{"__metadata__":{"k":"1"},"__metadata__":{"k":"2"},' + A + "}", FOUR),
    "nested 100,000 deep": raw('{"a":' + "[" * 100_000 + "]" * 100_000 + "}"),
}
# only Titan refuses
STRICTER = {
    "a tensor twice": (raw("{" + A + "," + A + "}", FOUR), "two readers may take either of the two"),
    "a metadata key twice": (raw('{"__metadata__":{"k":"1","k":"2"},' + A + "}", FOUR), "two readers may take either"),
    "blanks in front": (raw(" {" + A + "}", FOUR), "the format says that a header starts with {"),
    "an unknown member": (raw('{"a":' + entry(more=',"strides":[1]') + "}", FOUR), "it may change what the bytes mean"),
    "a tensor as a list": (raw('{"a":["F32",[1],[0,4]]}', FOUR), "the format says that it is an object"),
    "more than 64 dimensions": (raw('{"a":' + entry("U8", ",".join(["1"] * 65), "0,1") + "}", b"1"), "no tensor has so many"),
    "2^63 elements and a 0": (raw('{"a":' + entry("U8", "9223372036854775808,0", "0,0") + "}"),
                              "sizes are signed everywhere in Titan and PyTorch"),
}
# both read
READ = {
    "no tensor": raw("{}"),
    "padding": raw("{" + A + "}      ", FOUR),
    "line ends behind": raw("{" + A + "}\n", FOUR),
    "unaligned data": raw('{"ab":' + entry() + "}", FOUR),
    "no metadata": raw('{"__metadata__":null,' + A + "}", FOUR),
    "tensors in any order": raw('{"b":' + entry(offsets="4,8") + "," + A + "}", FOUR * 2),
    "members in any order": raw('{"a":{"data_offsets":[0,4],"shape":[1],"dtype":"F32"}}', FOUR),
    "a zero in a name": raw('{"a\\u0000":' + entry() + "}", FOUR),
    "types that PyTorch lacks": raw('{"a":' + entry("F6_E2M3", "4", "0,3") + ',"b":' + entry("F6_E3M2", "4", "3,6") + "}", b"123456"),
}
