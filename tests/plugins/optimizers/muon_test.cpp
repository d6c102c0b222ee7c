// Muon: its update of a matrix, the weights that it leaves to AdamW, and the same update for
// sharded matrices as on one rank. tests/referee/optimizer_referee.py compares many steps.
#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/sin.h>

#include "tests/plugins/error_of.h"
#include "tests/plugins/optimizers/optimizer_fixture.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan {
namespace {

using namespace titan::testing;

using Shape = std::vector<int64_t>;

std::unique_ptr<Parameter> made(const std::string& name, const Shape& shape) {
  auto p = std::make_unique<Parameter>(shape, nn::Init::normal(0, 0.1));
  p->set_name(name);
  return p;
}

/// Made-up values, different for all elements and steps.
at::Tensor whole_gradient(const Parameter& p, int step) {
  const int64_t count = p.global_num_elements();
  const at::Tensor place = at::arange(count).to(at::kFloat) + static_cast<double>(p.name().size());
  return at::sin(place * (1.7 + 0.3 * step) + place * place * 0.01).view(p.global_shape());
}

void take_steps(Optimizer& muon, const std::vector<Parameter*>& parameters, int first, int count) {
  for (int step = first; step < first + count; ++step) {
    for (Parameter* p : parameters) {
      at::Tensor gradient = whole_gradient(*p, step);
      for (size_t dim = 0; dim < p->slice().sizes.size(); ++dim)
        gradient = gradient.narrow(static_cast<int64_t>(dim), p->slice().offsets[dim],
                                   p->slice().sizes[dim]);
      p->shard().mutable_grad() = gradient.contiguous();
    }
    muon.step(1.0 / (1 + step));
  }
}

TEST(Muon, MovesAMatrixByANearlyOrthogonalOne) {
  for (const char* dtype : {"bfloat16", "float32"})
    for (const Shape& shape : {Shape{12, 20}, Shape{20, 12}, Shape{24, 5}}) {
      const auto p = made("w", shape);
      p->materialize(c10::kCPU, at::kFloat, 5);
      const at::Tensor before = p->shard().detach().clone();
      const auto muon =
          optimizer("Muon", {{"lr", 1.0}, {"weight_decay", 0.0}, {"ns_dtype", dtype}}, {p.get()});
      take_steps(*muon, {p.get()}, 0, 1);
      const at::Tensor moved = before - p->shard().detach();
      const double scale = std::sqrt(std::max(1.0, double(shape[0]) / double(shape[1])));
      const at::Tensor values = at::linalg_svdvals(moved) / scale;
      EXPECT_GT(values.min().item<double>(), 0.3) << dtype << " " << at::IntArrayRef(shape);
      EXPECT_LT(values.max().item<double>(), 1.6) << dtype << " " << at::IntArrayRef(shape);
    }
}

TEST(Muon, MovesTallMatricesFurtherByTheRuleOfItsOption) {
  const auto moved = [](const Shape& shape, const char* adjust_lr) {
    const auto p = made("w", shape);
    p->materialize(c10::kCPU, at::kFloat, 5);
    const at::Tensor before = p->shard().detach().clone();
    const auto muon = optimizer(
        "Muon", {{"lr", 1.0}, {"weight_decay", 0.0}, {"adjust_lr", adjust_lr}}, {p.get()});
    const at::Tensor gradient = at::sin(at::arange(64).to(at::kFloat)).view({16, 4});
    p->shard().mutable_grad() = (shape[0] == 16 ? gradient : gradient.t()).contiguous();
    muon->step(1);
    const at::Tensor difference = p->shard().detach() - before;
    return shape[0] == 16 ? difference : difference.t();
  };
  const at::Tensor tall = moved({16, 4}, "original"), wide = moved({4, 16}, "original");
  EXPECT_TRUE(at::allclose(tall, 2 * wide, 1e-4, 1e-5)) << "sqrt(16 / 4) and 1";
  for (const Shape& shape : {Shape{16, 4}, Shape{4, 16}})
    EXPECT_TRUE(at::allclose(moved(shape, "match_rms_adamw"), 0.8 * wide, 1e-4, 1e-5))
        << "0.2 sqrt(16) " << at::IntArrayRef(shape);
}

TEST(Muon, LeavesEmbeddingHeadNormsAndAllThatIsNoMatrixToAdamW) {
  std::vector<std::unique_ptr<Parameter>> parameters;
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Shape>>{{"tok_embeddings.weight", {6, 4}},
                                                  {"layers.0.attention_norm.weight", {4}},
                                                  {"layers.0.attention.wq.weight", {4, 4}},
                                                  {"layers.0.bias", {4}},
                                                  {"output.weight", {6, 4}}})
    parameters.push_back(made(name, shape));
  std::vector<Parameter*> all;
  for (const auto& p : parameters) {
    p->materialize(c10::kCPU, at::kFloat, 1);
    all.push_back(p.get());
  }
  const auto muon = optimizer("Muon", {}, all);
  std::map<std::string, int> kinds;
  for (const auto& [name, state] : state_of(*muon)) ++kinds[name];
  EXPECT_EQ(kinds.size(), 1 + 4 * 3u);
  EXPECT_EQ(kinds.count("layers.0.attention.wq.weight/momentum_buffer"), 1u);
  for (const char* name : {"tok_embeddings.weight", "layers.0.attention_norm.weight",
                           "layers.0.bias", "output.weight"})
    EXPECT_EQ(kinds.count(std::string(name) + "/exp_avg_sq"), 1u) << name;

  const auto other =
      optimizer("Muon", {{"adamw_patterns", Value::list({"*.wq.*"})}}, {all[0], all[2]});
  EXPECT_EQ(state_of(*other).count("tok_embeddings.weight/momentum_buffer"), 1u);
  EXPECT_EQ(state_of(*other).count("layers.0.attention.wq.weight/exp_avg"), 1u);
}

struct Held {
  nn::Slice slice;
  at::Tensor weight;
  std::map<std::string, at::Tensor> state;
};

/// All kinds of weights of a model. `cut`: 'c' sharded by tp along dim 0, 'r' by tp along dim 1, '
/// ' only by data parallelism, '-' not sharded.
struct Weight {
  std::string name;
  Shape shape;
  char cut;
};
const std::vector<Weight> kWeights = {
    {"tok_embeddings.weight", {7, 6}, 'c'},  {"layers.0.wq.weight", {10, 6}, 'c'},
    {"layers.0.wo.weight", {6, 10}, 'r'},    {"layers.1.wq.weight", {10, 6}, 'c'},
    {"layers.1.wo.weight", {6, 10}, 'r'},    {"layers.2.wq.weight", {10, 6}, 'c'},
    {"layers.0.router.weight", {3, 6}, ' '}, {"layers.0.norm.weight", {6}, ' '},
    {"layers.0.whole.weight", {5, 9}, '-'}};

std::map<std::string, Held> run_muon(const dist::Mesh& mesh, const std::string& ns_dtype) {
  std::vector<std::unique_ptr<Parameter>> parameters;
  std::vector<Parameter*> all;
  for (const Weight& weight : kWeights) {
    auto p = made(weight.name, weight.shape);
    if (weight.cut == 'c' || weight.cut == 'r')
      p->shard_over(weight.cut == 'c' ? 0 : 1, mesh.group("tp"));
    if (weight.cut != '-') p->shard_over(0, mesh.group("fsdp"));
    p->materialize(c10::kCPU, at::kFloat, 5);
    all.push_back(p.get());
    parameters.push_back(std::move(p));
  }
  const auto muon = create<Optimizer>("Muon", Value::map({{"lr", 0.02}, {"ns_dtype", ns_dtype}}),
                                      {.parameters = all, .mesh = &mesh});
  take_steps(*muon, all, 0, 4);
  std::map<std::string, Held> held;
  for (const Parameter* p : all)
    held[p->name()] = {.slice = p->slice(), .weight = p->shard().detach().clone()};
  for (auto& [name, state] : state_of(*muon)) {
    const size_t slash = name.find('/');
    held[name.substr(0, slash)].state[name.substr(slash + 1)] = state;
  }
  return held;
}

at::Tensor part_of(at::Tensor whole, const nn::Slice& slice) {
  for (size_t dim = 0; dim < slice.sizes.size() && whole.dim() > 0; ++dim)
    whole = whole.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
  return whole;
}

/// Weight and states are slices of the whole's. AdamW's may differ by rounding, since its kernel
/// may round the end of a tensor differently than its middle.
void expect_part(const Held& held, const Held& whole, const std::string& what) {
  const bool is_matrix = held.state.contains("momentum_buffer");
  const auto equal = [&](const at::Tensor& found, const at::Tensor& expected) {
    const at::Tensor part = part_of(expected, held.slice);
    return is_matrix ? at::equal(found, part) : at::allclose(found, part, 1e-6, 1e-12);
  };
  EXPECT_TRUE(equal(held.weight, whole.weight)) << what;
  ASSERT_EQ(held.state.size(), whole.state.size()) << what;
  for (const auto& [kind, state] : held.state)
    EXPECT_TRUE(equal(state, whole.state.at(kind))) << what << ": " << kind;
}

TEST(Muon, UpdatesCutMatricesAsOneRankWould) {
  at::set_num_threads(1);
  for (const std::string ns_dtype : {"bfloat16", "float32"}) {
    const std::map<std::string, Held> alone = run_muon(dist::Mesh(), ns_dtype);
    for (const dist::MeshShape& shape :
         {dist::MeshShape{.dp_shard = 2}, dist::MeshShape{.tp = 2},
          dist::MeshShape{.dp_shard = 2, .tp = 2}, dist::MeshShape{.dp_shard = 4},
          dist::MeshShape{.dp_replicate = 2, .dp_shard = 2}})
      run_ranks(shape, [&](const dist::Mesh& mesh) {
        const std::string layout = " in " + ns_dtype + " on fsdp " +
                                   std::to_string(shape.dp_shard) + ", tp " +
                                   std::to_string(shape.tp);
        for (const auto& [name, held] : run_muon(mesh, ns_dtype))
          expect_part(held, alone.at(name), name + layout);
      });
  }
}

TEST(Muon, AllocatesOnTheMetaDeviceWhatItWouldElsewhere) {
  const dist::MeshShape shape{.dp_shard = 2, .tp = 2};
  const dist::Mesh mesh(shape, 1, [](const std::string&, const std::vector<int>& ranks) {
    return dist::make_fake_backend(
        static_cast<int>(std::find(ranks.begin(), ranks.end(), 1) - ranks.begin()),
        static_cast<int>(ranks.size()));
  });
  Parameter p({10, 6}, nn::Init::constant(0));
  p.set_name("w");
  p.shard_over(1, mesh.group("tp"));
  p.shard_over(0, mesh.group("fsdp"));
  p.materialize(c10::kMeta, at::kFloat, 1);
  const auto muon = create<Optimizer>("Muon", Value::map(), {.parameters = {&p}, .mesh = &mesh});
  p.shard().mutable_grad() = at::empty_like(p.shard().detach());
  muon->step(1);
  const auto state = state_of(*muon);
  EXPECT_TRUE(state.at("w/momentum_buffer").is_meta());
  EXPECT_EQ(state.at("w/momentum_buffer").sizes(), (at::IntArrayRef{5, 3}));
}

TEST(Muon, ResumesExactlyFromItsState) {
  const auto straight = made("w", {6, 9}), resumed = made("w", {6, 9});
  for (Parameter* p : {straight.get(), resumed.get()}) p->materialize(c10::kCPU, at::kFloat, 2);
  take_steps(*optimizer("Muon", {}, {straight.get()}), {straight.get()}, 0, 6);
  const auto before = optimizer("Muon", {}, {resumed.get()});
  take_steps(*before, {resumed.get()}, 0, 3);
  const auto after = optimizer("Muon", {}, {resumed.get()});
  set_state(*after, state_of(*before));
  take_steps(*after, {resumed.get()}, 3, 3);
  EXPECT_TRUE(at::equal(straight->shard(), resumed->shard()));
}

TEST(Muon, RefusesAPolynomialOfAnotherDegree) {
  const Error error = error_of([] {
    optimizer("Muon", {{"ns_coefficients", Value::list({1.5, -0.5})}}, {});
  });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.what(),
                    "optimizer.ns_coefficients must hold the 3 coefficients of "
                    "a x + b x^3 + c x^5, got 2 of them"));
}

}  // namespace
}  // namespace titan
