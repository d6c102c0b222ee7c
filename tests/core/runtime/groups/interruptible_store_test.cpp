// Waits at the store end when they are interrupted, before and after its host listens.
#include "core/runtime/groups/interruptible_store.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>
#include <titan/error.h>

namespace titan::core {
namespace {

using std::chrono::seconds;

c10::intrusive_ptr<c10d::Store> connect(int port, bool hosts, const IsInterrupted& is_interrupted) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<uint16_t>(port);
  options.isServer = hosts;
  options.waitWorkers = false;
  options.timeout = seconds(600);
  return connect_interruptibly("test", "127.0.0.1", options, is_interrupted);
}

/// A host that listens at a port of the system's choice.
c10d::TCPStoreOptions any_port() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  return options;
}

bool never() {
  return false;
}

/// Runs `wait` on a thread; it must not end by itself, and must end with an error when interrupted.
template <class Wait>
void expect_interruptible(std::atomic<bool>& interrupted, const Wait& wait) {
  auto waiting = std::async(std::launch::async, wait);
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  interrupted = true;
  ASSERT_EQ(waiting.wait_for(seconds(120)), std::future_status::ready);
  try {
    waiting.get();
    ADD_FAILURE() << "the wait succeeded";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "the wait for other ranks was interrupted");
  }
}

TEST(InterruptibleStore, WaitsForAKeyThatNobodySetsCanBeInterrupted) {
  const c10d::TCPStore host("127.0.0.1", any_port());
  std::atomic<bool> interrupted = false;
  const auto is_interrupted = [&] { return interrupted.load(); };
  const auto store = connect(host.getPort(), /*hosts=*/false, is_interrupted);
  store->set("here", std::vector<uint8_t>{1, 2});
  EXPECT_EQ(store->get("here"), (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(connect(host.getPort(), false, never)->get("here"), (std::vector<uint8_t>{1, 2}));
  const auto copy = store->clone();  // of the collective checks of checkpoints
  expect_interruptible(interrupted, [&] { store->get("missing"); });
  EXPECT_THROW(copy->check({"here"}), Error);
  EXPECT_THROW(store->wait({"here", "missing"}, seconds(600)), Error);
}

TEST(InterruptibleStore, ANewConnectionToAHostThatHasEndedCanBeInterrupted) {
  auto host = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", any_port());
  std::atomic<bool> interrupted = false;
  const auto store = connect(host->getPort(), false, [&] { return interrupted.load(); });
  host.reset();
  expect_interruptible(interrupted, [&] { store->clone(); });
}

TEST(InterruptibleStore, AWaitThatIsNotInterruptedEndsAtItsTimeout) {
  const c10d::TCPStore host("127.0.0.1", any_port());
  const auto store = connect(host.getPort(), false, never);
  EXPECT_THROW(store->wait({"missing"}, std::chrono::milliseconds(30)), Error);
}

TEST(InterruptibleStore, AHostThatNeverListensCanBeInterrupted) {
  int port = 0;
  {
    port = c10d::TCPStore("127.0.0.1", any_port()).getPort();  // closed again
  }
  std::atomic<bool> interrupted = false;
  expect_interruptible(interrupted,
                       [&] { connect(port, false, [&] { return interrupted.load(); }); });
}

}  // namespace
}  // namespace titan::core
