"""Outer steps of semi-synchronous training in NumPy, from stored weights: the referee of tests/end_to_end/semi_sync_test.py. It
shares no code with the program. Alone it compares one outer step of a run:

    tests/referee/outer_step.py --common STEP --before STEP STEP --tokens N N --after STEP [--momentum STEP] [--mix A --last STEP]

Each STEP is a folder of a checkpoint; --common holds the weights of the last synchronisation, --before those of each group."""

import argparse
import json
import pathlib
import sys

import numpy
from safetensors.numpy import load_file

LR, MOMENTUM = 0.7, 0.9


def stored(step):
    """All tensors of a checkpoint, by name. Ranks hold shards along the first dimension."""
    tensors = {}
    for file in sorted(pathlib.Path(step).rglob("*.safetensors")):
        for name, value in load_file(file).items():
            tensors[name] = numpy.concatenate([tensors[name], value]) if name in tensors else value
    assert tensors, f"no tensors in {step}"
    return tensors


def weights(step):
    return {name: value.astype(numpy.float64) for name, value in stored(step).items() if not name.startswith("optim.")}


def mean(groups, tokens):
    """Weighted by the tokens of each group."""
    return {name: sum(n * group[name] for n, group in zip(tokens, groups)) / sum(tokens) for name in groups[0]}


def nearest_int8(x):
    return numpy.rint(x)


def nearest_e4m3(x):
    """The nearest float8 of 4 bits of exponent and 3 of mantissa, ties to even; at most 448 (OCP 8-bit floating point, 2023)."""
    codes = numpy.arange(127)  # 127 is not a number
    exponent, mantissa = codes // 8, codes % 8 / 8
    table = numpy.where(exponent == 0, mantissa * 2.0**-6, (1 + mantissa) * 2.0 ** (exponent - 7.0))
    size = numpy.abs(x).astype(numpy.float64)
    above = numpy.searchsorted(table, size).clip(1, 126)
    to_above, to_below = table[above] - size, size - table[above - 1]
    is_above = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    return numpy.copysign(table[numpy.where(is_above, above, above - 1)], x).astype(numpy.float32)


def quantized(rows, nearest, largest):
    """Rows in float32 after they were sent in 8 bits, each with a scale of its own."""
    with numpy.errstate(divide="ignore"):
        scale = numpy.float32(largest) / numpy.abs(rows).max(1, keepdims=True)
    scale[numpy.isinf(scale)] = 1
    return nearest((rows * scale).clip(-largest, largest)) / scale


def quantized_mean(nearest, largest):
    """mean() with the roundings of an exchange in 8 bits: of each group's share, and of their sum."""
    def average(groups, tokens):
        result = {}
        for name, value in groups[0].items():
            rows = (value.shape[0] if value.ndim > 1 else 1, -1)
            shares = [(group[name] * (n / sum(tokens))).astype(numpy.float32).reshape(rows) for n, group in zip(tokens, groups)]
            total = sum(quantized(share, nearest, largest) for share in shares)
            result[name] = quantized(total, nearest, largest).reshape(value.shape).astype(numpy.float64)
        return result
    return average


QUANTIZED = {"int8": quantized_mean(nearest_int8, 127), "float8_e4m3": quantized_mean(nearest_e4m3, 448)}


def diloco(common, groups, tokens, momentum, names, nesterov=True, lr=LR, mu=MOMENTUM, average=mean):
    """The next common weights of `names` and the next momentum (a dict that is changed)."""
    change = average([{name: common[name] - group[name] for name in names} for group in groups], tokens)
    result = {}
    for name in names:
        momentum[name] = mu * momentum.get(name, 0) + change[name]
        result[name] = common[name] - lr * (change[name] + mu * momentum[name] if nesterov else momentum[name])
    return result


def mixed(common, own, alpha):
    """A group's weights after the outer step: `alpha` of its own."""
    return {name: (1 - alpha) * common[name] + alpha * own[name] for name in common}


def distance(found, expected):
    """The largest difference of any element."""
    return max(float(numpy.abs(found[name] - expected[name]).max()) for name in expected)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--common", required=True)
    parser.add_argument("--before", nargs="+", required=True)
    parser.add_argument("--tokens", nargs="+", type=int, required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--momentum", help="checkpoint whose optim.semi_sync_momentum is the one before the step")
    parser.add_argument("--mix", type=float, default=0)
    parser.add_argument("--last", help="this group's weights right before the step, with --mix")
    arguments = parser.parse_args()
    momentum = {}
    if arguments.momentum:
        prefix = "optim.semi_sync_momentum."
        momentum = {name[len(prefix):]: value for name, value in stored(arguments.momentum).items() if name.startswith(prefix)}
    common = weights(arguments.common)
    expected = diloco(common, [weights(step) for step in arguments.before], arguments.tokens, momentum, list(common))
    if arguments.mix:
        expected = mixed(expected, weights(arguments.last), arguments.mix)
    found = distance(weights(arguments.after), expected)
    print(json.dumps({"largest difference": found}))
    sys.exit(found > 1e-9)


if __name__ == "__main__":
    main()
