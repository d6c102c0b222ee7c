#include "core/data/order/round_robin_documents.h"

#include <algorithm>

#include <titan/error.h>

#include "core/data/order/document_size.h"
#include "core/data/order/saved_position.h"

namespace titan::core {
namespace {

size_t bytes_of(const Document& document) {
  return sizeof document + content_bytes(document);
}

}  // namespace

/// A row's position is the position of the pass directly after the row's last document.
struct RoundRobinDocuments::Position {
  int64_t count = 0;  // documents assigned to all rows before this position
  Value walk;         // null: the start
};

struct RoundRobinDocuments::Pass {
  Pass(const StreamedDocuments& documents, const ShardOrder& order, const Position& from)
      : walk(documents, order), count(from.count) {
    if (!from.walk.is_null()) walk.seek(from.walk);
  }
  Position position() const { return {count, walk.position()}; }

  ShardWalk walk;
  int64_t count;
};

struct RoundRobinDocuments::Row {
  struct Waiting {
    Document document;
    Position behind;
    int64_t epoch;
  };
  int64_t row = 0;
  Position position;  // after the last document that was returned
  int64_t epoch = 0;
  std::deque<Waiting> queue;
  size_t queued_bytes = 0;
  std::unique_ptr<Pass> own_pass;
};

RoundRobinDocuments::RoundRobinDocuments(const StreamedDocuments& documents,
                                         const ShardOrder& order, int64_t num_rows,
                                         size_t max_queued_bytes)
    : documents_(documents),
      order_(order),
      num_rows_(num_rows),
      max_queued_bytes_(max_queued_bytes),
      row_of_(static_cast<size_t>(num_rows)) {}
RoundRobinDocuments::~RoundRobinDocuments() = default;

size_t RoundRobinDocuments::add_row(int64_t row) {
  TITAN_ASSERT(!shared_ && row < num_rows_ && !row_of_[static_cast<size_t>(row)], row);
  rows_.push_back(std::make_unique<Row>());
  rows_.back()->row = row;
  row_of_[static_cast<size_t>(row)] = rows_.back().get();
  return rows_.size() - 1;
}

/// Begins at the position of the row that is furthest behind; documents that other rows have had
/// are skipped.
RoundRobinDocuments::Pass& RoundRobinDocuments::shared_pass() {
  if (!shared_) {
    const auto last = std::min_element(
        rows_.begin(), rows_.end(),
        [](const auto& a, const auto& b) { return a->position.count < b->position.count; });
    auto pass = std::make_shared<Pass>(documents_, order_, (*last)->position);
    const std::lock_guard lock(place_mutex_);
    shared_ = std::move(pass);
  }
  return *shared_;
}

bool RoundRobinDocuments::next(size_t handle, Document& document) {
  const std::lock_guard lock(mutex_);
  Row& row = *rows_[handle];
  if (!row.queue.empty()) {
    Row::Waiting& waiting = row.queue.front();
    queued_bytes_ -= bytes_of(waiting.document);
    row.queued_bytes -= bytes_of(waiting.document);
    document = std::move(waiting.document);
    row.position = std::move(waiting.behind);
    row.epoch = waiting.epoch;
    row.queue.pop_front();
    return true;
  }
  Pass& pass = row.own_pass ? *row.own_pass : shared_pass();
  while (true) {
    const auto owner = static_cast<size_t>(pass.count % num_rows_);
    Row* const reader =
        row.own_pass ? (owner == static_cast<size_t>(row.row) ? &row : nullptr) : row_of_[owner];
    const bool is_wanted =
        reader && (reader == &row || !reader->own_pass) && pass.count >= reader->position.count;
    Document read;
    if (!pass.walk.next(is_wanted ? &read : nullptr)) return false;
    const int64_t epoch = pass.walk.epoch();
    ++pass.count;
    if (!is_wanted) continue;
    if (reader == &row) {
      document = std::move(read);
      row.position = pass.position();
      row.epoch = epoch;
      return true;
    }
    const size_t bytes = bytes_of(read);
    reader->queue.push_back({std::move(read), pass.position(), epoch});
    reader->queued_bytes += bytes;
    queued_bytes_ += bytes;
    if (queued_bytes_ > max_queued_bytes_)
      give_own_pass(**std::max_element(
          rows_.begin(), rows_.end(),
          [](const auto& a, const auto& b) { return a->queued_bytes < b->queued_bytes; }));
  }
}

void RoundRobinDocuments::give_own_pass(Row& row) {
  row.own_pass = std::make_unique<Pass>(documents_, order_, row.position);
  queued_bytes_ -= row.queued_bytes;
  row.queued_bytes = 0;
  row.queue.clear();
}

Value RoundRobinDocuments::position(size_t handle) const {
  const std::lock_guard lock(mutex_);
  const Position& position = rows_[handle]->position;
  return Value::map({{"count", position.count}, {"walk", position.walk}});
}

void RoundRobinDocuments::seek(size_t handle, const Value& position) {
  const std::lock_guard lock(mutex_);
  TITAN_ASSERT(!shared_, "seek after the first read");
  Row& row = *rows_[handle];
  row.position.count = saved_integer(position, "count");
  row.position.walk = saved_member(position, "walk");
  TITAN_CHECK(row.position.walk.is_null() || row.position.walk.is_map(), data,
              "the saved data position has no map 'walk'");
  if (row.position.walk.is_map())
    row.epoch = saved_integer(row.position.walk, "shard") / documents_.num_shards();
}

int64_t RoundRobinDocuments::epoch(size_t handle) const {
  const std::lock_guard lock(mutex_);
  return rows_[handle]->epoch;
}

std::string RoundRobinDocuments::place() const {
  std::shared_ptr<Pass> pass;
  {
    const std::lock_guard lock(place_mutex_);
    pass = shared_;
  }
  return pass ? pass->walk.place() : "its start";
}

}  // namespace titan::core
