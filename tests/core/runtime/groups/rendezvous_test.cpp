#include "core/runtime/groups/rendezvous.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace titan::core {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr std::chrono::minutes kPatience{5};

/// A store that outlives the ranks, as that of torchrun's agent.
class AgentStore {
 public:
  AgentStore() {
    c10d::TCPStoreOptions options;
    options.port = 0;
    options.isServer = true;
    options.waitWorkers = false;
    store_ = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
  }

  /// Starts ranks that have counted so many restarts. Returns what each of them gets from rank 0.
  std::vector<std::string> start(const std::vector<int>& restart_counts, const std::string& value) {
    std::vector<std::string> found(restart_counts.size());
    std::vector<std::thread> ranks;
    for (size_t rank = 0; rank < restart_counts.size(); ++rank)
      ranks.emplace_back([&, rank] {
        LaunchEnv launch;
        launch.rank = static_cast<int>(rank);
        launch.world_size = static_cast<int>(restart_counts.size());
        launch.local_world_size = 1;
        launch.restart_count = restart_counts[rank];
        launch.agent_hosts_store = true;
        launch.master_host = "127.0.0.1";
        launch.master_port = store_->getPort();
        Rendezvous rendezvous(launch, kPatience);
        found[rank] = rendezvous.from_rank_zero("value", value);
        EXPECT_EQ(rendezvous.from_all("ranks", std::to_string(rank))[rank], std::to_string(rank));
      });
    for (std::thread& rank : ranks) rank.join();
    return found;
  }

 private:
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

TEST(Rendezvous, StartsAreKeptApartWhereTheStoreSurvives) {
  AgentStore agent;
  EXPECT_THAT(agent.start({0, 0, 0}, "first"), Each("first"));
  EXPECT_THAT(agent.start({1, 1}, "second"), Each("second"));
  // a host that joins has counted no restart, and the others may have counted differently
  EXPECT_THAT(agent.start({1, 2, 0}, "third"), Each("third"));
  EXPECT_THAT(agent.start({1, 2, 0}, "fourth"), Each("fourth"));
}

TEST(Rendezvous, OfOneProcessNeedsNoStore) {
  Rendezvous alone(LaunchEnv{}, kPatience);
  EXPECT_THAT(alone.from_all("value", "own"), ElementsAre("own"));
}

}  // namespace
}  // namespace titan::core
