#include <titan/testing/network.h>

#include <cstring>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <titan/models/transformer.h>
#include <titan/optimizer.h>
#include <titan/plugin.h>
#include <titan/transform.h>
#include <titan/watcher.h>

namespace titan::testing {
namespace {

constexpr int64_t kRows = 2, kSeqLen = 16, kVocabSize = 64;
constexpr uint64_t kWeightsSeed = 7;

/// The CPU as the device of one rank.
class OneCpu final : public Device {
 public:
  c10::Device device() const override { return c10::kCPU; }
  std::string description() const override { return "the CPU of a unit test"; }
  MemoryStats memory() const override { return {}; }
  void reset_peak_memory() override {}
  std::optional<double> peak_flops(c10::ScalarType) const override { return std::nullopt; }
  void synchronize() override {}
  std::shared_ptr<dist::Backend> connect(const dist::Endpoint&) override {
    return dist::make_single_rank_backend();
  }
};

std::vector<Layer> small_layers() {
  return models::build_layers({.dim = 32,
                               .n_layers = 2,
                               .n_heads = 2,
                               .n_kv_heads = 1,
                               .head_dim = 16,
                               .ffn_dim = 64,
                               .vocab_size = kVocabSize});
}

/// Keeps what a watcher logs.
class KeptLog final : public WatcherLog {
 public:
  explicit KeptLog(Watched& watched) : watched_(watched) {}
  void log(int64_t step, std::span<const Scalar> scalars) override {
    for (const Scalar& scalar : scalars) watched_[step][std::string(scalar.tag)] = scalar.value;
  }
  void log_histograms(int64_t, std::span<const Histogram>) override {}

 private:
  Watched& watched_;
};

template <class Interface>
std::unique_ptr<Interface> created(const Component& component, const Value& options,
                                   const typename Interface::Context& context) {
  const std::shared_ptr<void> checked = component.schema.make(options);
  return std::unique_ptr<Interface>(
      static_cast<Interface*>(component.make(checked.get(), &context)));
}

at::Generator generator(uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

}  // namespace

struct Network::Members {
  Members(std::vector<Layer> layers, int64_t vocab)
      : part(std::move(layers)), vocab_size(vocab), context{.mesh = mesh, .device = *device} {}

  dist::Mesh mesh;
  std::unique_ptr<Device> device = std::make_unique<OneCpu>();
  std::vector<std::unique_ptr<ModelTransform>> transforms;  // kernels in layers may refer to them
  std::unique_ptr<Model> model;
  ModelPart part;
  int64_t vocab_size;
  TransformContext context;
  bool has_values = false;
};

Network::Network() : members_(std::make_unique<Members>(small_layers(), kVocabSize)) {}
Network::Network(const Component& model, const Value& options) {
  std::unique_ptr<Model> made = created<Model>(model, options, ModelContext{.seq_len = kSeqLen});
  members_ = std::make_unique<Members>(made->build(), made->vocab_size());
  members_->model = std::move(made);
}
Network::~Network() = default;

ModelPart& Network::part() {
  return members_->part;
}
const TransformContext& Network::context() const {
  return members_->context;
}

std::vector<std::string> Network::parameters() const {
  std::vector<std::string> names;
  for (const nn::Parameter* p : members_->part.parameters()) names.push_back(p->name());
  return names;
}

std::map<std::string, std::string> Network::kernel_owners() const {
  std::map<std::string, std::string> owners;
  members_->part.visit_modules([&](const std::string& path, nn::Module& module) {
    if (const std::string owner = module.computed_by(); !owner.empty()) owners[path] = owner;
  });
  return owners;
}

void Network::apply(const Component& transform, const Value& options) {
  TITAN_CHECK(!members_->has_values, internal, "a transform is applied before the first run");
  auto made = created<ModelTransform>(transform, options, members_->context);
  made->apply(members_->part, members_->context);
  members_->part.refresh();
  members_->transforms.push_back(std::move(made));
}

Gradients Network::run(uint64_t seed) {
  ModelPart& part = members_->part;
  if (!std::exchange(members_->has_values, true))
    part.materialize(c10::kCPU, at::kFloat, kWeightsSeed);
  part.clear_gradients();
  const at::Tensor text =
      at::randint(members_->vocab_size, {kRows, kSeqLen + 1}, generator(seed), at::kLong);
  Batch batch;
  batch.tokens = text.narrow(1, 0, kSeqLen).contiguous();
  batch.labels = text.narrow(1, 1, kSeqLen).contiguous();
  const at::Tensor loss = part.forward(at::Tensor(), batch);
  loss.backward();
  Gradients gradients{.loss = loss.item<double>()};
  for (nn::Parameter* p : part.parameters())
    if (p->grad().defined()) gradients.of[p->name()] = p->grad().clone();
  return gradients;
}

Watched Network::watch(const Component& component, const Value& options,
                       const std::vector<int64_t>& steps) {
  Watched watched;
  KeptLog log(watched);
  const auto watcher = created<Watcher>(
      component, options,
      WatcherContext{.mesh = members_->mesh, .device = *members_->device, .log = log});
  watcher->match(members_->part);
  watcher->attach(members_->part);
  const std::vector<StepMember*> members = watcher->members();
  GradientReducer* follower = watcher->follower();
  for (const int64_t number : steps) {
    Step step{.number = number};
    watcher->before_step(number);
    for (StepMember* member : members) member->begin(step);
    if (follower) {
      follower->begin_step();
      follower->start_microbatch(/*is_last=*/true);
    }
    step.loss.normalized_sum = run(static_cast<uint64_t>(number)).loss / (kRows * kSeqLen);
    if (follower) follower->finish_gradients();
    for (StepMember* member : members) member->reduced(step);
    for (StepMember* member : members) member->judge(step);
    for (StepMember* member : members) member->commit(step);
    log.log(number, step.scalars);
    watcher->report(number);
    watcher->after_step(number);
  }
  watcher->finish(steps.empty() ? 0 : steps.back());
  return watched;
}

std::unique_ptr<nn::Parameter> parameter(const std::string& name, std::vector<int64_t> shape) {
  auto made = std::make_unique<nn::Parameter>(std::move(shape), nn::Init::normal(0, 1));
  made->set_name(name);
  made->materialize(c10::kCPU, at::kFloat, kWeightsSeed);
  return made;
}

at::Tensor random(std::vector<int64_t> shape, uint64_t seed) {
  return at::randn(shape, generator(seed), at::kFloat);
}

void copy_states(Optimizer& from, Optimizer& to) {
  std::map<std::string, at::Tensor> saved;
  const auto key = [](const nn::Parameter& p, std::string_view name) {
    return p.name() + "/" + std::string(name);
  };
  if (auto* states = dynamic_cast<StatefulOptimizer*>(&from))
    states->visit_state(
        [&](nn::Parameter& p, const OptimizerState& declared, const at::Tensor& state) {
          saved[key(p, declared.name())] = state.clone();
        });
  if (auto* states = dynamic_cast<StatefulOptimizer*>(&to))
    states->visit_state(
        [&](nn::Parameter& p, const OptimizerState& declared, const at::Tensor& state) {
          state.copy_(saved.at(key(p, declared.name())));
        });
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor left = a.detach().contiguous(), right = b.detach().contiguous();
  return std::memcmp(left.const_data_ptr(), right.const_data_ptr(), left.nbytes()) == 0;
}

double relative_difference(const at::Tensor& reached, const at::Tensor& expected) {
  return (reached - expected).norm().item<double>() / expected.norm().item<double>();
}

}  // namespace titan::testing
