#include "core/data/loader.h"

#include <ATen/ops/empty.h>

#include <titan/error.h>

#include "core/runtime/signals.h"

namespace titan::core {

Loader::Loader(const Dataset& dataset, const Tokenizer& tokenizer, const LoaderOptions& options)
    : options_(options) {
  TITAN_ASSERT(options.num_own_rows % options.rows_per_microbatch == 0, options.num_own_rows);
  const auto num_documents = dataset.num_documents();
  TITAN_CHECK(!num_documents || *num_documents >= options.num_rows, data,
              "documents in the data set: ", num_documents.value_or(0), "; the global batch has ",
              options.num_rows,
              " sequences and each reads documents of its own; use more data or a smaller "
              "training.global_batch_size or training.local_batch_size");
  for (int64_t i = 0; i < options.num_own_rows; ++i) {
    const RowShard shard = {.row = options.first_row + i, .num_rows = options.num_rows};
    rows_.emplace_back(dataset.open(shard), tokenizer, shard, options.seq_len + 1);
  }
  state_ = read_state();
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Loader::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !prepared_.empty(); });
  if (prepared_.front().error)
    std::rethrow_exception(prepared_.front().error);  // stays: every later call fails too
}

StepBatches Loader::next_step() {
  start();
  Prepared next;
  {
    const std::lock_guard lock(mutex_);
    next = std::move(prepared_.front());
    prepared_.pop_front();
  }
  changed_.notify_all();
  state_ = std::move(next.state);
  return std::move(next.batches);
}

void Loader::restore(const Value& state) {
  TITAN_ASSERT(!thread_.joinable(), "a loader is restored before its first step");
  const int64_t num_rows = state.at("num_rows").as_integer();
  TITAN_CHECK(num_rows == options_.num_rows, data, "the saved data position has ", num_rows,
              " rows, this run's global batch has ", options_.num_rows,
              "; resume with the same global batch size");
  const Value::List& rows = state.at("rows").as_list();
  const int64_t first = state.at("first_row").as_integer();
  for (int64_t i = 0; i < options_.num_own_rows; ++i) {
    const int64_t index = options_.first_row + i - first;
    TITAN_CHECK(index >= 0 && index < static_cast<int64_t>(rows.size()), data,
                "the saved data position has no row ", options_.first_row + i);
    rows_[static_cast<size_t>(i)].restore(rows[static_cast<size_t>(index)]);
  }
  state_ = read_state();
}

void Loader::run() {
  block_signals();
  while (true) {
    Prepared prepared;
    try {
      prepared.batches = read_step();
      prepared.state = read_state();
    } catch (...) {
      prepared.error = std::current_exception();
    }
    const bool failed = static_cast<bool>(prepared.error);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return closing_ || static_cast<int64_t>(prepared_.size()) < options_.num_prefetched_steps;
    });
    if (closing_) return;
    prepared_.push_back(std::move(prepared));
    lock.unlock();
    changed_.notify_all();
    if (failed) return;
  }
}

StepBatches Loader::read_step() {
  StepBatches step;
  const int64_t rows = options_.rows_per_microbatch, seq_len = options_.seq_len;
  const auto int64s = at::TensorOptions().dtype(at::kLong);
  for (size_t first = 0; first < rows_.size(); first += static_cast<size_t>(rows)) {
    Batch batch;
    batch.tokens = at::empty({rows, seq_len}, int64s);
    batch.labels = at::empty({rows, seq_len}, int64s);
    int64_t* tokens = batch.tokens.mutable_data_ptr<int64_t>();
    int64_t* labels = batch.labels.mutable_data_ptr<int64_t>();
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<int32_t> window = rows_[first + static_cast<size_t>(row)].next();
      std::copy(window.begin(), window.end() - 1, tokens + row * seq_len);
      std::copy(window.begin() + 1, window.end(), labels + row * seq_len);
    }
    step.num_local_valid_tokens += rows * seq_len;  // packed windows have a target everywhere
    step.microbatches.push_back(std::move(batch));
  }
  step.num_valid_tokens = step.num_local_valid_tokens;
  return step;
}

Value Loader::read_state() const {
  Value::List rows;
  for (const RowPacker& row : rows_) rows.push_back(row.state());
  return Value::map({{"num_rows", options_.num_rows},
                     {"first_row", options_.first_row},
                     {"rows", std::move(rows)}});
}

}  // namespace titan::core
