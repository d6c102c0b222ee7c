#include <titan/dist/group.h>

#include <ATen/ops/full.h>

namespace titan::dist {
namespace {

class SingleRankBackend final : public Backend {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(at::Tensor&, Reduce) override {}
  void all_gather(at::Tensor& out, const at::Tensor& in) override { out.copy_(in); }
  void reduce_scatter(at::Tensor& out, const at::Tensor& in, Reduce) override { out.copy_(in); }
  void broadcast(at::Tensor&, int) override {}
  void barrier() override {}
};

}  // namespace

Backend::~Backend() = default;

std::shared_ptr<Backend> make_single_rank_backend() {
  return std::make_shared<SingleRankBackend>();
}

Group::Group() : Group("self", make_single_rank_backend()) {}
Group::Group(std::string name, std::shared_ptr<Backend> backend)
    : name_(std::move(name)), backend_(std::move(backend)) {}

int64_t Group::all_reduce(int64_t value, Reduce reduce) const {
  at::Tensor box = at::full({1}, value, at::TensorOptions().dtype(at::kLong));
  all_reduce(box, reduce);
  return box.item<int64_t>();
}

double Group::all_reduce(double value, Reduce reduce) const {
  at::Tensor box = at::full({1}, value, at::TensorOptions().dtype(at::kDouble));
  all_reduce(box, reduce);
  return box.item<double>();
}

}  // namespace titan::dist
