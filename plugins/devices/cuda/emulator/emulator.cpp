#include "emulator.h"

#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/util/Half.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define TITAN_TELL_SANITIZER(call) call
#else
#define TITAN_TELL_SANITIZER(call)
#endif

namespace titan::cuda::emulator {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStackBytes = size_t{128} << 10;

std::string text_of(Where where) {
  std::string file = where.file_name();
  const size_t slash = file.rfind('/');
  if (slash != std::string::npos) file.erase(0, slash + 1);
  return file + ":" + std::to_string(where.line());
}

/// The last access of an element. Threads are numbered across all blocks; an epoch is the time
/// between two barriers of a block.
struct Visit {
  int64_t thread = -1;
  int64_t epoch = -1;
};

/// The history needed to detect a race: the last write and the reads after it. Of several threads
/// that read between the same two barriers, two are enough to detect a race with any writer.
struct Visits {
  Visit write, read, other_read;

  /// The thread whose access conflicts with this one, if any.
  std::optional<int64_t> add(Visit visit, Access access, int threads) {
    const auto meets = [&](const Visit& past) {
      if (past.thread < 0 || past.thread == visit.thread) return false;
      const bool is_same_block = past.thread / threads == visit.thread / threads;
      return !is_same_block || past.epoch == visit.epoch;
    };
    if (meets(write)) return write.thread;
    if (access == Access::write) {
      if (meets(read)) return read.thread;
      if (meets(other_read)) return other_read.thread;
      write = visit;
    } else if (read.thread != visit.thread) {
      other_read = read;
      read = visit;
    } else {
      read = visit;
    }
    return std::nullopt;
  }
};

struct SharedMemory {
  std::string name;
  uint64_t element_bytes;
  int count;
  std::vector<std::byte> bytes;
  std::vector<Visits> visits;
};

enum class State { ready, at_barrier, at_shuffle, finished };

/// Saved context of the scheduler or a fiber; bounds and `shadow` are for AddressSanitizer.
struct Stack {
  ucontext_t context;
  const void* bottom = nullptr;
  size_t bytes = 0;
  void* shadow = nullptr;
};

void go(Stack& from, Stack& to) {
  TITAN_TELL_SANITIZER(__sanitizer_start_switch_fiber(&from.shadow, to.bottom, to.bytes));
  swapcontext(&from.context, &to.context);
  TITAN_TELL_SANITIZER(__sanitizer_finish_switch_fiber(from.shadow, nullptr, nullptr));
}

struct Fiber {
  Stack stack;
  std::unique_ptr<std::byte[]> memory;
  State state = State::ready;
  Where where;
  uint64_t word = 0;  // passed to a shuffle, then its result
  int mask = 0;
};

struct Machine {
  std::vector<std::unique_ptr<Fiber>> fibers;
  Stack scheduler;
  const std::function<void()>* body = nullptr;
  std::exception_ptr error;
  int threads = 0;
  int64_t blocks = 0, block = 0;
  int thread = 0;
  int64_t epoch = 0;
  std::vector<SharedMemory> shared;
  std::unordered_map<const void*, std::vector<Visits>> global;
  Order order = Order::forward;
  Totals totals;
  std::mt19937 random{1};

  std::string who(int64_t number) const {
    return "thread " + std::to_string(number % threads) + " of block " +
           std::to_string(number / threads);
  }
  int64_t number() const { return block * threads + thread; }
};

// One launch at a time per host thread, like kernels in one stream.
Machine& machine() {
  thread_local Machine only;
  return only;
}

[[noreturn]] void fail(Defect defect, const std::string& what, Where where) {
  const Machine& m = machine();
  throw GridError(defect, text_of(where) + ": " + m.who(m.number()) + " " + what);
}

void wait(State state, Where where) {
  Machine& m = machine();
  Fiber& fiber = *m.fibers[static_cast<size_t>(m.thread)];
  fiber.state = state;
  fiber.where = where;
  go(fiber.stack, m.scheduler);
}

void fiber_main() {
  Machine& m = machine();
  TITAN_TELL_SANITIZER(
      __sanitizer_finish_switch_fiber(nullptr, &m.scheduler.bottom, &m.scheduler.bytes));
  try {
    (*m.body)();
  } catch (...) {
    m.error = std::current_exception();
  }
  m.fibers[static_cast<size_t>(m.thread)]->state = State::finished;
  TITAN_TELL_SANITIZER(
      __sanitizer_start_switch_fiber(nullptr, m.scheduler.bottom, m.scheduler.bytes));
}

std::vector<int64_t> turns(int64_t count, Machine& m) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  if (m.order == Order::backward) std::reverse(order.begin(), order.end());
  if (m.order == Order::shuffled) std::shuffle(order.begin(), order.end(), m.random);
  return order;
}

bool is_same(Where a, Where b) {
  return a.line() == b.line() && std::string_view(a.file_name()) == b.file_name();
}

/// Completes a shuffle and resumes the lanes of a warp once all of them have reached it.
bool exchange_words(Machine& m, int first) {
  const auto fiber = [&](int lane) -> Fiber& {
    return *m.fibers[static_cast<size_t>(first + lane)];
  };
  uint64_t words[kWarp];
  for (int lane = 0; lane < kWarp; ++lane) {
    const Fiber& f = fiber(lane);
    if (f.state != State::at_shuffle || f.mask != fiber(0).mask ||
        !is_same(f.where, fiber(0).where))
      return false;
    words[lane] = f.word;
  }
  for (int lane = 0; lane < kWarp; ++lane) {
    fiber(lane).word = words[lane ^ fiber(lane).mask];
    fiber(lane).state = State::ready;
  }
  return true;
}

/// True when a fiber ran or was resumed.
bool run_warp(Machine& m, int first) {
  bool progressed = false;
  do {
    for (const int64_t lane : turns(kWarp, m)) {
      m.thread = first + static_cast<int>(lane);
      Fiber& fiber = *m.fibers[static_cast<size_t>(m.thread)];
      if (fiber.state != State::ready) continue;
      progressed = true;
      go(m.scheduler, fiber.stack);
      if (m.error) std::rethrow_exception(std::exchange(m.error, nullptr));
    }
  } while (exchange_words(m, first));
  return progressed;
}

[[noreturn]] void fail_stuck(const Machine& m) {
  for (int t = 0; t < m.threads; ++t) {
    const Fiber& f = *m.fibers[static_cast<size_t>(t)];
    if (f.state != State::at_shuffle) continue;
    throw GridError(Defect::shuffle_divergence,
                    text_of(f.where) + ": " + m.who(m.block * m.threads + t) +
                        " waits at a shuffle that not all lanes of its warp reach");
  }
  int waiting = 0, at = 0;
  for (int t = 0; t < m.threads; ++t)
    if (m.fibers[static_cast<size_t>(t)]->state == State::at_barrier) ++waiting, at = t;
  throw GridError(Defect::barrier_divergence, text_of(m.fibers[static_cast<size_t>(at)]->where) +
                                                  ": " + std::to_string(waiting) + " of " +
                                                  std::to_string(m.threads) + " threads of block " +
                                                  std::to_string(m.block) +
                                                  " wait at a barrier, not all at the same one");
}

/// Whether all threads have finished; releases a barrier that all have reached.
bool is_over_after_barrier(Machine& m) {
  const Fiber& first = *m.fibers.front();
  for (int t = 0; t < m.threads; ++t) {
    const Fiber& f = *m.fibers[static_cast<size_t>(t)];
    if (f.state != first.state || (f.state == State::at_barrier && !is_same(f.where, first.where)))
      fail_stuck(m);
  }
  if (first.state == State::finished) return true;
  if (first.state != State::at_barrier) fail_stuck(m);
  ++m.epoch;
  ++m.totals.barriers;
  for (int t = 0; t < m.threads; ++t) m.fibers[static_cast<size_t>(t)]->state = State::ready;
  return false;
}

void run_block(Machine& m) {
  m.shared.clear();
  ++m.epoch;
  for (int t = 0; t < m.threads; ++t) {
    Fiber& fiber = *m.fibers[static_cast<size_t>(t)];
    fiber.state = State::ready;
    // a launch that ended with an error left its stack frames poisoned
    TITAN_TELL_SANITIZER(__asan_unpoison_memory_region(fiber.memory.get(), kStackBytes));
    getcontext(&fiber.stack.context);
    fiber.stack.bottom = fiber.memory.get();
    fiber.stack.bytes = kStackBytes;
    fiber.stack.context.uc_stack.ss_sp = fiber.memory.get();
    fiber.stack.context.uc_stack.ss_size = kStackBytes;
    fiber.stack.context.uc_link = &m.scheduler.context;
    makecontext(&fiber.stack.context, fiber_main, 0);
  }
  do {
    for (const int64_t warp : turns(m.threads / kWarp, m))
      run_warp(m, static_cast<int>(warp) * kWarp);
  } while (!is_over_after_barrier(m));
  int64_t bytes = 0;
  for (const SharedMemory& array : m.shared) bytes += static_cast<int64_t>(array.bytes.size());
  m.totals.shared_bytes_of_largest_block = std::max(m.totals.shared_bytes_of_largest_block, bytes);
}

}  // namespace

void run(int64_t num_blocks, int threads, const std::function<void()>& body) {
  Machine& m = machine();
  if (threads <= 0 || threads % kWarp != 0 || threads > 1024)
    throw std::invalid_argument("a block has 32, 64 ... 1024 threads, not " +
                                std::to_string(threads));
  while (m.fibers.size() < static_cast<size_t>(threads)) {
    m.fibers.push_back(std::make_unique<Fiber>());
    m.fibers.back()->memory = std::make_unique<std::byte[]>(kStackBytes);
  }
  m.body = &body;
  m.threads = threads;
  m.blocks = num_blocks;
  m.error = nullptr;
  m.global.clear();
  ++m.totals.launches;
  for (const int64_t block : turns(num_blocks, m)) {
    m.block = block;
    run_block(m);
  }
  m.global.clear();
}

ScopedOrder::ScopedOrder(Order order) : before_(machine().order) {
  machine().order = order;
}
ScopedOrder::~ScopedOrder() {
  machine().order = before_;
}

const Totals& totals() {
  return machine().totals;
}

int thread() {
  return machine().thread;
}
int64_t block() {
  return machine().block;
}
int64_t num_blocks() {
  return machine().blocks;
}

void sync_block(Where where) {
  wait(State::at_barrier, where);
}

uint64_t shuffle_xor(uint64_t value, int mask, Where where) {
  Machine& m = machine();
  Fiber& fiber = *m.fibers[static_cast<size_t>(m.thread)];
  fiber.word = value;
  fiber.mask = mask;
  wait(State::at_shuffle, where);
  return fiber.word;
}

void check_global(const GlobalArray& array, int64_t first, int64_t count, uint64_t alignment,
                  Access access, Where where) {
  Machine& m = machine();
  const char* verb = access == Access::read ? "reads" : "writes";
  if (first < 0 || count > array.size || first > array.size - count)
    fail(Defect::global_bounds,
         std::string(verb) + " elements " + std::to_string(first) + " ... " +
             std::to_string(first + count - 1) + " of " + std::to_string(array.size) +
             " in global memory",
         where);
  const auto address =
      reinterpret_cast<uintptr_t>(array.data) + static_cast<uintptr_t>(first) * array.element_bytes;
  if (address % alignment != 0)
    fail(Defect::global_alignment,
         std::string(verb) + " " + std::to_string(alignment) + " bytes at element " +
             std::to_string(first) + ", whose address is not a multiple of that",
         where);
  std::vector<Visits>& visits = m.global[array.data];
  if (visits.size() < static_cast<size_t>(array.size))
    visits.resize(static_cast<size_t>(array.size));
  for (int64_t i = first; i < first + count; ++i)
    if (const auto met =
            visits[static_cast<size_t>(i)].add({m.number(), m.epoch}, access, m.threads))
      fail(Defect::global_race,
           std::string(verb) + " element " + std::to_string(i) + " in global memory; " +
               m.who(*met) + " accessed it without a barrier of their block in between",
           where);
}

SharedArray shared_array(const char* name, uint64_t element_bytes, int count) {
  Machine& m = machine();
  for (size_t i = 0; i < m.shared.size(); ++i)
    if (m.shared[i].name == name) return {static_cast<int>(i)};
  const auto size = static_cast<size_t>(count);
  m.shared.push_back({name, element_bytes, count, std::vector<std::byte>(size * element_bytes),
                      std::vector<Visits>(size)});
  return {static_cast<int>(m.shared.size()) - 1};
}

void* check_shared(SharedArray array, int i, Access access, Where where) {
  Machine& m = machine();
  SharedMemory& memory = m.shared[static_cast<size_t>(array.number)];
  const auto fail_at = [&](Defect defect, const std::string& what) {
    fail(defect,
         std::string(access == Access::read ? "reads " : "writes ") + memory.name + "[" +
             std::to_string(i) + "]" + what,
         where);
  };
  if (i < 0 || i >= memory.count)
    fail_at(Defect::shared_bounds, " of " + std::to_string(memory.count) + " in shared memory");
  Visits& visits = memory.visits[static_cast<size_t>(i)];
  if (access == Access::read && visits.write.thread < 0)
    fail_at(Defect::shared_unwritten, ", which no thread has written");
  if (const auto met = visits.add({m.number(), m.epoch}, access, m.threads))
    fail_at(Defect::shared_race,
            ", which " + m.who(*met) + " accessed since the last barrier: a barrier is missing");
  return memory.bytes.data() + static_cast<size_t>(i) * memory.element_bytes;
}

void fail_requirement(const char* what) {
  const Machine& m = machine();
  throw GridError(Defect::requirement, m.who(m.number()) + ": " + what);
}

float float_of_half(uint16_t bits) {
  return c10::Half(bits, c10::Half::from_bits());
}
uint16_t half_of_float(float value) {
  return c10::Half(value).x;
}

}  // namespace titan::cuda::emulator
