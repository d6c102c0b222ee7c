#include "engine.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <poll.h>

namespace titan::cpu {
namespace {

/// Longest sleep of a waiting thread before it checks that the other ranks are alive.
constexpr std::chrono::milliseconds kNap{20};
/// Polls before a sleep: some microseconds, because ranks share cores.
constexpr int kLooks = 100;
/// Most pieces that start() moves.
constexpr int kPiecesAtStart = 64;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::string seconds(std::chrono::milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  if (time.count() % 1000 != 0) {
    const std::string rest = std::to_string(1000 + time.count() % 1000).substr(1);
    text += "." + rest.substr(0, rest.find_last_not_of('0') + 1);
  }
  return text + " s";
}

}  // namespace

Engine::Engine(Members members)
    : members_(std::move(members)), futex_(members_.segments[index(members_.rank)].futex()) {
  const int own = members_.rank, size = members_.layout.size;
  const Segment& mine = members_.segments[index(own)];
  to_.resize(index(size));
  mail_to_.resize(index(size));
  published_.resize(index(size));
  from_.resize(index(size));
  publish_.ring = RingWriter(mine.published());
  for (int rank = 0; rank < size; ++rank) {
    const Segment& segment = members_.segments[index(rank)];
    Futex* futex = &segment.futex();
    ReceiveChannel mail{.rank = rank, .futex = futex};
    if (rank != own) {
      publish_.ranks.push_back(rank);
      publish_.futexes.push_back(futex);
      to_[index(rank)] = {.ring = RingWriter(mine.direct(rank, Segment::Use::collectives)),
                          .ranks = {rank},
                          .futexes = {futex}};
      mail_to_[index(rank)] = {.ring = RingWriter(mine.direct(rank, Segment::Use::messages)),
                               .ranks = {rank},
                               .futexes = {futex}};
      published_[index(rank)] = {
          .ring = RingReader(segment.published(), own < rank ? own : own - 1),
          .rank = rank,
          .futex = futex};
      from_[index(rank)] = {.ring = RingReader(segment.direct(own, Segment::Use::collectives), 0),
                            .rank = rank,
                            .futex = futex};
      mail.ring = RingReader(segment.direct(own, Segment::Use::messages), 0);
    }
    mailboxes_.emplace_back(mail);
  }
}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }
  help_wanted_.notify_all();
  futex_.wake();
  if (helper_.joinable()) helper_.join();
}

/// Moves one piece of everything that can move. Operations advance in the order of their starts.
bool Engine::advance() {
  bool moved = false;
  try {
    for (auto it = active_.begin(); it != active_.end();) {
      moved |= (*it)->advance();
      it = (*it)->is_done() ? active_.erase(it) : std::next(it);
    }
    for (Mailbox& mailbox : mailboxes_) moved |= mailbox.advance();
  } catch (const std::exception& e) {
    fail(e.what());
  }
  if (moved && num_waiting_ > 1) futex_.wake();  // another thread may wait for it
  return moved;
}

void Engine::start(const std::shared_ptr<Operation>& operation) {
  const std::lock_guard lock(mutex_);
  if (failure_) throw std::runtime_error("the group was aborted: " + *failure_);
  active_.push_back(operation);
  try {
    if (operation->expected) mailboxes_[index(operation->expected->rank)].expect(operation);
  } catch (const std::exception& e) {
    fail(e.what());
    throw;
  }
  for (int i = 0; i < kPiecesAtStart && advance() && operation->has_unsent(); ++i) {
  }
  call_for_help();
}

void Engine::wait(Operation& operation, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  ++num_waiting_;
  const auto leave = [&] {
    --num_waiting_;
    call_for_help();
    if (num_waiting_ > 0) futex_.wake();
  };
  std::optional<Clock::time_point> deadline;
  int looks = 0;
  while (!operation.is_done() && !failure_) {
    if (advance()) {
      looks = 0;
      continue;
    }
    if (operation.is_done() || failure_) break;
    if (++looks < kLooks) {
      relax();
      continue;
    }
    const auto now = Clock::now();
    if (!deadline) deadline = now + timeout;
    if (now >= *deadline) {
      fail("timed out after " + seconds(timeout) + ": " + awaited_ranks());
      break;
    }
    const uint32_t announced = futex_.announce_sleep();
    if (advance()) {
      futex_.stay_awake();
      looks = 0;
      continue;
    }
    const auto nap = std::min<std::chrono::microseconds>(
        kNap, std::chrono::duration_cast<std::chrono::microseconds>(*deadline - now) +
                  std::chrono::microseconds(1));
    lock.unlock();
    futex_.sleep(announced, nap);
    lock.lock();
    if (Clock::now() - now >= nap) look_for_ended_ranks();
    looks = 0;
  }
  leave();
  if (operation.is_done()) return;
  throw std::runtime_error("it was aborted: " + *failure_);
}

bool Engine::waits_for(int rank) {
  return mailboxes_[index(rank)].is_waiting() ||
         std::any_of(active_.begin(), active_.end(),
                     [&](const auto& operation) { return operation->waits_for(rank); });
}

std::string Engine::awaited_ranks() {
  std::string ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != members_.rank && waits_for(rank))
      ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  if (ranks.empty()) return "this rank itself made no progress";
  return "rank " + ranks + " of the group did not take part";
}

/// Data that a rank sent before it ended are still received.
void Engine::look_for_ended_ranks() {
  if (failure_) return;
  std::vector<pollfd> polled;
  for (const Descriptor& connection : members_.connections)
    polled.push_back({.fd = connection.get(), .events = 0, .revents = 0});
  if (::poll(polled.data(), polled.size(), 0) <= 0) return;
  while (advance()) {
  }
  for (int rank = 0; rank < size(); ++rank) {
    if ((polled[index(rank)].revents & (POLLHUP | POLLERR)) == 0) continue;
    if (!waits_for(rank)) continue;
    fail("rank " + std::to_string(rank) + " of the group has ended");
    return;
  }
}

void Engine::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  fail(reason);
}

void Engine::fail(const std::string& reason) {
  if (!failure_) failure_ = reason;
  active_.clear();
  for (Mailbox& mailbox : mailboxes_) mailbox.clear();
  futex_.wake();
}

bool Engine::wants_help() const {
  if (active_.empty()) return false;
  const auto is_short = [](const ReceiveChannel& channel) { return channel.is_short_of_space(); };
  return std::any_of(active_.begin(), active_.end(),
                     [](const auto& operation) { return operation->has_unsent(); }) ||
         std::any_of(published_.begin(), published_.end(), is_short) ||
         std::any_of(from_.begin(), from_.end(), is_short) ||
         std::any_of(mailboxes_.begin(), mailboxes_.end(),
                     [](const Mailbox& mailbox) { return mailbox.is_short_of_space(); });
}

void Engine::call_for_help() {
  if (num_waiting_ > 0 || is_closed_ || !wants_help()) return;
  if (!helper_.joinable())
    helper_ = std::thread([this] { help(); });
  else
    help_wanted_.notify_one();
}

void Engine::help() {
  std::unique_lock lock(mutex_);
  while (!is_closed_) {
    if (num_waiting_ > 0 || !wants_help()) {
      help_wanted_.wait(lock);
      continue;
    }
    const uint32_t announced = futex_.announce_sleep();
    if (advance()) {
      futex_.stay_awake();
      lock.unlock();  // threads in wait() or start() come first
      lock.lock();
      continue;
    }
    lock.unlock();
    futex_.sleep(announced, kNap);
    lock.lock();
  }
}

}  // namespace titan::cpu
