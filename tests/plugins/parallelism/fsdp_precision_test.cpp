// Mixed precision and gather formats of fsdp, compared with the whole model whose weights are cast
// beforehand, run on each rank's rows, with gradients summed in fp32.
#include "tests/plugins/parallelism/data_parallel_fixture.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <titan/nn/linear.h>

namespace titan {
namespace {

using namespace titan::testing;

class FsdpPrecision : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { open_plugins(); }
};

/// Sum over all ranks' microbatches of the whole model's gradients in `dtype`, accumulated in fp32:
/// first within each rank, then over the ranks.
std::vector<at::Tensor> expected_gradients(Replica& whole, const dist::Mesh& mesh,
                                           int64_t num_microbatches) {
  std::vector<at::Tensor> sums;
  for (int64_t rank = 0; rank < mesh.grid().batch(); ++rank) {
    std::vector<at::Tensor> of_rank;
    for (int64_t i = 0; i < num_microbatches; ++i) {
      whole.run_step({make_rows(rank * num_microbatches + i, 1)});
      size_t next = 0;
      for (const nn::Parameter* p : whole.part().parameters()) {
        const at::Tensor gradient = p->grad().to(at::kFloat);
        if (i == 0)
          of_rank.push_back(gradient.clone());
        else
          of_rank[next].add_(gradient);
        ++next;
      }
      whole.part().clear_gradients();
    }
    for (size_t i = 0; i < of_rank.size(); ++i) {
      if (rank == 0)
        sums.push_back(of_rank[i]);
      else
        sums[i].add_(of_rank[i]);
    }
  }
  return sums;
}

/// Largest difference over all parameters, relative to each gradient's largest element.
double largest_error(Replica& sharded, const std::vector<at::Tensor>& expected) {
  double largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const nn::Parameter& p = *sharded.part().parameters()[i];
    EXPECT_EQ(p.grad().scalar_type(), at::kFloat) << p.name();
    largest =
        std::max(largest, relative_error(p.grad(), slice_of(expected[i], p.slice()), expected[i]));
  }
  return largest;
}

TEST_F(FsdpPrecision, ComputesInTheNarrowTypeAndSumsInTheWideOne) {
  for (const auto& [name, dtype] :
       {std::pair{"bfloat16", at::kBFloat16}, std::pair{"float16", at::kHalf}})
    for (const int64_t num_ranks : {1, 2, 4})
      run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
        Replica sharded(llama_layers(false), mesh, "fsdp",
                        Value::map({{"param_dtype", name}, {"reduce_dtype", "float32"}}),
                        at::kFloat);
        Replica whole(llama_layers(false), mesh, "", Value::map(), dtype);
        for (const nn::Parameter* p : sharded.part().parameters()) {
          EXPECT_EQ(p->shard().scalar_type(), at::kFloat);
          EXPECT_EQ(p->value().scalar_type(), dtype);
        }
        sharded.run_step(own_microbatches(mesh, 1, 2));
        const double error = largest_error(sharded, expected_gradients(whole, mesh, 2));
        // the sum of two is the same in either order
        EXPECT_LE(error, num_ranks <= 2 ? 0.0 : 1e-6) << name << ", " << num_ranks << " ranks";
      });
}

TEST_F(FsdpPrecision, SumsInTheNarrowTypeWhenTold) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    Replica sharded(llama_layers(false), mesh, "fsdp",
                    Value::map({{"param_dtype", "bfloat16"}, {"reduce_dtype", "bfloat16"}}),
                    at::kFloat);
    Replica whole(llama_layers(false), mesh, "", Value::map(), at::kBFloat16);
    sharded.run_step(own_microbatches(mesh, 1, 1));
    std::vector<at::Tensor> expected = expected_gradients(whole, mesh, 1);
    for (at::Tensor& gradient : expected) gradient = gradient.to(at::kBFloat16).to(at::kFloat);
    EXPECT_EQ(largest_error(sharded, expected), 0);
  });
}

/// A layer that returns fp32 for any input.
class Widen final : public nn::Module {
 protected:
  at::Tensor forward(const at::Tensor& x, const Batch& batch) override {
    return (x.defined() ? x : batch.tokens).to(at::kFloat);
  }
};

TEST_F(FsdpPrecision, CastsTheInputsOfEachUnit) {
  run_ranks({.dp_shard = 2}, [&](const dist::Mesh& mesh) {
    std::vector<Layer> layers;
    const auto add_linear = [&](const std::string& name, int64_t in, int64_t out) {
      layers.push_back({name,
                        std::make_unique<nn::Linear>(in, out, nn::WeightLayout::replicated,
                                                     nn::Init::normal(0, 1)),
                        name});
    };
    layers.push_back({"start", std::make_unique<Widen>(), "start"});
    add_linear("first", kSeqLen, 4);
    layers.push_back({"middle", std::make_unique<Widen>(), "middle"});
    add_linear("second", 4, 1);
    Replica sharded(std::move(layers), mesh, "fsdp", Value::map({{"param_dtype", "bfloat16"}}),
                    at::kFloat);
    const at::Tensor y = sharded.part().forward(at::Tensor(), make_rows(mesh.rank(), 1));
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);  // outputs are not cast
    y.sum().backward();
    sharded.reducer().finish_gradients();
    for (const nn::Parameter* p : sharded.part().parameters())
      EXPECT_EQ(p->grad().scalar_type(), at::kFloat) << p->name();
  });
}

/// Weights are sent in bf16 although the computation is in fp32.
class HalfWire final : public nn::GatherTransform {
 public:
  at::ScalarType wire_dtype() const override { return at::kBFloat16; }
  at::Tensor encode(const at::Tensor& shard) override { return shard.to(at::kBFloat16); }
  void decode(const at::Tensor& wire, const at::Tensor& value) override {
    at::Tensor(value).copy_(wire);
  }
};

TEST_F(FsdpPrecision, GathersThroughAParametersOwnFormat) {
  const auto is_narrow = [](const nn::Parameter& p) { return p.global_shape().size() == 2; };
  for (const int64_t num_ranks : {2, 3})
    run_ranks({.dp_shard = num_ranks}, [&](const dist::Mesh& mesh) {
      Replica sharded(llama_layers(true), mesh, "fsdp", Value::map(), at::kFloat,
                      [&](ModelPart& part) {
                        for (nn::Parameter* p : part.parameters())
                          if (is_narrow(*p))
                            p->set_gather_transform("half", std::make_shared<HalfWire>());
                      });
      Replica whole(llama_layers(true), mesh, "", Value::map(), at::kFloat);
      {
        at::NoGradGuard no_grad;
        for (nn::Parameter* p : whole.part().parameters())
          if (is_narrow(*p)) at::Tensor(p->value()).copy_(p->value().to(at::kBFloat16));
      }
      sharded.run_step(own_microbatches(mesh, 1, 1));
      EXPECT_LE(largest_error(sharded, expected_gradients(whole, mesh, 1)),
                num_ranks == 2 ? 0.0 : 1e-6);
    });
}

}  // namespace
}  // namespace titan
