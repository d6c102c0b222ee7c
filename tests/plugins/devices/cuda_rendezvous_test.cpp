// The rendezvous of a group's ranks before NCCL connects them: all arrive, some do not, two share a
// GPU.
#include "plugins/devices/cuda/rank_rendezvous.h"

#include <string>
#include <thread>
#include <vector>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "tests/plugins/error_of.h"

namespace titan::testing {
namespace {

class CudaRendezvous : public ::testing::Test {
 protected:
  void come(int rank, int size, const std::string& gpu,
            std::chrono::milliseconds timeout = std::chrono::minutes(10)) {
    cuda::await_all_ranks(
        *store_, {.store = *store_, .name = "fsdp", .rank = rank, .size = size, .timeout = timeout},
        gpu);
  }

 private:
  c10::intrusive_ptr<c10d::HashStore> store_ = c10::make_intrusive<c10d::HashStore>();
};

TEST_F(CudaRendezvous, EndsWhenAllHaveCome) {
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 5; ++rank) {
    ranks.emplace_back(
        [this, rank] { EXPECT_NO_THROW(come(rank, 5, "host" + std::to_string(rank))); });
  }
  for (std::thread& rank : ranks) rank.join();
}

TEST_F(CudaRendezvous, NamesThoseWhoDidNotCome) {
  const auto soon = std::chrono::milliseconds(50);
  error_of([&] { come(2, 4, "a", soon); });
  const Error error = error_of([&] { come(1, 4, "b", soon); });
  EXPECT_EQ(error.kind(), ErrorKind::distributed);
  EXPECT_TRUE(holds(error.message(), "rank 1 of 4 waited 0.05 s to connect group 'fsdp'"));
  EXPECT_TRUE(holds(error.message(), "missing ranks: 0, 3"));
}

TEST_F(CudaRendezvous, NamesAFewOfMany) {
  const Error error = error_of([&] { come(3, 100, "a", std::chrono::milliseconds(50)); });
  EXPECT_TRUE(holds(error.message(), "missing ranks: 0, 1, 2, 4, 5, 6, 7, 8 and 91 more"));
}

TEST_F(CudaRendezvous, RefusesTwoRanksWithOneGpu) {
  error_of([&] { come(0, 2, "host ab12", std::chrono::milliseconds(50)); });
  const Error error = error_of([&] { come(1, 2, "host ab12"); });
  EXPECT_EQ(error.kind(), ErrorKind::distributed);
  EXPECT_TRUE(holds(error.message(), "ranks 0 and 1 of group 'fsdp' share one GPU (host ab12)"));
}

}  // namespace
}  // namespace titan::testing
