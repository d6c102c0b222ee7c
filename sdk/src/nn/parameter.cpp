#include <titan/nn/parameter.h>

#include <numeric>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <titan/dist/chunk.h>
#include <titan/error.h>

namespace titan::nn {
namespace {

/// Autograd keeps one hook per leaf and calls it with the parameter after the gradient has been
/// accumulated.
class GradientHook : public torch::autograd::PostAccumulateGradHook {
 public:
  explicit GradientHook(std::function<void()> run) : run_(std::move(run)) {}
  void operator()(const torch::autograd::Variable&) override { run_(); }

 private:
  std::function<void()> run_;
};

at::Tensor make_leaf(const std::vector<int64_t>& sizes, c10::Device device, at::ScalarType dtype,
                     bool is_frozen) {
  return at::empty(sizes, at::TensorOptions().device(device).dtype(dtype))
      .set_requires_grad(!is_frozen);
}

}  // namespace

GatherTransform::~GatherTransform() = default;

Parameter::Parameter(std::vector<int64_t> shape, const Init& init)
    : global_shape_(std::move(shape)),
      init_(init),
      slice_{std::vector<int64_t>(global_shape_.size(), 0), global_shape_},
      value_(make_leaf(global_shape_, c10::kMeta, at::kFloat, false)) {}

Parameter::Parameter(std::vector<int64_t> shape, const Init& init, at::ScalarType dtype)
    : Parameter(std::move(shape), init) {
  owner_ = "the module that declares it";
  own_dtype_ = dtype;
  is_frozen_ = true;
  value_ = make_leaf(global_shape_, c10::kMeta, dtype, /*is_frozen=*/true);
}

int64_t Parameter::global_num_elements() const {
  return std::accumulate(global_shape_.begin(), global_shape_.end(), int64_t{1},
                         std::multiplies<>());
}

void Parameter::shard_over(int64_t dim, const dist::Group& group) {
  TITAN_ASSERT(!materialized_, "parameter '", name_, "' is sharded after it got memory");
  TITAN_ASSERT(dim >= 0 && dim < static_cast<int64_t>(slice_.sizes.size()), "dimension ", dim,
               " of '", name_, "'");
  TITAN_CHECK(!is_state(), plugin, "'", name_,
              "' is state of a module, which every rank with "
              "the module holds whole; it cannot be cut over '",
              group.name(), "'");
  const dist::Chunk chunk = dist::chunk_of(slice_.sizes[dim], group);
  slice_.offsets[dim] += chunk.begin;
  slice_.sizes[dim] = chunk.size;
  shardings_.push_back({dim, group.name()});
  value_ = make_leaf(slice_.sizes, c10::kMeta, at::kFloat, is_frozen_);
}

void Parameter::leave_to(const std::string& owner) {
  TITAN_CHECK(owner_.empty() || owner_ == owner, config, "parameter '", name_, "' is owned by ",
              owner_, " already, and ", owner, " claims it too; choose one of the two");
  TITAN_ASSERT(!shard_.defined(), "parameter '", name_,
               "' is claimed after data parallelism has taken it");
  owner_ = owner;
}

void Parameter::set_gather_transform(std::string owner,
                                     std::shared_ptr<GatherTransform> transform) {
  TITAN_CHECK(!gather_transform_, config, "the gather of '", name_, "' is owned by ", gather_owner_,
              " already, and ", owner,
              " would replace that: exclude the layer from one of them, or use only one");
  gather_transform_ = std::move(transform);
  gather_owner_ = std::move(owner);
}

void Parameter::on_complete_gradient(std::function<void(Parameter&)> f) {
  TITAN_ASSERT(!on_complete_, "two callbacks were set for the complete gradient of '", name_, "'");
  on_complete_ = std::move(f);
}

void Parameter::freeze() {
  TITAN_ASSERT(!materialized_ && !shard_.defined(), "parameter '", name_,
               "' is frozen after it got memory or was separated from its shard");
  is_frozen_ = true;
  value_.set_requires_grad(false);
}

void Parameter::allocate(c10::Device device, at::ScalarType dtype) {
  TITAN_ASSERT(!name_.empty(), "a parameter gets memory before it has a name");
  TITAN_ASSERT(!materialized_, "parameter '", name_, "' gets memory twice");
  (shard_.defined() ? shard_ : value_) = make_leaf(slice_.sizes, shard_device_.value_or(device),
                                                   own_dtype_.value_or(dtype), is_frozen_);
  materialized_ = true;
  attach_gradient_hook();
}

void Parameter::materialize(c10::Device device, at::ScalarType dtype, uint64_t seed) {
  allocate(device, dtype);
  at::Tensor memory = shard().detach();
  fill(memory, init_, seed, name_, global_shape_, slice_);
}

void Parameter::clear_gradient() {
  shard().mutable_grad() = at::Tensor();
  value_.mutable_grad() = at::Tensor();
}

void Parameter::add_gradient(const at::Tensor& gradient) {
  at::NoGradGuard no_grad;
  torch::autograd::variable_list hooked = {gradient};
  for (const auto& hook : torch::autograd::impl::hooks(value_)) hooked = (*hook)(hooked);
  at::Tensor& total = value_.mutable_grad();
  if (total.defined())
    total.add_(hooked[0]);
  else
    total = hooked[0];
  for (const auto& f : gradient_functions_) f(*this);
}

void Parameter::separate_value(at::Tensor leaf) {
  TITAN_ASSERT(!is_state(), "'", name_, "' is state of a module: it has one value");
  TITAN_ASSERT(leaf.is_leaf() && leaf.requires_grad() != is_frozen_, "'", name_,
               "': the value must be a leaf that takes gradients unless the parameter is frozen");
  if (!shard_.defined()) shard_ = value_;
  value_ = std::move(leaf);
  attach_gradient_hook();
}

void Parameter::on_gradient(std::function<void(Parameter&)> f) {
  gradient_functions_.push_back(std::move(f));
  if (gradient_functions_.size() == 1) attach_gradient_hook();
}

void Parameter::attach_gradient_hook() {
  if (gradient_functions_.empty() || is_frozen_) return;
  torch::autograd::impl::set_post_acc_grad_hooks(value_, std::make_unique<GradientHook>([this] {
                                                   for (const auto& f : gradient_functions_)
                                                     f(*this);
                                                 }));
}

}  // namespace titan::nn
