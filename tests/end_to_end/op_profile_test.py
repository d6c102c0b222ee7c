"""The table of operations of docs/results/performance.md: compares its formulas with torch's FLOP counter, and its sums with the step and
with `titan estimate`."""

import sys
import unittest

import harness

sys.path.insert(0, str(harness.ROOT / "tests/benchmarks"))
import op_formulas  # noqa: E402
import op_profile  # noqa: E402

FLOAT = "float"


def cost(name, *dims, concrete=(), kind=FLOAT):
    """`concrete`: the arguments after the tensors."""
    arguments = {"Input Dims": [list(one) for one in dims], "Input type": [kind] * len(dims),
                 "Concrete Inputs": [""] * len(dims) + list(concrete)}
    return op_formulas.cost(name, arguments)


class Formulas(unittest.TestCase):
    def test_flops_are_those_of_torch(self):
        from torch.utils import flop_counter as torch_counts
        a, b, bias = (96, 40), (40, 24), (96, 24)
        self.assertEqual(cost("aten::mm", a, b).flops, torch_counts.mm_flop(a, b))
        self.assertEqual(cost("aten::addmm_", bias, a, b).flops, torch_counts.addmm_flop(bias, a, b))
        self.assertEqual(cost("aten::bmm", (3, *a), (3, *b)).flops, torch_counts.bmm_flop((3, *a), (3, *b)))
        # without a mask; four key heads for eight query heads cost as much as eight
        q, k = (2, 8, 32, 16), (2, 4, 32, 16)
        forward = torch_counts.sdpa_flop_count(q, q, q)
        backward = torch_counts.sdpa_backward_flop_count(q, q, q, q)
        rest = [q, (2, 8, 32)]
        self.assertEqual(cost("titan::attention_forward", q, k, k, concrete=["False"]).flops, forward)
        self.assertEqual(cost("titan::attention_backward", q, q, k, k, *rest, concrete=["False"]).flops, backward)
        # the mask leaves (S + 1) / 2S of the pairs
        self.assertEqual(cost("titan::attention_forward", q, k, k, concrete=["True"]).flops, forward * 33 / 64)

    def test_flops_of_groups_are_those_of_a_product_each(self):
        from torch.utils import flop_counter as torch_counts
        counts, x, grad, weight = [5, 0, 12], (17, 40), (17, 24), (3, 40, 24)
        rows = str(counts)
        forward = sum(torch_counts.mm_flop((n, 40), (40, 24)) for n in counts)
        found = cost("titan::grouped_mm", x, weight, concrete=[rows])
        self.assertEqual(found.flops, forward)
        self.assertEqual(found.bytes, 4 * (17 * 40 + 2 * 40 * 24 + 17 * 24))  # the second matrix is not read
        found = cost("titan::grouped_mm_weight_grad", grad, x, concrete=[rows])
        self.assertEqual(found.flops, sum(torch_counts.mm_flop((24, n), (n, 40)) for n in counts))
        self.assertEqual(found.bytes, 4 * (17 * 24 + 17 * 40 + 3 * 24 * 40))
        found = cost("titan::grouped_mm", x, (31, 40, 24), concrete=[""])  # the profiler does not record the values of longer lists
        self.assertEqual(found.flops, forward)
        self.assertEqual(found.bytes, 4 * (17 * 40 + 17 * 40 * 24 + 17 * 24))  # at most one matrix per row is read

    def test_values_may_be_narrower_than_keys(self):
        from torch.utils import flop_counter as torch_counts
        q, v, rest = (2, 8, 32, 24), (2, 8, 32, 16), (2, 8, 32)
        forward = cost("titan::attention_forward", q, q, v, concrete=["False"])
        self.assertEqual(forward.flops, torch_counts.sdpa_flop_count(q, q, v))
        self.assertEqual(forward.bytes, 4 * 2 * 8 * 32 * (24 + 24 + 16 + 16 + 1))
        backward = cost("titan::attention_backward", v, q, q, v, v, rest, concrete=["False"])
        self.assertEqual(backward.flops, torch_counts.sdpa_backward_flop_count(v, q, q, v))
        self.assertEqual(backward.flops_model, 2 * forward.flops)

    def test_a_window_costs_the_pairs_that_it_sees(self):
        # as titan/nn/attention_rules.h runs it: pieces of the window's size, and queries that see a part of the
        # previous piece
        length, window = 256, 64
        own, before = (4, 8, window, 16), (3, 8, window - 1, 16)
        flops = sum(cost("titan::attention_forward", q, q, q, concrete=["True"]).flops for q in (own, before))
        self.assertEqual(flops, 4 * 8 * 16 * sum(min(i + 1, window) for i in range(length)))

    def test_softmaxes_take_an_exponential_for_each_pair(self):
        q, k, rest = (2, 8, 32, 16), (2, 4, 32, 16), (2, 8, 32)
        pairs = 2 * 8 * 32 * 33 / 2
        self.assertEqual(cost("titan::attention_forward", q, k, k, concrete=["True"]).exponentials, pairs)
        self.assertEqual(cost("titan::attention_backward", q, q, k, k, q, rest, concrete=["True"]).exponentials, pairs)
        self.assertEqual(cost("titan::linear_cross_entropy", (64, 8), (100, 8), (64,), concrete=["True", "True"]).exponentials, 6400)

    def test_bytes_are_operands_and_results(self):
        self.assertEqual(cost("aten::mm", (96, 40), (40, 24)).bytes, 4 * (96 * 40 + 40 * 24 + 96 * 24))
        self.assertEqual(cost("aten::add", (8, 4), (8, 4), kind="c10::BFloat16").bytes, 2 * 3 * 32)
        self.assertEqual(cost("aten::add_", (8, 4), (8, 4)).bytes, 4 * 3 * 32)
        self.assertEqual(cost("titan::swiglu_backward", *[(8, 4)] * 3).bytes, 4 * 5 * 32)

    def test_unknown_operations_have_no_formula(self):
        self.assertIsNone(cost("acme::fused_everything", (8, 4)))
        self.assertIsNone(cost("aten::mm", (8,)))  # operands that do not fit the formula


class Rows(unittest.TestCase):
    @staticmethod
    def event(name, begin, length, dims=(), cat="cpu_op"):
        return {"name": name, "cat": cat, "ts": begin, "dur": length, "tid": 1,
                "args": {"Input Dims": [list(one) for one in dims], "Input type": [FLOAT] * len(dims), "Concrete Inputs": []}}

    def test_each_moment_of_a_step_belongs_to_one_row(self):
        events = [self.event("ProfilerStep#1", 0, 100, cat="user_annotation"),
                  self.event("forward of microbatch 0", 0, 60, cat="user_annotation"),
                  self.event("aten::linear", 5, 30),
                  self.event("aten::mm", 10, 20, [(4, 4), (4, 4)]),
                  self.event("aten::empty", 11, 5),
                  self.event("acme::own", 40, 10, [(4, 4)]),
                  self.event("aten::mm", 42, 5, [(4, 4), (4, 4)]),
                  self.event("backward of microbatch 0", 60, 40, cat="user_annotation"),
                  self.event("autograd::engine::evaluate_function: MmBackward0", 60, 30),
                  self.event("MmBackward0", 60, 30),
                  self.event("aten::mm", 65, 25, [(4, 4), (4, 4)])]
        rows = {(row.phase, row.name): row for row in op_profile.rows_of_step(events, 0)}
        times = {key: row.time for key, row in rows.items()}
        # linear has a formula too, but no operands here, so its child operations are counted
        self.assertEqual(times, {("forward", "aten::mm"): 20, ("forward", "views, allocation, dispatch"): 10,
                                 ("forward", "acme::own"): 10, ("forward", "outside of operations"): 20,
                                 ("backward", "aten::mm"): 25, ("backward", "outside of operations"): 15,
                                 ("between", "outside of operations"): 0})
        self.assertFalse(rows["forward", "acme::own"].has_formula)
        self.assertEqual(rows["forward", "acme::own"].bytes, 64)


class Pages(unittest.TestCase):
    PRINTED = ("titan/rope   1 ms\n\noperation                  titan ms    ATen ms ATen/titan      of CPU time\n"
               "rms_norm                      0.913     12.788      14.00            13.50\n"
               "rope of two                     1.0        2.0       2.00             2.00\n")

    def test_ratios_are_read_as_they_are_printed(self):
        self.assertEqual(op_profile.ratios_of(self.PRINTED),
                         ["| operation | titan ms | ATen ms | ATen/titan | of CPU time |", "|---|---:|---:|---:|---:|",
                          "| rms_norm | 0.913 | 12.788 | 14.00 | 13.50 |", "| rope of two | 1.0 | 2.0 | 2.00 | 2.00 |"])
        with self.assertRaisesRegex(RuntimeError, "another table"):
            op_profile.ratios_of(self.PRINTED + "swiglu 1.0\n")

    def test_shares_of_kinds_add_up(self):
        row = op_profile.Row
        rows = [row("forward", "aten::mm", "", 1, 50e6, 4e12), row("forward", "titan::attention_forward", "", 1, 30e6, 3e11),
                row("optimizer", "aten::_fused_adamw_", "", 1, 15e6), row("backward", "outside of operations", "", 0, 5e6)]
        lines = op_profile.overview({"job": (100.0, rows, op_profile.Peaks(1e11, 2e11, 1e10, 1e9))})
        self.assertIn("| products of matrices | 50.0 % (80 %) |", lines)
        self.assertIn("| attention | 30.0 % (10 %) |", lines)
        self.assertEqual(sum(float(line.split("|")[2].split("%")[0]) for line in lines[2:]), 100)


class OfARun(unittest.TestCase):
    def test_a_step_is_covered_and_counts_what_the_estimate_does(self):
        flags = ["--training.seq_len", 256, *op_profile.DTYPES["fp32"]]
        length, rows, plain, estimate, blocks = op_profile.profile(flags, 1, 2)
        self.assertGreater(plain, 0)
        self.assertAlmostEqual(sum(row.time for row in rows) / 1e6 / length, 1, delta=1e-3)
        flops = sum(row.flops_model for row in rows) / estimate["flops_per_step"]["causal_half"]
        # the estimate ignores the diagonal of the mask and counts norms as matrices
        self.assertAlmostEqual(flops, 1, delta=0.01)
        self.assertGreater(sum(row.time for row in rows if row.has_formula and row.bytes), 0.5 * 1e6 * length)
        self.assertGreater(blocks[0], 100)
        self.assertGreater(blocks[1], 2**20)
        peaks = op_profile.Peaks(1e11, 2e11, 2e10, 1e9)
        self.assertGreater(len(op_profile.table(length, rows, peaks)), 12)

    def test_a_mixture_counts_what_the_estimate_does(self):
        flags = ["--model.name", "mixtral", "--training.seq_len", 64, *op_profile.DTYPES["fp32"]]
        _, rows, _, estimate = op_profile.recorded_step(flags, 1, 1)
        flops = sum(row.flops_model for row in rows)
        self.assertAlmostEqual(flops / estimate["flops_per_step"]["causal_half"], 1, delta=0.002)
        of_experts = sum(row.flops_model for row in rows if row.name.startswith("titan::grouped_mm"))
        self.assertGreater(of_experts / flops, 0.6)


if __name__ == "__main__":
    harness.main()
