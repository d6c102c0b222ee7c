// Bytes that the context plugin's attention sends and keeps, on real groups and on the meta device.
#include <map>
#include <memory>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "core/runtime/tensors/meta_memory.h"
#include "plugins/parallelism/context/context_parallel.h"
#include "tests/plugins/parallelism/context_fixture.h"
#include "tests/plugins/parallelism/tensor_fixture.h"

namespace titan::context_test {
namespace {

using core::MetaMemory;
using Operations = std::map<std::string, dist::Traffic>;

Operations traffic_of(const dist::Recorder& recorder) {
  Operations by_operation;
  for (const auto& [key, traffic] : recorder.traffic()) by_operation[key.second] = traffic;
  return by_operation;
}

/// Forward and backward once.
Operations expected_traffic(const ContextCase& c, const Shape& s, int64_t element_size) {
  const int64_t others = c.cp - 1;
  const int64_t elements = 2 * s.rows * s.kv_heads * (s.seq_len / c.cp) * s.head_dim;
  const int64_t message = elements * element_size,
                gradients = elements * std::max<int64_t>(4, element_size);
  if (c.method == RotateMethod::allgather)
    return {{"all_gather", {2, 2 * others * message}}, {"reduce_scatter", {1, others * gradients}}};
  return {{"send", {2 * others + c.cp, 2 * others * message + c.cp * gradients}},
          {"receive", {2 * others + c.cp, 0}}};
}

void expect_equal_traffic(const Operations& actual, const Operations& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [operation, traffic] : expected) {
    ASSERT_TRUE(actual.contains(operation)) << operation;
    EXPECT_EQ(actual.at(operation).calls, traffic.calls) << operation;
    EXPECT_EQ(actual.at(operation).bytes, traffic.bytes) << operation;
  }
}

constexpr Shape kShape{.rows = 2, .heads = 4, .kv_heads = 2, .seq_len = 48, .head_dim = 8};

TEST(ContextTraffic, IsWhatTheMethodSays) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Inputs in = random_inputs(kShape, 1).as(type);
    for (const ContextCase& c : all_cases({2, 3, 4})) {
      SCOPED_TRACE(c.text() + ", " + at::toString(type));
      testing::run_ranks({.cp = c.cp}, [&](const dist::Mesh& mesh) {
        run_rank(c, mesh.group("cp"), in);
        expect_equal_traffic(
            traffic_of(mesh.recorder()),
            expected_traffic(c, kShape, static_cast<int64_t>(c10::elementSize(type))));
        EXPECT_TRUE(mesh.recorder().in_flight().empty());
      });
    }
  }
}

TEST(ContextTraffic, IsTheSameOnMetaAndWithDocuments) {
  Inputs in = random_inputs(kShape, 2).as(at::kBFloat16);
  for (const Tensor& documents : {Tensor(), documents_from({{5, 6}, {30}}, kShape.seq_len)}) {
    in.documents = documents;
    for (const ContextCase& c : all_cases({2, 4, 8}))
      for (int rank = 0; rank < c.cp; ++rank) {
        SCOPED_TRACE(c.text() + ", rank " + std::to_string(rank));
        const auto recorder = std::make_shared<dist::Recorder>();
        const dist::Group group("cp", dist::make_fake_backend(rank, static_cast<int>(c.cp)),
                                recorder);
        const Results results = run_rank(c, group, in, c10::kMeta);
        for (const Tensor& result : results) {
          EXPECT_TRUE(result.is_meta());
          EXPECT_EQ(result.size(2), kShape.seq_len / c.cp);
          EXPECT_EQ(result.scalar_type(), at::kBFloat16);
        }
        expect_equal_traffic(traffic_of(*recorder), expected_traffic(c, kShape, 2));
      }
  }
}

TEST(ContextTraffic, TravelsWhileOtherKeysAreUsed) {
  for (const ContextCase& c : all_cases({4}))
    testing::run_ranks({.cp = c.cp}, [&](const dist::Mesh& mesh) {
      const auto exchange = context_parallel::make_exchange(c.method, mesh.group("cp"));
      const Tensor own = at::zeros({2, 1, 4, 1, 8});
      std::vector<size_t> forward, backward;  // messages in flight at each visit
      std::vector<int64_t> sources;
      exchange->forward(own, [&](int64_t source, const Tensor&) {
        sources.push_back(source);
        forward.push_back(mesh.recorder().in_flight().size());
      });
      exchange->backward(own, [&](int64_t, const Tensor&) {
        backward.push_back(mesh.recorder().in_flight().size());
        return [](const Tensor&) {};
      });
      const int64_t r = mesh.rank();
      EXPECT_EQ(sources, (std::vector<int64_t>{r, (r + 3) % 4, (r + 2) % 4, (r + 1) % 4}));
      const bool is_ring = c.method == RotateMethod::alltoall;
      // with the ring, one send and one receive: keys and values, and one step later gradients
      EXPECT_EQ(forward,
                (is_ring ? std::vector<size_t>{2, 2, 2, 0} : std::vector<size_t>{1, 0, 0, 0}));
      EXPECT_EQ(backward,
                (is_ring ? std::vector<size_t>{2, 4, 4, 2} : std::vector<size_t>{1, 0, 0, 0}));
    });
}

TEST(ContextMemory, TheGraphKeepsQueriesKeysValuesAndTheOutputAlone) {
  for (const ContextCase& c : all_cases({4})) {
    const dist::Group group("cp", dist::make_fake_backend(1, 4));
    const auto kernel =
        context_parallel::make_kernel(c.cut(), 1, context_parallel::make_exchange(c.method, group));
    MetaMemory::start_counting();
    const int64_t n = 32;
    const auto on_meta = at::TensorOptions().dtype(at::kBFloat16).device(c10::kMeta);
    const auto leaf = [&](int64_t heads) {
      return at::empty({2, n, heads, 8}, on_meta).transpose(1, 2).requires_grad_();
    };
    const Tensor q = leaf(4), k_leaf = leaf(2), v_leaf = leaf(2);
    const int64_t before = MetaMemory::live().total();
    Tensor k = k_leaf.neg(), v = v_leaf.neg();  // only the attention may keep these alive
    const auto key_values = static_cast<int64_t>(k.nbytes() + v.nbytes());
    const Tensor out = kernel->attend(q, k, v, {});
    k = v = Tensor();
    const int64_t logsumexp = 2 * 4 * n * 4;
    EXPECT_EQ(MetaMemory::live().total() - before,
              key_values + static_cast<int64_t>(out.nbytes()) + logsumexp)
        << c.text();
  }
}

struct Activations {
  int64_t kept = 0;  // at the end of the forward pass
  int64_t peak = 0;  // over forward and backward
};

/// Activations of a deep and narrow stack over a long sequence. Its weights are negligible.
Activations activations_of(const ContextCase& c, Device& device) {
  constexpr int64_t kSeqLen = 8192;
  const dist::Mesh mesh(dist::MeshShape{.cp = c.cp}, 0, [&](const std::string&, const auto& ranks) {
    return dist::make_fake_backend(0, static_cast<int>(ranks.size()));
  });
  const Value options = Value::map({{"dim", 64},
                                    {"n_layers", 6},
                                    {"n_heads", 4},
                                    {"n_kv_heads", 2},
                                    {"multiple_of", 64},
                                    {"vocab_size", 256}});
  ModelPart part(testing::create<Model>("llama3", options, {.seq_len = kSeqLen})->build());
  const TransformContext context{mesh, device};
  context_parallel::ContextParallel parallel({.rotate_method = c.method}, context);
  parallel.apply(part, context);
  MetaMemory::start_counting();
  part.materialize(c10::kMeta, at::kFloat, 1);
  const Tensor ids =
      at::zeros({1, kSeqLen}, at::TensorOptions().dtype(at::kLong).device(c10::kMeta));
  const Batch batch = parallel.split({.tokens = ids, .labels = ids});
  part.forward(at::Tensor(), batch).backward();  // tables and gradients exist from now on
  const int64_t before = MetaMemory::live().total();
  MetaMemory::reset_peak();
  const Tensor loss = part.forward(at::Tensor(), batch);
  Activations result{.kept = MetaMemory::live().total() - before};
  loss.backward();
  result.peak = MetaMemory::peak().bytes.total() - before;
  return result;
}

TEST(ContextMemory, ActivationsFallAsOneByTheDegree) {
  const auto device = testing::make_cpu();
  const Activations whole = activations_of({.cp = 1}, *device);
  for (const auto method : {RotateMethod::allgather, RotateMethod::alltoall})
    for (const int64_t cp : {2, 4, 8}) {
      const ContextCase c{.cp = cp, .method = method};
      const Activations part = activations_of(c, *device);
      const double degree = static_cast<double>(cp);
      const double kept = degree * static_cast<double>(part.kept) / static_cast<double>(whole.kept);
      const double peak = degree * static_cast<double>(part.peak) / static_cast<double>(whole.peak);
      EXPECT_NEAR(kept, 1, 0.01) << c.text();
      // a gather briefly holds the keys of the whole sequence, of one layer
      EXPECT_NEAR(peak, 1, method == RotateMethod::alltoall ? 0.01 : 0.05) << c.text();
      RecordProperty(c.text(), "kept " + std::to_string(kept) + ", peak " + std::to_string(peak));
    }
}

}  // namespace
}  // namespace titan::context_test
