// A rank that copies its state from another rank continues bitwise like that rank.
#include "core/fault_tolerance/peer_state.h"

#include <memory>
#include <mutex>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <titan/optimizer.h>

#include "tests/plugins/registry.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

using dist::Group;
using dist::MeshShape;
using titan::testing::run_ranks;

/// Three weights under AdamW: one is empty on this rank, one has a narrower dtype.
struct Replica {
  explicit Replica(uint64_t seed, std::vector<int64_t> shape = {5, 3}) {
    add("wide", std::move(shape), at::kFloat, seed);
    add("narrow", {7}, at::kBFloat16, seed);
    add("none", {0, 4}, at::kFloat, seed);
    std::vector<Parameter*> all;
    for (const auto& parameter : parameters) all.push_back(parameter.get());
    optimizer = titan::testing::create<Optimizer>("AdamW", Value::map({{"lr", 0.05}}), {all});
  }

  void train(int first, int last) {
    at::NoGradGuard no_grad;
    for (int step = first; step <= last; ++step) {
      for (const auto& p : parameters)
        p->shard().mutable_grad() =
            at::sin(at::arange(p->shard().numel(), at::kFloat).view(p->shard().sizes()) *
                    (0.7 * step))
                .to(p->shard().scalar_type()) +
            p->shard() * 0.1;
      optimizer->step(1.0 / step);
    }
  }

  std::vector<StateTensor> state() {
    std::vector<StateTensor> all;
    for (const auto& p : parameters)
      all.push_back({p->name(), p->global_shape(), p->slice(), p->shard().detach(), {}});
    for (StateTensor& tensor : states_of(*optimizer)) all.push_back(std::move(tensor));
    return all;
  }

  std::vector<std::unique_ptr<Parameter>> parameters;
  std::unique_ptr<Optimizer> optimizer;

 private:
  void add(const std::string& name, std::vector<int64_t> shape, at::ScalarType dtype,
           uint64_t seed) {
    parameters.push_back(std::make_unique<Parameter>(std::move(shape), nn::Init::normal(0, 1)));
    parameters.back()->set_name(name);
    parameters.back()->materialize(c10::kCPU, dtype, seed);
  }
};

void expect_equal(const std::vector<StateTensor>& a, const std::vector<StateTensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  ASSERT_EQ(a.size(), 3u + 3 * 3);  // AdamW keeps two moments and a step count of each
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tensor.scalar_type(), b[i].tensor.scalar_type()) << a[i].name;
    EXPECT_TRUE(at::equal(a[i].tensor, b[i].tensor)) << a[i].name;
  }
}

TEST(PeerState, TheTakerGoesOnAsTheGiverDoes) {
  std::vector<StateTensor> of_rank[2];
  run_ranks(MeshShape{.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    const Group& group = mesh.group("dp_replicate");
    const int rank = group.rank();
    Replica replica(/*seed=*/static_cast<uint64_t>(rank));
    if (rank == 0) {
      replica.train(1, 3);
      give_state(replica.state(), Value::map({{"step", 3}, {"loss_scale", 0.1}}), group, 1,
                 c10::kCPU);
    } else {
      const Value numbers = take_state(replica.state(), group, 0, c10::kCPU);
      EXPECT_EQ(numbers.at("step").as_integer(), 3);
      EXPECT_EQ(numbers.at("loss_scale").as_number(), 0.1);
    }
    replica.train(4, 6);
    of_rank[rank] = replica.state();
    for (StateTensor& state : of_rank[rank]) state.tensor = state.tensor.clone();
  });
  expect_equal(of_rank[0], of_rank[1]);
}

TEST(PeerState, WhatDiffersIsListedOnBothAndChangesNothing) {
  run_ranks(MeshShape{.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    const Group& group = mesh.group("dp_replicate");
    Replica replica(1, group.rank() == 0 ? std::vector<int64_t>{5, 3} : std::vector<int64_t>{3, 5});
    std::vector<StateTensor> state = replica.state();
    if (group.rank() == 0) state.erase(state.begin() + 1);
    const at::Tensor before = replica.parameters[0]->shard().detach().clone();
    try {
      if (group.rank() == 0)
        give_state(state, Value::map(), group, 1, c10::kCPU);
      else
        take_state(state, group, 0, c10::kCPU);
      ADD_FAILURE() << "shapes differ";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::data);
      for (const char* text :
           {"\n  'wide' is Float [5, 3] at [0, 0] of [5, 3] there and Float [3, 5] ",
            "\n  'narrow' is missing there"})
        EXPECT_NE(e.message().find(text), std::string::npos) << e.message();
    }
    EXPECT_TRUE(at::equal(before, replica.parameters[0]->shard()));
  });
}

/// A backend that flips one bit when it sends "wide".
class Damaging final : public dist::Backend {
 public:
  explicit Damaging(const Group& group) : group_(group) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::shared_ptr<dist::Work> all_reduce(const at::Tensor&, dist::Reduce) override {
    return none();
  }
  std::shared_ptr<dist::Work> all_gather(const at::Tensor&, const at::Tensor&) override {
    return none();
  }
  std::shared_ptr<dist::Work> reduce_scatter(const at::Tensor&, const at::Tensor&,
                                             dist::Reduce) override {
    return none();
  }
  std::shared_ptr<dist::Work> all_to_all(const at::Tensor&, const at::Tensor&,
                                         const dist::RowSplits&) override {
    return none();
  }
  std::shared_ptr<dist::Work> broadcast(const at::Tensor&, int) override { return none(); }
  std::shared_ptr<dist::Work> send(const at::Tensor& tensor, int peer, int tag) override {
    at::Tensor sent = tensor.clone();
    if (sent.numel() == 60) sent.mutable_data_ptr<uint8_t>()[17] ^= 4;  // 5 x 3 floats
    group_.send(sent, peer, tag).wait();
    return nullptr;
  }
  std::shared_ptr<dist::Work> receive(const at::Tensor& tensor, int peer, int tag) override {
    group_.receive(tensor, peer, tag).wait();
    return nullptr;
  }
  std::shared_ptr<dist::Work> barrier() override { return none(); }
  void set_timeout(std::chrono::milliseconds) override {}

 private:
  static std::shared_ptr<dist::Work> none() { fail(ErrorKind::internal, "not used"); }
  const Group& group_;
};

TEST(PeerState, ATensorThatArrivesDamagedIsNotTakenOver) {
  run_ranks(MeshShape{.dp_replicate = 2}, [&](const dist::Mesh& mesh) {
    const Group& group = mesh.group("dp_replicate");
    const Group damaging("dp_replicate", std::make_shared<Damaging>(group));
    Replica replica(static_cast<uint64_t>(group.rank()));
    const at::Tensor before = replica.parameters[0]->shard().detach().clone();
    try {
      if (group.rank() == 0)
        give_state(replica.state(), Value::map(), damaging, 1, c10::kCPU);
      else
        take_state(replica.state(), group, 0, c10::kCPU);
      ADD_FAILURE() << "a bit was flipped";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::data);
      EXPECT_NE(e.message().find("'wide' arrived with another hash"), std::string::npos)
          << e.message();
      EXPECT_EQ(e.message().find("'narrow'"), std::string::npos) << e.message();
    }
    EXPECT_TRUE(at::equal(before, replica.parameters[0]->shard()));
    if (group.rank() == 0)  // the same again, without damage
      give_state(replica.state(), Value::map(), group, 1, c10::kCPU);
    else
      take_state(replica.state(), group, 0, c10::kCPU);
    if (group.rank() == 1) {
      EXPECT_FALSE(at::equal(before, replica.parameters[0]->shard()));
    }
  });
}

}  // namespace
}  // namespace titan::core
