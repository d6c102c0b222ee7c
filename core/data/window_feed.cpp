#include "core/data/window_feed.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>

#include <titan/error.h>
#include <titan/program/clock.h>

#include <titan/program/stop_signals.h>
#include "core/data/make_packer.h"
#include "core/data/tokenizer_hash.h"

namespace titan::core {
namespace {

std::string describe(const FeedOptions& options) {
  const PackingOptions& packing = options.packing;
  const OrderOptions& order = options.order;
  std::string text = "concatenate";
  if (packing.packing == Packing::best_fit)
    text = "best_fit into sequences of " + std::to_string(packing.window - 1);
  if (options.conversations.too_long == TooLong::skip) text += ", without what is longer";
  if (options.conversations.too_long == TooLong::truncate) text += ", of what is longer the start";
  if (order.shuffle) text += ", shuffled in blocks of " + std::to_string(order.shuffle_buffer);
  return text;
}

}  // namespace

/// A window of a stream that this rank needs, and the step that needs it.
struct WindowFeed::Need {
  int64_t index = 0;  // of the window within the stream
  int64_t step = 0;   // since the start of this run
};

/// One stream on this rank. `packer`, `next` and `epochs` belong to the thread that has set
/// `is_busy`, the other members that change are guarded by the mutex of Work.
struct WindowFeed::Stream {
  explicit Stream(int64_t its_number) : number(its_number) {}

  const int64_t number;
  struct Ready {
    Window window;
    FeedState::StreamPosition behind;
  };
  std::unique_ptr<Packer> packer;
  int64_t next = 0;             // the stream's next window from the packer
  std::vector<int64_t> epochs;  // by source, of the packer's windows so far
  Need need;                    // the next one to produce
  std::deque<Ready> ready;
  FeedState::StreamPosition taken;  // position after the last window that was returned
  std::exception_ptr error;         // thrown after the ready windows are used up
  bool has_ended = false;
  bool is_busy = false;
};

struct WindowFeed::Work {
  explicit Work(const FeedOptions& feed_options) : options(feed_options) {}

  Need need_from(int64_t stream, int64_t index) const;
  Stream* most_urgent();
  void produce(Stream& stream, std::unique_lock<std::mutex>& lock);
  void run();

  const FeedOptions options;
  int64_t first_window = 0, num_streams = 0;
  std::vector<std::unique_ptr<SourceAccess>> accesses;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<Stream*> stream_by_number;
  std::mutex mutex;
  std::condition_variable changed;
  int64_t num_steps_taken = 0;
  bool closing = false;
};

/// The first window of the stream, from `index` on, that this rank takes.
WindowFeed::Need WindowFeed::Work::need_from(int64_t stream, int64_t index) const {
  for (;; ++index) {
    const int64_t behind_start = index * num_streams + stream - first_window;
    if (behind_start < 0) continue;
    const int64_t row = behind_start % options.num_rows - options.first_row;
    if (row >= 0 && row < options.num_own_rows) return {index, behind_start / options.num_rows};
  }
}

WindowFeed::Stream* WindowFeed::Work::most_urgent() {
  Stream* most = nullptr;
  for (const auto& stream : streams) {
    if (stream->is_busy || stream->has_ended || stream->error) continue;
    if (stream->need.step >= num_steps_taken + options.num_prefetched_steps) continue;
    if (!most || stream->need.step < most->need.step) most = stream.get();
  }
  return most;
}

void WindowFeed::Work::produce(Stream& stream, std::unique_lock<std::mutex>& lock) {
  stream.is_busy = true;
  const Need need = stream.need;
  lock.unlock();
  Stream::Ready ready;
  std::exception_ptr error;
  bool has_more = true;
  try {
    for (; has_more && stream.next <= need.index; ++stream.next) {
      has_more = stream.packer->next(ready.window);
      raise_epochs(stream.epochs, ready.window.epochs);
    }
    ready.behind = {.stream = stream.number,
                    .next = stream.next,
                    .packer = stream.packer->state(),
                    .epochs = stream.epochs};
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  stream.is_busy = false;
  stream.error = error;
  if (!error && has_more) stream.ready.push_back(std::move(ready));
  stream.has_ended = !has_more;
  stream.need = need_from(stream.number, need.index + 1);
  changed.notify_all();
}

void WindowFeed::Work::run() {
  block_signals();
  std::unique_lock lock(mutex);
  while (!closing) {
    if (Stream* stream = most_urgent())
      produce(*stream, lock);
    else
      changed.wait(lock);
  }
}

WindowFeed::WindowFeed(std::vector<Source> sources, const Tokenizer& tokenizer,
                       const FeedOptions& options)
    : sources_(std::move(sources)), tokenizer_(tokenizer), options_(options) {
  if (!options_.conversations.skipped)
    options_.conversations.skipped = std::make_shared<SkippedDocuments>();
  start_.num_streams = options.num_rows;
  start_.packing = describe(options);
  start_.tokenizer = probe_hash(tokenizer);
  Value::List described;
  for (const Source& source : sources_)
    described.push_back(Value::map({{"name", source.name},
                                    {"weight", source.weight},
                                    {"fingerprint", source.dataset->fingerprint()}}));
  start_.sources = Value(std::move(described));
}

WindowFeed::~WindowFeed() {
  if (!work_) return;
  {
    const std::lock_guard lock(work_->mutex);
    work_->closing = true;
  }
  work_->changed.notify_all();
  for (std::thread& thread : threads_) has_stalled_ ? thread.detach() : thread.join();
}

void WindowFeed::restore(FeedState state) {
  TITAN_ASSERT(!work_, "a feed is restored before it starts");
  check_same_data(state, start_);
  start_ = std::move(state);
}

void WindowFeed::open_streams() {
  Work& work = *work_;
  work.first_window = start_.num_windows;
  work.num_streams = start_.num_streams;
  for (const Source& source : sources_)
    work.accesses.push_back(
        access_source(source.name, *source.dataset, start_.num_streams, options_.order));

  std::vector<const FeedState::StreamPosition*> saved(static_cast<size_t>(start_.num_streams));
  for (const FeedState::StreamPosition& position : start_.streams) {
    TITAN_CHECK(position.stream < start_.num_streams, data, "the saved data position has stream ",
                position.stream, " of ", start_.num_streams);
    const FeedState::StreamPosition*& furthest = saved[static_cast<size_t>(position.stream)];
    if (!furthest || position.next > furthest->next) furthest = &position;
  }

  work.stream_by_number.resize(static_cast<size_t>(start_.num_streams));
  const std::vector<int64_t> numbers =
      own_streams(start_.num_streams, start_.num_windows, options_.num_rows, options_.first_row,
                  options_.num_own_rows);
  SlowNotice notice(options_.seconds_to_notice);
  std::atomic<size_t> num_opened = 0;
  const NoticeThread telling(notice, [&] {
    return "reading up to the saved position of row " + std::to_string(num_opened + 1) + " of " +
           std::to_string(numbers.size());
  });
  for (const int64_t number : numbers) {
    std::vector<BlendedReader> readers;
    for (size_t i = 0; i < sources_.size(); ++i)
      readers.push_back({sources_[i].name, sources_[i].weight, work.accesses[i]->open(number)});
    auto stream = std::make_unique<Stream>(number);
    stream->packer =
        make_packer(std::make_unique<RowReader>(std::move(readers), tokenizer_, options_.vocab_size,
                                                options_.conversations),
                    options_.packing);
    if (const FeedState::StreamPosition* from = saved[static_cast<size_t>(number)]) {
      stream->packer->restore(from->packer);
      stream->next = from->next;
      stream->epochs = from->epochs;
    } else {
      TITAN_CHECK(start_.num_windows == 0, data, "the saved data position lacks stream ", number,
                  " of ", start_.num_streams);
    }
    stream->epochs.resize(sources_.size());
    stream->taken = {.stream = number,
                     .next = stream->next,
                     .packer = stream->packer->state(),
                     .epochs = stream->epochs};
    stream->need = work.need_from(number, stream->next);
    work.stream_by_number[static_cast<size_t>(number)] = stream.get();
    work.streams.push_back(std::move(stream));
    num_opened = work.streams.size();
  }
  if (!options_.keeps_other_positions) return start_.streams.clear();
  std::vector<FeedState::StreamPosition> others;
  for (FeedState::StreamPosition& position : start_.streams) {
    const auto stream = static_cast<size_t>(position.stream);
    if (saved[stream] == &position && !work.stream_by_number[stream])
      others.push_back(std::move(position));
  }
  start_.streams = std::move(others);
}

void WindowFeed::start() {
  if (work_) return;
  work_ = std::make_shared<Work>(options_);
  open_streams();
  for (int64_t i = 0; i < std::max<int64_t>(1, options_.num_workers); ++i)
    threads_.emplace_back([work = work_] { work->run(); });
  SlowNotice notice(options_.seconds_to_notice);
  std::unique_lock lock(work_->mutex);
  for (int64_t row = 0; row < options_.num_own_rows; ++row)
    wait_for(options_.first_row + row, notice, lock);
}

/// Waits until window `behind_start` of this run is ready or its stream has ended; returns its
/// stream. The lock is held on return.
WindowFeed::Stream& WindowFeed::wait_for(int64_t behind_start, SlowNotice& notice,
                                         std::unique_lock<std::mutex>& lock) {
  Work& work = *work_;
  Stream& stream = *work.stream_by_number[static_cast<size_t>((work.first_window + behind_start) %
                                                              work.num_streams)];
  const double begin = monotonic_seconds();
  while (stream.ready.empty() && !stream.has_ended) {
    if (stream.error)
      std::rethrow_exception(stream.error);  // remains set: every later call fails too
    work.changed.wait_for(lock, std::chrono::milliseconds(250));
    const double seconds = monotonic_seconds() - begin;
    if (seconds >= options_.timeout_seconds) {
      has_stalled_ = true;
      fail(ErrorKind::io, "no data for ", static_cast<int64_t>(seconds), " s: row ",
           behind_start % options_.num_rows, " of the global batch waits for ",
           stream.packer->place(), "; is its file system still available? data.timeout = ",
           static_cast<int64_t>(options_.timeout_seconds), " s sets this limit");
    }
    notice.look([&] { return waiting_for(stream); });
  }
  return stream;
}

std::string WindowFeed::waiting_for(const Stream& stream) const {
  const auto num_there =
      std::count_if(work_->streams.begin(), work_->streams.end(),
                    [](const auto& each) { return !each->ready.empty() || each->has_ended; });
  std::string text = "the data of this step: " + std::to_string(num_there) + " of " +
                     std::to_string(work_->streams.size()) + " rows are ready, reading " +
                     stream.packer->place();
  const bool fills_blocks = options_.order.shuffle &&
                            std::any_of(sources_.begin(), sources_.end(), [](const Source& source) {
                              return source.dataset->streamed() != nullptr;
                            });
  if (fills_blocks)
    text += "; data.shuffle reads up to " + std::to_string(options_.order.shuffle_buffer) +
            " documents of a row before it shuffles them";
  return text;
}

std::vector<Window> WindowFeed::next_step() {
  start();
  std::vector<Window> windows;
  SlowNotice notice(options_.seconds_to_notice);
  std::unique_lock lock(work_->mutex);
  const int64_t first = num_steps_ * options_.num_rows + options_.first_row;
  for (int64_t row = 0; row < options_.num_own_rows; ++row) {
    Stream& stream = wait_for(first + row, notice, lock);
    Window& window = windows.emplace_back();
    if (stream.ready.empty()) continue;  // has ended
    window = std::move(stream.ready.front().window);
    stream.taken = std::move(stream.ready.front().behind);
    stream.ready.pop_front();
  }
  work_->num_steps_taken = ++num_steps_;
  lock.unlock();
  work_->changed.notify_all();
  return windows;
}

std::vector<int64_t> WindowFeed::ended_epochs() const {
  TITAN_ASSERT(work_ && !work_->streams.empty(), "ended_epochs before start");
  const std::lock_guard lock(work_->mutex);
  std::vector<int64_t> ended = work_->streams.front()->taken.epochs;
  for (const auto& stream : work_->streams)
    for (size_t i = 0; i < ended.size(); ++i)
      ended[i] = std::min(ended[i], stream->taken.epochs[i]);
  return ended;
}

FeedState WindowFeed::state() const {
  FeedState state = start_;
  if (!work_) return state;
  const std::lock_guard lock(work_->mutex);
  state.num_windows += num_steps_ * options_.num_rows;
  for (const auto& stream : work_->streams) state.streams.push_back(stream->taken);
  return state;
}

std::vector<int64_t> own_streams(int64_t num_streams, int64_t first_window, int64_t num_rows,
                                 int64_t first_row, int64_t num_own_rows) {
  const int64_t period = std::gcd(num_streams, num_rows);  // rows a period apart share streams
  std::vector<bool> is_own(static_cast<size_t>(period));
  for (int64_t row = first_row; row < first_row + num_own_rows; ++row)
    is_own[static_cast<size_t>((first_window + row) % period)] = true;
  std::vector<int64_t> streams;
  for (int64_t stream = 0; stream < num_streams; ++stream)
    if (is_own[static_cast<size_t>(stream % period)]) streams.push_back(stream);
  return streams;
}

}  // namespace titan::core
