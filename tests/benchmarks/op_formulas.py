"""FLOPs and bytes of the operations of a training step, from the shapes in a profile. Used by op_profile.py.

A multiplication and an addition are two FLOPs. Bytes are the minimum that an operation must move: each operand read once, each
result written once. Attention is causal and counts the visible pairs, S (S + 1) / 2 per head: two products forward, five
backward (scores are recomputed), as Dao (2023, FlashAttention-2, section 4.1) counts them. Costs of element-wise
arithmetic are their bytes: their few FLOPs never bound them. Experts of a mixture count their actual rows.
"""

import dataclasses
import math
import re

ELEMENT_BYTES = {"float": 4, "double": 8, "long int": 8, "int": 4, "c10::BFloat16": 2, "c10::Half": 2, "bool": 1,
                 "unsigned char": 1, "signed char": 1, "c10::Float8_e4m3fn": 1, "c10::Float8_e5m2": 1}


@dataclasses.dataclass
class Cost:
    """The cost of one call. `flops_model` excludes recomputation, as estimates of a model do."""
    flops: float
    bytes: float
    flops_model: float
    exponentials: float = 0.0


class Call:
    """The tensors of one call, from the profile."""

    def __init__(self, arguments):
        self.dims = arguments.get("Input Dims", [])
        self.types = arguments.get("Input type", [])
        self.concrete = arguments.get("Concrete Inputs", [])

    def size(self, i):
        """Elements of operand i; for a list of tensors, of all of them."""
        dims = self.dims[i]
        if dims and isinstance(dims[0], list):
            return sum(math.prod(one) for one in dims)
        return math.prod(dims)

    def element(self, i):
        return ELEMENT_BYTES.get(self.types[i], 0)

    def bytes(self, *operands):
        return sum(self.size(i) * self.element(i) for i in operands)

    def tensors(self):
        return [i for i, kind in enumerate(self.types) if kind in ELEMENT_BYTES]

    def broadcast_bytes(self, *operands):
        """Bytes of a result as large as the largest operand."""
        return max(self.bytes(i) for i in operands)


def product(call, a, b, add=False):
    """(M, K) x (K, N), or a batch of them; `add`: onto operand 0, which is read and written."""
    rows, inner = call.dims[a][-2:]
    columns = call.dims[b][-1]
    batch = math.prod(call.dims[a][:-2])
    flops = 2.0 * batch * rows * inner * columns
    return flops, call.bytes(a, b) + (2 if add else 1) * batch * rows * columns * call.element(a)


def linear(call):
    columns, inner = call.dims[1]
    rows = call.size(0) // inner
    return 2.0 * rows * inner * columns, call.bytes(0, 1) + rows * columns * call.element(0)


def rows_of_groups(call):
    """Rows of each expert of a mixture; None for more than 30 experts, for which profiles omit them."""
    return [int(count) for count in re.findall(r"\d+", call.concrete[2])] or None


def grouped_product(call):
    """The rows of each group times its matrix of (G, inner, columns); a matrix without rows is not read."""
    groups, inner, columns = call.dims[1]
    rows = call.dims[0][0]
    told = rows_of_groups(call)
    met = sum(count > 0 for count in told) if told else min(groups, rows)
    return 2.0 * rows * inner * columns, call.bytes(0) + call.bytes(1) * met / groups + rows * columns * call.element(0)


def grouped_weight_gradient(call):
    """(G, columns of the first operand, columns of the second); only the bytes read if G is unknown."""
    rows, outer = call.dims[0]
    inner = call.dims[1][1]
    groups = len(rows_of_groups(call) or [])
    return 2.0 * rows * outer * inner, call.bytes(0, 1) + groups * outer * inner * call.element(0)


def attention_pairs(call, q, k):
    """Visible pairs of tokens in all heads of all rows. Windows and chunks count as rows of their length, causal or with all keys."""
    batch, heads, length, _ = call.dims[q]
    keys = call.dims[k][2]
    causal = "True" in call.concrete
    return batch * heads * (length * (length + 1) / 2 if causal and keys == length else length * keys)


def attention_forward(call):
    width, value_width = call.dims[1][3], call.dims[2][3]
    queries = math.prod(call.dims[0][:3])
    return (2 * attention_pairs(call, 0, 1) * (width + value_width),
            call.bytes(0, 1, 2) + queries * value_width * call.element(0) + 4 * queries)


def attention_backward(call):
    """Products for scores, their gradients and those of queries and keys have the width of keys; two have that of values."""
    width, value_width = call.dims[2][3], call.dims[3][3]
    pairs = attention_pairs(call, 1, 2)
    read = call.bytes(0, 1, 2, 3, 4, 5)
    return (2 * pairs * (3 * width + 2 * value_width), read + call.bytes(1, 2, 3),
            4 * pairs * (width + value_width))


def linear_cross_entropy(call):
    """Logits, and if requested the gradients of the input and of the weight."""
    rows, width = call.dims[0]
    words = call.dims[1][0]
    wanted = call.concrete[3:].count("True")
    once = 2.0 * rows * width * words
    return once * (1 + wanted), call.bytes(0, 1, 2) * (1 if not wanted else 2)


def gather(call, table, index):
    width = call.dims[table][-1]
    return 0.0, 2 * call.size(index) * width * call.element(table) + call.bytes(index)


def embedding_backward(call):
    rows = int(call.concrete[2])
    return 0.0, call.bytes(0, 1) + rows * call.dims[0][-1] * call.element(0)


def operands(*read, written=()):
    """Reads each of `read`, writes results as large as each of `written`."""
    return lambda call: (0.0, call.bytes(*read) + call.bytes(*written))


def elementwise(call):
    """Reads its tensors, writes one as large as the largest."""
    tensors = call.tensors()
    return 0.0, call.bytes(*tensors) + call.broadcast_bytes(*tensors)


def in_place(call):
    tensors = call.tensors()
    return 0.0, call.bytes(*tensors) + call.bytes(0)


def reduction(call):
    return 0.0, call.bytes(*call.tensors())


# The first pattern that matches the whole name is used.
FORMULAS = [
    (r"aten::(mm|bmm)", lambda call: product(call, 0, 1)),
    (r"aten::(addmm|baddbmm)_?", lambda call: product(call, 1, 2, add=True)),
    (r"aten::linear|titan::linear", linear),
    (r"titan::grouped_mm", grouped_product),
    (r"titan::grouped_mm_weight_grad", grouped_weight_gradient),
    (r"titan::attention_forward", attention_forward),
    (r"titan::attention_backward", attention_backward),
    (r"titan::linear_cross_entropy", linear_cross_entropy),
    (r"titan::rms_norm_forward", operands(0, 1, written=(0,))),
    (r"titan::rms_norm_backward", operands(0, 1, 2, 3, written=(1, 2))),
    (r"titan::swiglu_forward", operands(0, 1, written=(0,))),
    (r"titan::swiglu_backward", operands(0, 1, 2, written=(1, 2))),
    (r"titan::rope_rotate", operands(0, 1, 2, 3, written=(0, 1))),
    (r"titan::embedding_forward", lambda call: gather(call, 0, 1)),
    (r"titan::embedding_backward", embedding_backward),
    (r"aten::(index_select|embedding)", lambda call: gather(call, 0, 2 if len(call.dims[1]) == 0 else 1)),
    (r"aten::copy_", lambda call: (0.0, call.bytes(1) + call.bytes(0))),
    (r"aten::(zero_|fill_)", lambda call: (0.0, call.bytes(0))),
    (r"aten::(add|mul|sub|div|silu|neg|pow|exp|rsqrt|sqrt|cat|where|sigmoid|square|clamp|maximum)", elementwise),
    (r"aten::(add|mul|sub|div|clamp|pow|sqrt)_", in_place),
    (r"aten::(sum|mean|linalg_vector_norm|max|min|amax|argmax|_foreach_norm)", reduction),
]

# Bytes per parameter of updates whose operands are lists; profiles omit the shapes of long lists. fp32: reads
# parameter, gradient and two states, writes all except the gradient.
PER_PARAMETER = {r"aten::_fused_adamw?_": 28}


def exponentials(name, call):
    """Exponentials of an operation's softmax: one per pair of tokens, or per token and vocabulary entry; the backward recomputes them."""
    if name == "titan::attention_forward":
        return attention_pairs(call, 0, 1)
    if name == "titan::attention_backward":
        return attention_pairs(call, 1, 2)
    if name == "titan::linear_cross_entropy":
        return float(call.dims[0][0] * call.dims[1][0])
    return 0.0


def cost(name, arguments, num_parameters=0):
    """The cost of one call, or None where no formula is known."""
    call = Call(arguments)
    for pattern, bytes_each in PER_PARAMETER.items():
        if re.fullmatch(pattern, name):
            return Cost(0.0, num_parameters * bytes_each, 0.0)
    for pattern, formula in FORMULAS:
        if re.fullmatch(pattern, name):
            try:
                found = formula(call)
            except (IndexError, ValueError):  # another overload of the operation, with other operands
                return None
            return Cost(found[0], found[1], found[2] if len(found) > 2 else found[0], exponentials(name, call))
    return None


def operand_bytes(arguments):
    """Bytes of all tensor operands, each once: the minimum that an operation without formula reads, without results."""
    call = Call(arguments)
    return call.bytes(*call.tensors())
