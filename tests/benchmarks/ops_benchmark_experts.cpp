// Experts of a mixture: their forward and backward compared with a loop over experts, their
// products compared with one ATen product per expert, and the whole block, which moe_block.py
// compares with that of transformers.
#include <memory>

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/zeros_like.h>
#include <titan/nn/moe.h>
#include <titan/ops/grouped_linear.h>
#include <titan/ops/swiglu.h>
#include <titan/ops/token_rows.h>

#include "ops_benchmark.h"

namespace titan::benchmarks {
namespace {

constexpr int64_t kDim = 256;

struct ExpertShape {
  int64_t experts, top_k, hidden, tokens;
};

std::string suffix_of(at::ScalarType type) {
  return type == at::kFloat ? "" : type == at::kDouble ? "_double" : "_bf16";
}

/// x, w1, w2, w3 and weights (tokens, top_k) -> the weighted outputs of the experts of each token,
/// compared with a loop over experts that gathers their tokens and adds their outputs, as
/// transformers does.
std::vector<Case> chosen_expert_cases() {
  using namespace titan::ops;  // NOLINT: names of the functions that are measured
  std::vector<Case> out;
  for (const ExpertShape& s : {ExpertShape{8, 2, 512, 4096}, ExpertShape{64, 8, 128, 4096}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
      const auto precise = c10::promoteTypes(type, at::kFloat);
      const auto make = [&](at::IntArrayRef shape, double scale) {
        return (at::randn(shape) * scale).to(type).requires_grad_();
      };
      const Tensors inputs = {make({s.tokens, kDim}, 1), make({s.experts, s.hidden, kDim}, 0.05),
                              make({s.experts, kDim, s.hidden}, 0.05),
                              make({s.experts, s.hidden, kDim}, 0.05),
                              at::rand({s.tokens, s.top_k}).to(precise).requires_grad_()};
      const Tensor chosen =
          at::rand({s.tokens, s.experts}).argsort(int64_t{-1}, false).narrow(1, 0, s.top_k);
      const Function grouped = [chosen, s](const Tensors& in) -> Tensors {
        const Tensor flat = chosen.flatten(), order = flat.argsort(/*stable=*/true, 0, false);
        const Tensor counts = flat.bincount({}, s.experts);
        const at::IntArrayRef rows(counts.const_data_ptr<int64_t>(),
                                   static_cast<size_t>(s.experts));
        const Tensor x = rows_of_slots(in[0], order);
        const Tensor gate = grouped_linear(x, in[1], rows), up = grouped_linear(x, in[3], rows);
        const Tensor y = grouped_linear(swiglu(gate, up), in[2], rows);
        return {sum_of_slots(in_order_of_slots(y, order), in[4])};
      };
      const Function loop = [chosen, s](const Tensors& in) -> Tensors {
        Tensor y = at::zeros_like(in[0]);
        for (int64_t e = 0; e < s.experts; ++e) {
          const Tensors at = chosen.eq(e).nonzero_numpy();
          const Tensor x = in[0].index({at[0]});
          const Tensor hidden = at::silu(at::linear(x, in[1][e])) * at::linear(x, in[3][e]);
          const Tensor made =
              at::linear(hidden, in[2][e]) * in[4].index({at[0], at[1]}).unsqueeze(1);
          y = y.index_add(0, at[0], made.to(y.scalar_type()));
        }
        return {y};
      };
      out.push_back({"experts_" + std::to_string(s.top_k) + "_of_" + std::to_string(s.experts) +
                         suffix_of(type),
                     inputs, grouped, loop});
    }
  return out;
}

struct GroupedShape {
  int64_t groups, out, rows;
  at::ScalarType type;
};

/// x, weight (G, out, in) and the gradient of the result -> the three products of a layer of
/// experts. A group has between half and one and a half times the mean number of rows.
std::vector<Case> grouped_cases() {
  using Operation = Tensor(const Tensor&, const Tensor&, at::IntArrayRef);
  static const auto find = [](const char* name) {
    return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Operation>();
  };
  static const auto product = find("titan::grouped_mm"),
                    weight_grad = find("titan::grouped_mm_weight_grad");
  std::vector<Case> out;
  for (const GroupedShape& s :
       {GroupedShape{8, 512, 8192, at::kFloat}, GroupedShape{64, 768, 4096, at::kFloat},
        GroupedShape{8, 512, 1024, at::kBFloat16}}) {
    std::vector<int64_t> rows;
    int64_t left = s.rows;
    for (int64_t group = 0; group < s.groups; ++group) {
      const int64_t mean = s.rows / s.groups;
      rows.push_back(group + 1 == s.groups ? left : mean * (2 + group % 2 * 4) / 4);
      left -= rows.back();
    }
    const Tensors inputs = {at::randn({s.rows, kDim}).to(s.type),
                            at::randn({s.groups, s.out, kDim}).to(s.type),
                            at::randn({s.rows, s.out}).to(s.type)};
    const Function grouped = [rows](const Tensors& in) -> Tensors {
      return {product.call(in[0], in[1].transpose(1, 2), rows), product.call(in[2], in[1], rows),
              weight_grad.call(in[2], in[0], rows)};
    };
    const Function loop = [rows](const Tensors& in) -> Tensors {
      const Tensors made = {at::empty_like(in[2]), at::empty_like(in[0]), at::zeros_like(in[1])};
      const auto groups = titan::ops::rows_of_groups(rows);
      const auto part = [](const Tensor& t, const titan::ops::GroupRows& of) {
        return t.narrow(0, of.first, of.count);
      };
      const auto multiply = [](Tensor out, const Tensor& a, const Tensor& b) {
        at::mm_out(out, a, b);
      };
      for (const auto& of : groups)
        multiply(part(made[0], of), part(in[0], of), in[1][of.group].t());
      for (const auto& of : groups) multiply(part(made[1], of), part(in[2], of), in[1][of.group]);
      for (const auto& of : groups)
        multiply(made[2][of.group], part(in[2], of).t(), part(in[0], of));
      return made;
    };
    out.push_back({"grouped_" + std::to_string(s.groups) + "x256x" + std::to_string(s.out) +
                       suffix_of(s.type),
                   inputs, grouped, loop});
  }
  return out;
}

/// The whole block with the same numbers as in moe_block.py for transformers: drawn in this order
/// from this seed.
std::vector<Case> block_cases() {
  std::vector<Case> out;
  for (const auto& [s, type] : {std::pair(ExpertShape{8, 2, 512, 4096}, at::kFloat),
                                {{64, 8, 768, 1024}, at::kFloat},
                                {{8, 2, 512, 512}, at::kBFloat16}}) {
    const nn::Init unused = nn::Init::constant(0);
    auto block =
        std::make_shared<nn::MixtureOfExperts>(nn::MoeOptions{.router = {.dim = kDim,
                                                                         .num_experts = s.experts,
                                                                         .top_k = s.top_k,
                                                                         .normalises = true,
                                                                         .init = unused},
                                                              .hidden_dim = s.hidden,
                                                              .gate_init = unused,
                                                              .output_init = unused});
    block->set_names("block");
    block->visit_parameters([type = type](nn::Parameter& p) {
      if (!p.is_materialized()) p.materialize(c10::kCPU, type, 1);
    });
    at::manual_seed(1);
    Tensors inputs = {at::randn({1, s.tokens, kDim}).to(type).requires_grad_()};
    const nn::FeedForwardWeights experts = block->experts().weights();
    for (nn::Parameter* p :
         {&block->router().gate().weight(), &experts.w1, &experts.w3, &experts.w2}) {
      const at::NoGradGuard no_grad;
      Tensor value = p->value();
      value.copy_(at::randn(value.sizes()) * 0.05);
      inputs.push_back(value);
    }
    out.push_back({"moe_block_" + std::to_string(s.experts) + suffix_of(type),
                   inputs,
                   [block](const Tensors& in) -> Tensors { return {(*block)(in[0], Batch())}; },
                   {}});
  }
  return out;
}

}  // namespace

std::vector<Case> expert_cases() {
  std::vector<Case> all = chosen_expert_cases();
  for (auto* more : {&grouped_cases, &block_cases})
    for (Case& c : more()) all.push_back(std::move(c));
  return all;
}

}  // namespace titan::benchmarks
