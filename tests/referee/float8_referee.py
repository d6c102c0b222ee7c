"""Compares the quantisation and the linear layers of the float8 and mx converters with torchao, bit for bit.

    float8_referee.py --probe <float8_probe>

Compares scales and casts of random, tiny, huge, zero, denormal, infinite and NaN values; forward and both gradients
of whole layers under every recipe with torchao's emulated Float8Linear and MXFP8Linear; those of layers of experts
with torchao's emulated grouped MXFP8 product or, where torchao's kernels need a GPU (float8, MXFP8 in float32),
with its casts of each group and torch's products.
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
from torchao.float8.float8_utils import tensor_to_scale, to_fp8_saturated  # noqa: E402
from torchao.prototype.moe_training.mxfp8_grouped_mm import _to_mxfp8_then_scaled_grouped_mm  # noqa: E402
from torchao.prototype.moe_training.mxfp8_linear import mx_mm  # noqa: E402
from torchao.prototype.moe_training.utils import (  # noqa: E402
    torch_to_3d_rowwise_float8_transpose_rhs,
    torch_to_float8_per_group_colwise,
    torch_to_float8_per_group_rowwise,
)
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
    """Collects cases, runs the program once and compares its results."""

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
                # the bit pattern of a NaN depends on the vector unit
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
    """Matrices of 48 x 96 that cover every corner case of the formats."""
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
            # columns and rows have very different sizes, as in activations
            x = (normal(1, rows, features) * 10 ** normal(1, rows, 1) * 10 ** normal(1, 1, features)).to(dtype)
            weight = (normal(out, features) * 0.02 * 10 ** normal(out, 1)).to(dtype)
            grad = (normal(1, rows, out) * 1e-4 * 10 ** normal(1, rows, 1)).to(dtype)
            inputs = {"x": x, "weight": weight, "grad": grad}
            for recipe in ("tensorwise", "rowwise", "rowwise_with_gw_hp"):
                probe.add(recipe, name, (rows, features, out), inputs, their_float8(recipe, x, weight, grad))
            if rows % 32 == features % 32 == out % 32 == 0:
                for recipe in ("mxfp8_emulated", "mxfp8_emulated_rceil"):
                    probe.add(recipe, name, (rows, features, out), inputs, their_mxfp8(recipe, x, weight, grad))


def ends(rows):
    return torch.tensor(rows).cumsum(0).to(torch.int32)


def of_groups(rows):
    """(expert, slice of its rows) of experts that have rows."""
    first = 0
    for expert, count in enumerate(rows):
        if count:
            yield expert, slice(first, first + count)
        first += count


def their_float8_experts(x, weight, grad, rows):
    """The casts of torchao's _Float8GroupedMM by its functions in torch; returns the operands of its kernels, in
    float32."""
    def wide_rows(matrix):  # as triton_fp8_rowwise_2d_scale_and_cast
        scale = tensor_to_scale(matrix, torch.float8_e4m3fn, scaling_granularity=ScalingGranularity.AXISWISE, axiswise_dim=-1,
                                round_scales_to_power_of_2=True)
        return to_fp8_saturated(matrix.float() * scale, torch.float8_e4m3fn).float() / scale

    def wide_turned(stack):
        """(E, m, n), a scale for each line along n -> (E, n, m); it requires adjacent columns in memory."""
        values, scales = torch_to_3d_rowwise_float8_transpose_rhs(stack, torch.float8_e4m3fn, True)
        return values.float() / scales

    for_y = wide_turned(weight.transpose(-2, -1).contiguous().transpose(-2, -1))  # (E, in, out), scaled along in
    # (E, out, in), scaled along out; rows are adjacent in memory, since the order of a product's sums depends on it
    for_grad_x = wide_turned(weight.transpose(-2, -1)).contiguous()
    filled = ends([count for count in rows if count])  # these two stop at a group without rows
    x_columns, x_scales = torch_to_float8_per_group_colwise(x, filled, torch.float8_e4m3fn, True)
    grad_rows, grad_scales = torch_to_float8_per_group_rowwise(grad.t().contiguous(), filled, torch.float8_e4m3fn, True)
    x_scales, grad_scales = x_scales.view(len(filled), 1, -1), grad_scales.view(len(filled), -1, 1)
    y, grad_x, grad_weight = torch.zeros_like(grad), torch.zeros_like(x), torch.zeros_like(weight)
    for group, (expert, own) in enumerate(of_groups(rows)):
        y[own] = torch.mm(wide_rows(x[own]), for_y[expert])
        grad_x[own] = torch.mm(wide_rows(grad[own]), for_grad_x[expert])
        grad_weight[expert] = torch.mm(grad_rows[:, own].float() / grad_scales[group], x_columns[own].float() / x_scales[group])
    return {"y": y, "grad_x": grad_x, "grad_weight": grad_weight}


def their_mx_experts(x, weight, grad, rows):
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    y = _to_mxfp8_then_scaled_grouped_mm(
        x, weight.transpose(-2, -1), ends(rows), out_dtype=torch.bfloat16, kernel_preference=KernelPreference.EMULATED,
        scale_calculation_mode=ScaleCalculationMode.RCEIL, pad_token_groups_for_grouped_mm=True)
    y.backward(grad)
    return {"y": y, "grad_x": x.grad, "grad_weight": weight.grad}


def wide_mx_experts(x, weight, grad, rows):
    """Computes in float32, which torchao's grouped product rounds to bfloat16."""
    def wide(matrix):
        matrix = torch.nn.functional.pad(matrix, (0, -matrix.shape[1] % 32))
        scales, values = to_mx(matrix.contiguous(), torch.float8_e4m3fn, 32, ScaleCalculationMode.RCEIL)
        return to_dtype(values, scales, torch.float8_e4m3fn, 32, torch.float32)

    y, grad_x, grad_weight = torch.zeros_like(grad), torch.zeros_like(x), torch.zeros_like(weight)
    for expert, own in of_groups(rows):
        y[own] = torch.mm(wide(x[own]), wide(weight[expert]).t())
        grad_x[own] = torch.mm(wide(grad[own]), wide(weight[expert].t()).t())
        grad_weight[expert] = torch.mm(wide(grad[own].t()), wide(x[own].t()).t())
    return {"y": y, "grad_x": grad_x, "grad_weight": grad_weight}


def add_experts(probe, generator):
    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    for name, dtype in DTYPES.items():
        for rows in ([32, 0, 7, 70], [1, 33], [0, 64, 0]):  # experts without rows, and with rows that are not whole blocks
            count, features, out = sum(rows), 64, 96
            x = (normal(count, features) * 10 ** normal(count, 1) * 10 ** normal(1, features)).to(dtype)
            weight = (normal(len(rows), out, features) * 0.02 * 10 ** normal(len(rows), out, 1)).to(dtype)
            grad = (normal(count, out) * 1e-4 * 10 ** normal(count, 1)).to(dtype)
            inputs = {"x": x, "weight": weight, "grad": grad}
            shape = (count, features, out, *rows)
            probe.add("experts_float8", name, shape, inputs, their_float8_experts(x, weight, grad, rows))
            theirs = their_mx_experts if dtype == torch.bfloat16 else wide_mx_experts
            probe.add("experts_mx", name, shape, inputs, theirs(x, weight, grad, rows))


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
        add_experts(probe, generator)
        probe.compare()


if __name__ == "__main__":
    main()
