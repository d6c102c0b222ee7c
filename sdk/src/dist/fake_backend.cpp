// A backend for one rank of many that communicates with no peer: shapes, schedules and traffic are
// real, values are not.
#include <algorithm>

#include <titan/dist/group.h>

namespace titan::dist {
namespace {

class FakeBackend final : public Backend {
 public:
  FakeBackend(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::shared_ptr<Work> all_reduce(const at::Tensor&, Reduce) override { return nullptr; }
  std::shared_ptr<Work> all_gather(const at::Tensor& out, const at::Tensor& in) override {
    if (in.numel() == 0 || in.is_meta()) return nullptr;
    const at::Tensor own = in.clone();  // may be a slice of out
    out.view({size_, -1}).copy_(own.view({1, -1}));
    return nullptr;
  }
  std::shared_ptr<Work> reduce_scatter(const at::Tensor& out, const at::Tensor& in,
                                       Reduce) override {
    if (in.numel() != 0 && !in.is_meta())
      at::Tensor(out).view({-1}).copy_(in.view({size_, -1})[rank_]);
    return nullptr;
  }
  std::shared_ptr<Work> all_to_all(const at::Tensor& out, const at::Tensor& in,
                                   const RowSplits& splits) override {
    if (in.is_meta()) return nullptr;
    if (splits.sent == splits.received) {
      at::Tensor(out).copy_(in);
      return nullptr;
    }
    at::Tensor(out).zero_();
    int64_t from = 0, to = 0;
    for (size_t peer = 0; peer < splits.sent.size(); ++peer) {
      const int64_t sent = splits.sent[peer], received = splits.received[peer];
      const int64_t num_rows = std::min(sent, received);
      out.narrow(0, to, num_rows).copy_(in.narrow(0, from, num_rows));
      from += sent;
      to += received;
    }
    return nullptr;
  }
  std::shared_ptr<Work> broadcast(const at::Tensor&, int) override { return nullptr; }
  std::shared_ptr<Work> send(const at::Tensor&, int, int) override { return nullptr; }
  std::shared_ptr<Work> receive(const at::Tensor& tensor, int, int) override {
    at::Tensor(tensor).zero_();
    return nullptr;
  }
  std::shared_ptr<Work> barrier() override { return nullptr; }
  void set_timeout(std::chrono::milliseconds) override {}

 private:
  int rank_, size_;
};

}  // namespace

std::shared_ptr<Backend> make_fake_backend(int rank, int size) {
  return std::make_shared<FakeBackend>(rank, size);
}

}  // namespace titan::dist
