// A group whose members join and leave, over real gloo groups of threads.
#include <titan/fault_tolerance/changing_group.h>

#include <array>
#include <functional>
#include <future>
#include <latch>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sin.h>
#include <gtest/gtest.h>
#include <titan/error.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "tests/sdk/dist/thread_ranks.h"

namespace titan::dist {
namespace {

using OnFailure = ChangingGroup::OnFailure;

/// Replicas that find each other through one store.
class ChangingGroupTest : public ::testing::Test {
 protected:
  ChangingGroupTest() { ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1); }

  std::unique_ptr<ChangingGroup> make(OnFailure on_failure = OnFailure::throws) {
    const auto connect = [this](const Membership& members) {
      return device_->connect({.store = *store_,
                               .name = "replicas." + members.epoch,
                               .rank = members.rank,
                               .size = members.size,
                               .timeout = std::chrono::minutes(1),
                               .is_one_host = true});
    };
    return std::make_unique<ChangingGroup>("replicas", connect, on_failure);
  }

  /// Runs `body` of each replica on its own thread; throws the first error.
  static void run(int num_replicas, const std::function<void(int replica)>& body) {
    std::vector<std::future<void>> running;
    for (int replica = 0; replica < num_replicas; ++replica)
      running.push_back(std::async(std::launch::async, body, replica));
    for (auto& one : running) one.wait();
    for (auto& one : running) one.get();
  }

  c10::intrusive_ptr<c10d::Store> store_ = c10::make_intrusive<c10d::HashStore>();
  std::unique_ptr<Device> device_ = testing::make_cpu();
};

TEST_F(ChangingGroupTest, IsOneGroupForAllWhoComeAndGo) {
  run(3, [&](int replica) {
    const auto group = make();
    const Group copy = group->group();  // like a copy that a transform keeps
    const int64_t weight = int64_t{1} << replica;
    EXPECT_EQ(copy.size(), 1);
    EXPECT_EQ(copy.all_reduce(weight, Reduce::sum), weight);

    group->change({"a", replica, 3});
    EXPECT_EQ(copy.size(), 3);
    EXPECT_EQ(copy.all_reduce(weight, Reduce::sum), 7);
    group->change({"a", replica, 3});  // unchanged members: needs no other replica
    EXPECT_EQ(copy.all_reduce(weight, Reduce::sum), 7);

    if (replica == 1) {
      group->change({"alone", 0, 1});
      EXPECT_EQ(copy.all_reduce(weight, Reduce::sum), 2);
    } else {
      group->change({"b", replica / 2, 2});
      EXPECT_EQ(copy.rank(), replica / 2);
      EXPECT_EQ(copy.all_reduce(weight, Reduce::sum), 5);
    }

    group->change({"c", 2 - replica, 3});  // replica 1 returns, in another order
    at::Tensor of_all = at::empty({3}, at::kLong);
    copy.all_gather(of_all, at::full({1}, weight, at::kLong)).wait();
    EXPECT_EQ(of_all[0].item<int64_t>(), 4);
    EXPECT_EQ(of_all[2].item<int64_t>(), 1);
  });
}

/// Collectives over the replicas, on numbers that each computes from its index.
at::Tensor step(const Group& group, int replica) {
  at::Tensor gradient = at::sin(at::arange(1000, at::kDouble) * (1.0 + replica));
  group.all_reduce(gradient, Reduce::sum).wait();
  at::Tensor part = at::empty({1000}, at::kDouble),
             all = at::empty({1000 * group.size()}, at::kDouble);
  group.all_gather(all, gradient).wait();
  group.reduce_scatter(part, all, Reduce::sum).wait();
  return part;
}

TEST_F(ChangingGroupTest, RecordsThatAMemberIsGoneAndRepeatsTheStepWithoutIt) {
  std::latch all_met(3);
  std::array<at::Tensor, 2> repeated, alone;
  run(3, [&](int replica) {
    auto group = make(OnFailure::records);
    group->change({"a", replica, 3});
    all_met.arrive_and_wait();
    if (replica == 2) return group.reset();  // dies in the step
    step(group->group(), replica);           // no error: other ranks of the replica continue
    ASSERT_TRUE(group->failure().has_value()) << replica;
    EXPECT_FALSE(group->failure()->empty());
    const at::Tensor untouched = at::full({1}, 8.0, at::kDouble);
    group->group().all_reduce(untouched, Reduce::sum).wait();
    EXPECT_EQ(untouched.item<double>(), 8);  // this epoch's collectives do nothing
    EXPECT_THROW(group->change({"a", replica, 3}), Error);

    group->change({"b", replica, 2});
    EXPECT_FALSE(group->failure().has_value());
    repeated[static_cast<size_t>(replica)] = step(group->group(), replica);
    EXPECT_FALSE(group->failure().has_value()) << *group->failure();
  });
  run(2, [&](int replica) {
    const auto group = make();
    group->change({"undisturbed", replica, 2});
    alone[static_cast<size_t>(replica)] = step(group->group(), replica);
  });
  for (size_t replica : {0, 1})
    EXPECT_TRUE(at::equal(repeated[replica], alone[replica])) << replica;
}

TEST_F(ChangingGroupTest, ThrowsWhereFailuresAreNotRecorded) {
  std::latch all_met(2);
  run(2, [&](int replica) {
    auto group = make();
    group->change({"a", replica, 2});
    all_met.arrive_and_wait();
    if (replica == 1) return group.reset();
    try {
      step(group->group(), replica);
      ADD_FAILURE() << "the other replica is gone";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::distributed);
      EXPECT_NE(e.message().find("of group 'replicas'"), std::string::npos) << e.message();
    }
    EXPECT_FALSE(group->failure().has_value());
  });
}

TEST_F(ChangingGroupTest, ThrowsOnRequestAlthoughItRecords) {
  run(2, [&](int replica) {
    const auto group = make(OnFailure::records);
    group->change({"a", replica, 2});
    EXPECT_EQ(group->strict().size(), 2);
    EXPECT_EQ(group->strict().all_reduce(int64_t{1} << replica, Reduce::sum), 3);
    group->strict().abort("the test ends it");
    EXPECT_THROW(group->strict().all_reduce(int64_t{1}, Reduce::sum), Error);
    EXPECT_FALSE(group->failure().has_value());
    group->group().barrier();
    EXPECT_TRUE(group->failure().has_value());
  });
}

TEST_F(ChangingGroupTest, IsAloneWhenTheNewMembersDoNotCome) {
  int num_calls = 0;
  ChangingGroup group("replicas", [&](const Membership&) -> std::shared_ptr<Backend> {
    ++num_calls;
    fail(ErrorKind::distributed, "nobody came");
  });
  EXPECT_THROW(group.change({"a", 0, 2}), Error);
  EXPECT_EQ(group.group().size(), 1);
  EXPECT_EQ(group.members().size, 1);
  EXPECT_THROW(group.change({"a", 0, 2}), Error);  // another attempt is allowed
  EXPECT_EQ(num_calls, 2);
}

TEST_F(ChangingGroupTest, AWaitIsEndedFromAnotherThread) {
  std::latch is_over(2);
  run(2, [&](int replica) {
    const auto group = make();
    group->change({"a", replica, 2});
    if (replica == 0) {
      std::thread watcher([copy = group->group()] {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        copy.abort("replica 1 has failed");
      });
      at::Tensor part = at::empty({1}, at::kDouble);
      const auto begin = std::chrono::steady_clock::now();
      for (const char* what : {"failed: it was aborted: replica 1 has failed",
                               "could not start: the group was aborted: replica 1 has failed"})
        try {  // the other one never takes part
          group->group().reduce_scatter(part, at::full({2}, 1.0, at::kDouble), Reduce::sum).wait();
          ADD_FAILURE() << "it should have been ended";
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::distributed);
          EXPECT_NE(e.message().find(what), std::string::npos) << e.message();
        }
      EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
      watcher.join();
    }
    is_over.arrive_and_wait();
  });
}

}  // namespace
}  // namespace titan::dist
