// Reactions of a rank to the failure of another are a policy. Two ranks on threads share a store.
// end_to_end.failing_rank shows that the program ends a hanging rank.
#include "core/runtime/groups/failure_watch.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <latch>
#include <optional>

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <titan/error.h>

#include "core/fault_tolerance/abort_groups.h"
#include "core/runtime/groups/process_groups.h"
#include "tests/sdk/dist/thread_ranks.h"

namespace titan::core {
namespace {

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(socket);
  return ntohs(address.sin_port);
}

/// Runs both ranks on their own threads.
template <class Body>
void run_two(const Body& body) {
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", /*overwrite=*/1);
  const int port = free_port();
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      LaunchEnv launch;
      launch.rank = launch.local_rank = rank;
      launch.world_size = launch.local_world_size = 2;
      launch.master_host = "127.0.0.1";
      launch.master_port = port;
      Rendezvous rendezvous(launch, std::chrono::seconds(60));
      rendezvous.agree({});
      body(rank, rendezvous);
    }));
  for (auto& rank : ranks) rank.wait();
  for (auto& rank : ranks) rank.get();
}

TEST(FailureWatch, AbortedGroupsLetTheTrainerThreadGo) {
  const std::unique_ptr<Device> device = titan::testing::make_cpu();
  std::latch is_over(2);
  run_two([&](int rank, Rendezvous& rendezvous) {
    FailureWatch watch(rendezvous, std::make_unique<AbortGroups>(/*ends_process=*/false));
    const dist::Mesh mesh =
        connect_mesh(dist::Grid(dist::MeshShape{.dp_replicate = 2}), rendezvous, *device, nullptr);
    watch.watch(mesh);
    watch.set_step(4);
    std::vector<std::string> lines;
    if (rank == 1) {
      lines = watch.report("the disk is full");
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_NE(lines[0].find("rank 0 is in step 4, waits in receive from 1"), std::string::npos)
          << lines[0];
    } else {
      const auto begin = std::chrono::steady_clock::now();
      std::string error;
      try {
        mesh.group("dp_replicate").receive(at::full({1}, 0.0), 1, 7).wait();
      } catch (const Error& e) {
        error = e.what();
      }
      EXPECT_NE(error.find("it was aborted: rank 1 failed: the disk is full"), std::string::npos)
          << error;
      EXPECT_LT(std::chrono::steady_clock::now() - begin, FailureWatch::kPatience);
      lines = watch.report(error);
      EXPECT_EQ(lines.front(), "before that, rank 1 failed: the disk is full");
    }
    is_over.arrive_and_wait();
    rendezvous.abandon();
  });
}

/// Records the occasions on which it is called.
class Remembering final : public FailurePolicy {
 public:
  explicit Remembering(std::promise<std::string>& learned, std::promise<std::string>& overdue)
      : learned_(learned), overdue_(overdue) {}
  void learned(const std::string& failure, const dist::Mesh*) override {
    learned_.set_value(failure);
  }
  void overdue(const std::string& error) override { overdue_.set_value(error); }

 private:
  std::promise<std::string>& learned_;
  std::promise<std::string>& overdue_;
};

TEST(FailureWatch, AnotherThreadCanEndTheRunOnceAndNoRankThatHasLearnedOfIt) {
  std::promise<std::string> none, ended, learned, overdue;
  std::latch is_over(2);
  run_two([&](int rank, Rendezvous& rendezvous) {
    if (rank == 1) {
      FailureWatch watch(rendezvous, std::make_unique<Remembering>(none, ended));
      watch.set_step(7);
      std::async(std::launch::async, [&] { watch.end_run("it hangs\n  raise the limit"); }).get();
      const std::string error = ended.get_future().get();
      EXPECT_EQ(error.find("it hangs\n  raise the limit\n  this rank was in step 7\n  rank 0 is "),
                0u)
          << error;
    } else {
      FailureWatch watch(rendezvous, std::make_unique<Remembering>(learned, overdue));
      EXPECT_EQ(learned.get_future().get(), "rank 1 failed: it hangs");
      watch.end_run("it waits");  // would set the promise twice, which throws
      EXPECT_EQ(overdue.get_future().get().find("rank 1 failed: it hangs"), 0u);
    }
    is_over.arrive_and_wait();
    rendezvous.abandon();
  });
}

TEST(FailureWatch, ARankThatStaysBusyIsOverdueAfterTheTimeOfPatience) {
  std::promise<std::string> learned, overdue, none, none_either;
  std::latch is_over(2);
  run_two([&](int rank, Rendezvous& rendezvous) {
    if (rank == 1) {
      FailureWatch watch(rendezvous, std::make_unique<Remembering>(none, none_either));
      watch.report("the disk is full");
      is_over.arrive_and_wait();
    } else {
      FailureWatch watch(rendezvous, std::make_unique<Remembering>(learned, overdue));
      watch.set_step(9);
      const std::string first = learned.get_future().get();
      const auto begin = std::chrono::steady_clock::now();
      EXPECT_EQ(first, "rank 1 failed: the disk is full");
      const std::string last = overdue.get_future().get();
      EXPECT_GT(std::chrono::steady_clock::now() - begin, FailureWatch::kPatience / 2);
      EXPECT_NE(last.find("this rank was in step 9"), std::string::npos) << last;
      is_over.arrive_and_wait();
    }
    rendezvous.abandon();
  });
}

}  // namespace
}  // namespace titan::core
