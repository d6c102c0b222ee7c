// What a profiler sees of collectives. tests/end_to_end/profiling_test.py checks the trace.
#include "dist/comm_scope.h"

#include <mutex>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>

#include "sdk/dist/thread_ranks.h"

namespace titan::dist {
namespace {

struct Told {
  std::string name, group;
  int64_t sequence = 0;
  std::vector<int64_t> ranks;
};

std::mutex mutex;
std::vector<Told> told;

std::unique_ptr<at::ObserverContext> see(const at::RecordFunction& function) {
  if (std::string_view(function.name()) != at::kParamCommsCallName) return nullptr;
  const auto* info = dynamic_cast<const torch::ParamCommsDebugInfo*>(
      c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PARAM_COMMS_INFO));
  if (!info || !function.inputs()[0].isInt()) return nullptr;  // recorded by the transport
  const std::lock_guard lock(mutex);
  told.push_back({info->getCollectiveName(), info->getProcessGroupName(),
                  function.inputs()[0].toInt(), info->getGroupRanks()});
  return nullptr;
}

void communicate(const Mesh& mesh) {
  const Group& group = mesh.group("tp");
  at::Tensor ones = at::ones({4});
  group.all_reduce(ones, Reduce::sum).wait();
  group.all_reduce(ones, Reduce::sum).wait();
}

TEST(CommScope, TellsAProfilerWhatStartsAndWhatIsAwaited) {
  told.clear();
  const auto handle = at::addGlobalCallback(
      at::RecordFunctionCallback(&see).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
  testing::run_ranks(MeshShape{.dp_shard = 2, .tp = 2}, communicate);
  at::removeCallback(handle);
  ASSERT_EQ(told.size(), 16u);
  int num_waits = 0, num_second = 0;
  for (const Told& one : told) {
    EXPECT_EQ(one.group, "tp");
    EXPECT_TRUE(one.name == "all_reduce" || one.name == "wait for all_reduce") << one.name;
    EXPECT_TRUE(one.ranks == std::vector<int64_t>({0, 1}) ||
                one.ranks == std::vector<int64_t>({2, 3}));
    num_waits += one.name.starts_with("wait");
    num_second += one.sequence == 2;
  }
  EXPECT_EQ(num_waits, 8);
  EXPECT_EQ(num_second, 8);
}

TEST(CommScope, TellsNobodyWhenNobodyAsks) {
  told.clear();
  testing::run_ranks(MeshShape{.tp = 2}, communicate);
  EXPECT_TRUE(told.empty());
}

}  // namespace
}  // namespace titan::dist
