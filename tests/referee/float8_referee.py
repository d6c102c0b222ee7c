"""Lets torchao judge the quantisation and the linear layers of the float8 and mx converters: every bit.

    float8_referee.py --probe <float8_probe>

Scales and casts of random, tiny, huge, zero, denormal, infinite and undefined values; then forward and both
gradients of whole layers under every recipe, beside torchao's emulated Float8Linear and MXFP8Linear.
"""

import argparse
import pathlib
import subprocess
import tempfile
import warnings

import numpy as np
import torch

warnings.filterwarnings("ignore")
from torchao.float8.config import Float8LinearConfig, ScalingGranularity  # noqa: E402
from torchao.float8.float8_linear import Float8Linear  # noqa: E402
from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic  # noqa: E402
from torchao.float8.float8_training_tensor import LinearMMConfig  # noqa: E402
from torchao.prototype.moe_training.mxfp8_linear import mx_mm  # noqa: E402
from torchao.prototype.mx_formats.config import (  # noqa: E402
    MXFP8Dim0CastKernelChoice,
    MXFP8Dim1CastKernelChoice,
    ScaleCalculationMode,
)
from torchao.prototype.mx_formats.mx_tensor import to_dtype, to_mx  # noqa: E402
from torchao.prototype.mx_formats.utils import to_blocked  # noqa: E402
from torchao.quantization.quantize_.common.kernel_preference import KernelPreference  # noqa: E402

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
WITH_NOT_A_NUMBER = (torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy()


class Probe:
    """Collects cases, runs the program once and compares what it wrote."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.lines, self.expected = [], []

    def add(self, operation, dtype, shape, inputs, expected):
        name = f"case{len(self.lines)}"
        self.lines.append(" ".join([name, operation, dtype, *map(str, shape)]))
        for what, tensor in inputs.items():
            (self.folder / f"{name}.{what}").write_bytes(bits(tensor).tobytes())
        self.expected += [(name, f"{operation} {dtype} {tuple(shape)} {what}", what, tensor)
                          for what, tensor in expected.items()]

    def compare(self):
        (self.folder / "cases.txt").write_text("\n".join(self.lines) + "\n")
        subprocess.run([self.program, str(self.folder)], check=True, stdin=subprocess.DEVNULL)
        wrong = 0
        for name, what, file, tensor in self.expected:
            found = np.fromfile(self.folder / f"{name}.{file}", dtype=np.uint8)
            expected = bits(tensor)
            is_equal = np.array_equal(found, expected)
            if not is_equal and len(found) == len(expected) and tensor.dtype in WITH_NOT_A_NUMBER:
                # which of the bit patterns of "not a number" comes out depends on the vector unit
                found_values = torch.from_numpy(found).view(tensor.dtype).float()
                values = torch.from_numpy(expected).view(tensor.dtype).float()
                is_same = (found_values == values) & (found_values.signbit() == values.signbit())
                is_equal = bool((is_same | (found_values.isnan() & values.isnan())).all())
            if not is_equal:
                wrong += 1
                differ = np.count_nonzero(found != expected) if len(found) == len(expected) else "other"
                print(f"DIFFERS: {what}: {differ} of {len(expected)} bytes ({name})")
        print(f"{len(self.lines)} cases, {len(self.expected)} tensors compared bit by bit, {wrong} differ")
        assert self.expected, "nothing was compared"
        raise SystemExit(1 if wrong else 0)


def hard_values(dtype, generator):
    """Matrices of 48 x 96 that reach every corner of the formats."""
    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    rows = (48, 96)
    spread = normal(*rows) * 10.0 ** torch.randint(-30, 30, rows, generator=generator)
    undefined = normal(*rows)
    undefined[3, 5], undefined[40, 64] = float("nan"), float("-nan")
    infinite = normal(*rows)
    infinite[0, 0], infinite[17, 40] = float("inf"), float("-inf")
    some_zero = normal(*rows)
    some_zero[8:16], some_zero[:, 32:64] = 0, 0
    powers = 2.0 ** torch.randint(-149, 127, rows, generator=generator).float()
    near_powers = 2.0 ** torch.randint(-30, 30, rows, generator=generator).float()
    near_powers = near_powers * (1 + torch.randint(-2, 3, rows, generator=generator) * 2.0**-23)
    cases = [normal(*rows), spread, undefined, infinite, torch.zeros(rows), -torch.zeros(rows), some_zero,
             normal(*rows) * 1e-38, normal(*rows) * 1e-42, normal(*rows) * 1e38, powers, near_powers,
             near_powers * 448, near_powers * 57344, torch.full(rows, 448.0), torch.full(rows, 464.0),
             torch.linspace(-500, 500, rows[0] * rows[1]).reshape(rows)]
    return [case.to(dtype) for case in cases]


def add_quantisation(probe, generator):
    for name, dtype in DTYPES.items():
        for x in hard_values(dtype, generator):
            for format_name, float8 in FORMATS.items():
                for scaled, axis in (("tensor", None), ("row", -1), ("column", 0)):
                    for power in (False, True):
                        granularity = ScalingGranularity.TENSORWISE if axis is None else ScalingGranularity.AXISWISE
                        theirs = hp_tensor_to_float8_dynamic(
                            x, float8, LinearMMConfig(), scaling_granularity=granularity, axiswise_dim=axis,
                            round_scales_to_power_of_2=power)
                        probe.add(f"{scaled}_{format_name}{'_power' if power else ''}", name, x.shape, {"x": x},
                                  {"scale": theirs._scale, "values": theirs._data})
            for rounding in ("floor", "rceil"):
                scales, values = to_mx(x, torch.float8_e4m3fn, 32, ScaleCalculationMode(rounding))
                wide = to_dtype(values, scales, torch.float8_e4m3fn, 32, dtype)
                probe.add(rounding, name, x.shape, {"x": x},
                          {"scales": scales, "values": values, "wide": wide,
                           "tiles": to_blocked(scales.view(torch.uint8))})


def their_float8(recipe, x, weight, grad):
    config = Float8LinearConfig.from_recipe_name(recipe)
    config = Float8LinearConfig(**{**config.__dict__, "emulate": True})
    linear = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    linear.weight = torch.nn.Parameter(weight.clone())
    linear = Float8Linear.from_float(linear, config=config)
    x = x.clone().requires_grad_()
    y = linear(x)
    y.backward(grad)
    return {"y": y, "grad_x": x.grad, "grad_weight": linear.weight.grad}


def their_mxfp8(recipe, x, weight, grad):
    rounding = ScaleCalculationMode.RCEIL if recipe.endswith("rceil") else ScaleCalculationMode.FLOOR
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    e4m3 = torch.float8_e4m3fn
    y = mx_mm.apply(x, weight, e4m3, e4m3, e4m3, 32, KernelPreference.EMULATED, MXFP8Dim0CastKernelChoice.TORCH,
                    MXFP8Dim1CastKernelChoice.TORCH, rounding, False)
    y.backward(grad)
    return {"y": y, "grad_x": x.grad, "grad_weight": weight.grad}


def add_layers(probe, generator):
    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    for name, dtype in DTYPES.items():
        for rows, features, out in ((64, 96, 32), (32, 64, 160), (7, 48, 80), (33, 16, 16)):
            # with columns and rows of very different sizes, as activations have
            x = (normal(1, rows, features) * 10 ** normal(1, rows, 1) * 10 ** normal(1, 1, features)).to(dtype)
            weight = (normal(out, features) * 0.02 * 10 ** normal(out, 1)).to(dtype)
            grad = (normal(1, rows, out) * 1e-4 * 10 ** normal(1, rows, 1)).to(dtype)
            inputs = {"x": x, "weight": weight, "grad": grad}
            for recipe in ("tensorwise", "rowwise", "rowwise_with_gw_hp"):
                probe.add(recipe, name, (rows, features, out), inputs, their_float8(recipe, x, weight, grad))
            if rows % 32 == features % 32 == out % 32 == 0:
                for recipe in ("mxfp8_emulated", "mxfp8_emulated_rceil"):
                    probe.add(recipe, name, (rows, features, out), inputs, their_mxfp8(recipe, x, weight, grad))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", required=True, help="the float8_probe program")
    args = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(7)
    with tempfile.TemporaryDirectory(prefix="titan_") as folder:
        probe = Probe(args.probe, pathlib.Path(folder))
        add_quantisation(probe, generator)
        add_layers(probe, generator)
        probe.compare()


if __name__ == "__main__":
    main()
