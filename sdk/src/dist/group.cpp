#include <titan/dist/group.h>

#include <algorithm>
#include <numeric>

#include <ATen/ops/full.h>
#include <c10/util/accumulate.h>

#include <titan/error.h>

#include "comm_scope.h"

namespace titan::dist {
namespace {

class SingleRankBackend final : public Backend {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::shared_ptr<Work> all_reduce(const at::Tensor&, Reduce) override { return nullptr; }
  std::shared_ptr<Work> all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return copy(out, in);
  }
  std::shared_ptr<Work> reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                                       Reduce) override {
    return copy(out, in);
  }
  std::shared_ptr<Work> all_to_all(const at::Tensor& out, const at::Tensor& in,
                                   const RowSplits&) override {
    return copy(out, in);
  }
  std::shared_ptr<Work> broadcast(const at::Tensor&, int) override { return nullptr; }
  std::shared_ptr<Work> send(const at::Tensor&, int, int) override { return refuse(); }
  std::shared_ptr<Work> receive(const at::Tensor&, int, int) override { return refuse(); }
  std::shared_ptr<Work> barrier() override { return nullptr; }
  void set_timeout(std::chrono::milliseconds) override {}

 private:
  static std::shared_ptr<Work> copy(const at::Tensor& out, const at::Tensor& in) {
    if (!out.is_same(in)) at::Tensor(out).copy_(in);
    return nullptr;
  }
  static std::shared_ptr<Work> refuse() {
    fail(ErrorKind::internal, "a single rank has no peer to send to or receive from");
  }
};

/// " (8 bytes)"; empty if this rank only receives or waits.
std::string bytes_in_words(const CommRecord& record) {
  return record.bytes > 0 ? " (" + std::to_string(record.bytes) + " bytes)" : "";
}

/// The bytes that a rank sends of a buffer with a chunk for each rank: all chunks except its own.
int64_t all_but_own(int64_t bytes, int size) {
  return bytes * (size - 1) / size;
}

/// `what`: "sends" or "receives". `rows`: rows of `tensor` for each rank of `group`.
void check_rows(const Group& group, const char* what, const std::vector<int64_t>& rows,
                const at::Tensor& tensor) {
  TITAN_CHECK(rows.size() == static_cast<size_t>(group.size()), internal, "all_to_all over group '",
              group.name(), "': ", rows.size(), " counts of rows that a rank ", what,
              ", but there are ", group.size(), " ranks");
  const int64_t total = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  TITAN_CHECK(total == tensor.size(0) && *std::min_element(rows.begin(), rows.end()) >= 0, internal,
              "all_to_all over group '", group.name(), "': this rank ", what, " ",
              at::IntArrayRef(rows), " = ", total, " rows, but the tensor has ", tensor.size(0));
}

}  // namespace

Work::~Work() = default;
Backend::~Backend() = default;

void Backend::abort(const std::string&) {}

std::shared_ptr<Backend> make_single_rank_backend() {
  return std::make_shared<SingleRankBackend>();
}

struct Pending::State {
  std::shared_ptr<Work> work;
  std::shared_ptr<Recorder> recorder;
  int64_t ticket = 0;
  bool done = false;
};

Pending::Pending(std::shared_ptr<Work> work, std::shared_ptr<Recorder> recorder, int64_t ticket)
    : state_(std::make_shared<State>(State{std::move(work), std::move(recorder), ticket})) {}

void Pending::wait() {
  if (!state_ || std::exchange(state_->done, true)) return;
  if (state_->work) {
    const WaitScope waits(*state_->recorder);
    const CommScope traced(CommScope::Part::wait, *state_->recorder, state_->ticket);
    state_->recorder->await(state_->ticket);
    try {
      state_->work->wait();
    } catch (const std::exception& e) {
      const CommRecord record = state_->recorder->find(state_->ticket);
      const std::string text = e.what();
      fail(ErrorKind::distributed, record.operation, " number ", record.sequence, " of group '",
           record.group, "'", bytes_in_words(record), " failed: ", text.substr(0, text.find('\n')));
    }
    state_->work.reset();
  }
  state_->recorder->finish(state_->ticket);
}

Group::Group() : Group("self", make_single_rank_backend()) {}
Group::Group(std::string name, std::shared_ptr<Backend> backend, std::shared_ptr<Recorder> recorder)
    : name_(std::move(name)),
      backend_(std::move(backend)),
      recorder_(recorder ? std::move(recorder) : std::make_shared<Recorder>(64)) {}

template <class Start>
Pending Group::record(const char* operation, int64_t bytes, const Start& start, int peer) const {
  std::string name = operation;
  if (peer >= 0) name += " " + std::to_string(peer);
  if (size() == 1) {  // nothing is sent or counted
    start();
    return {};
  }
  const WaitScope waits(*recorder_);
  const int64_t ticket = recorder_->start(name_, std::move(name), bytes);
  const CommScope traced(CommScope::Part::start, *recorder_, ticket);
  try {
    Pending pending(start(), recorder_, ticket);
    return pending;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    const std::string text = e.what();
    const CommRecord record = recorder_->find(ticket);
    fail(ErrorKind::distributed, record.operation, " number ", record.sequence, " of group '",
         name_, "'", bytes_in_words(record), " could not start: ", text.substr(0, text.find('\n')));
  }
}

Pending Group::all_reduce(const at::Tensor& inout, Reduce reduce) const {
  return record("all_reduce", 2 * all_but_own(inout.nbytes(), size()),
                [&] { return backend_->all_reduce(inout, reduce); });
}

Pending Group::all_gather(const at::Tensor& out, const at::Tensor& in) const {
  TITAN_ASSERT(out.numel() == size() * in.numel(), out.sizes(), " from ", in.sizes());
  return record("all_gather", all_but_own(out.nbytes(), size()),
                [&] { return backend_->all_gather(out, in); });
}

Pending Group::reduce_scatter(const at::Tensor& out, const at::Tensor& in, Reduce reduce) const {
  TITAN_ASSERT(in.numel() == size() * out.numel(), in.sizes(), " to ", out.sizes());
  return record("reduce_scatter", all_but_own(in.nbytes(), size()),
                [&] { return backend_->reduce_scatter(out, in, reduce); });
}

Pending Group::all_to_all(const at::Tensor& out, const at::Tensor& in,
                          const RowSplits& splits) const {
  const auto start = [&] { return backend_->all_to_all(out, in, splits); };
  if (splits.is_equal()) {
    TITAN_ASSERT(in.numel() == out.numel() && in.size(0) % size() == 0, in.sizes());
    return record("all_to_all", all_but_own(in.nbytes(), size()), start);
  }
  TITAN_ASSERT(in.sizes().slice(1) == out.sizes().slice(1) && in.dtype() == out.dtype(), in.dtype(),
               " rows of ", in.sizes(), " cannot become ", out.dtype(), " rows of ", out.sizes());
  check_rows(*this, "sends", splits.sent, in);
  check_rows(*this, "receives", splits.received, out);
  const int64_t row_elements = c10::multiply_integers(in.sizes().slice(1));
  const int64_t num_others = in.size(0) - splits.sent[static_cast<size_t>(rank())];
  return record("all_to_all", num_others * row_elements * static_cast<int64_t>(in.element_size()),
                start);
}

Pending Group::broadcast(const at::Tensor& inout, int root) const {
  return record(
      "broadcast from", rank() == root ? static_cast<int64_t>(inout.nbytes()) : 0,
      [&] { return backend_->broadcast(inout, root); }, root);
}

Pending Group::send(const at::Tensor& tensor, int peer, int tag) const {
  return record(
      "send to", tensor.nbytes(), [&] { return backend_->send(tensor, peer, tag); }, peer);
}

Pending Group::receive(const at::Tensor& tensor, int peer, int tag) const {
  return record(
      "receive from", 0, [&] { return backend_->receive(tensor, peer, tag); }, peer);
}

void Group::barrier() const {
  record("barrier", 0, [&] { return backend_->barrier(); }).wait();
}

int64_t Group::all_reduce(int64_t value, Reduce reduce, c10::Device device) const {
  if (size() == 1 || device.is_meta()) return value;
  at::Tensor box = at::full({1}, value, at::TensorOptions().dtype(at::kLong).device(device));
  all_reduce(box, reduce).wait();
  return box.item<int64_t>();
}

double Group::all_reduce(double value, Reduce reduce, c10::Device device) const {
  if (size() == 1 || device.is_meta()) return value;
  at::Tensor box = at::full({1}, value, at::TensorOptions().dtype(at::kDouble).device(device));
  all_reduce(box, reduce).wait();
  return box.item<double>();
}

}  // namespace titan::dist
