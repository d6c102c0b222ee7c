// Tests of models: in this process on the smallest flavor, and as jobs.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <titan/files/file.h>
#include <titan/model.h>
#include <titan/nn/attention_layer.h>
#include <torch/csrc/autograd/autograd.h>

#include "kit/layouts.h"
#include "kit/samples.h"
#include "kit/toy.h"

namespace titan::conformance::model_kind {
namespace {

constexpr int64_t kLength = 16;
constexpr int64_t kMostParameters = 60'000'000;

struct SmallModel {
  std::string flavor;            ///< the smallest of the file; empty if it has none
  Value options = Value::map();  ///< of the flavor, below those of the option set
};

SmallModel small_model(TestContext& test) {
  const Subject& subject = test.subject();
  SmallModel small;
  int64_t smallest = 0;
  for (const Flavor& flavor : subject.plugin->flavors()) {
    if (flavor.model != subject.name) continue;
    const auto model = test.make<Model>({kLength}, flavor.preset);
    const int64_t count = ModelPart(model->build()).num_parameters();
    if (smallest > 0 && count >= smallest) continue;
    smallest = count;
    small = {flavor.name, flavor.preset};
  }
  for (const auto& [name, value] : subject.set.options.as_map()) small.options[name] = value;
  return small;
}

struct Built {
  explicit Built(TestContext& test)
      : options(small_model(test).options),
        model(test.make<Model>({kLength}, options)),
        part(model->build()) {
    if (part.num_parameters() > kMostParameters)
      throw Broken(
          titan::detail::concat("its smallest flavor and its defaults have ", part.num_parameters(),
                                " parameters; add a flavor below ", kMostParameters,
                                ", or give small sizes as [[options]] in conformance.toml"));
  }
  Batch batch(uint64_t seed, int64_t rows = 2) const {
    return drawn_batch(seed, rows, kLength, std::min<int64_t>(model->vocab_size(), 1000));
  }
  void fill(at::ScalarType dtype = at::kFloat, uint64_t seed = 1) {
    part.materialize(c10::kCPU, dtype, seed);
  }

  Value options;
  std::unique_ptr<Model> model;
  ModelPart part;
};

at::Tensor logits_of(Built& built, const Batch& batch) {
  const at::NoGradGuard no_gradients;
  Batch without = batch;
  without.labels = at::Tensor();
  return built.part.forward(at::Tensor(), without);
}

bool has_attention(Built& built) {
  bool has = false;
  built.part.visit_modules([&](const std::string&, nn::Module& module) {
    has = has || dynamic_cast<nn::AttentionLayer*>(&module);
  });
  return has;
}

void builds_on_meta(TestContext& test) {
  Built built(test);
  test.expect(built.part.layers().size() >= 2, "build() has fewer than 2 layers");
  test.expect(!built.part.parameters().empty(), "the model has no parameter");
  for (nn::Parameter* parameter : built.part.parameters())
    test.expect(parameter->value().is_meta(), "the parameter '", parameter->name(),
                "' has memory after build()");
}

void stable_names(TestContext& test) {
  Built one(test), other(test);
  const auto &a = one.part.all_parameters(), &b = other.part.all_parameters();
  std::set<std::string> seen;
  test.expect(a.size() == b.size(), "two calls of build() give ", a.size(), " and ", b.size(),
              " parameters");
  for (size_t i = 0; i < a.size(); ++i) {
    test.expect(a[i].name == b[i].name && a[i].shape == b[i].shape,
                "two calls of build() give the parameters '", a[i].name, "' and '", b[i].name,
                "', or two shapes");
    test.expect(!a[i].name.empty() && a[i].name.find_first_of(" /\\\n") == std::string::npos,
                "the name '", a[i].name, "' of a parameter is empty or holds a blank or a slash");
  }
}

void shapes(TestContext& test) {
  Built built(test);
  built.fill();
  const Batch batch = built.batch(test.seed());
  const at::Tensor logits = logits_of(built, batch);
  const at::IntArrayRef sizes = logits.sizes();
  test.expect(sizes.size() == 3 && sizes[0] == 2 && sizes[1] == kLength &&
                  sizes[2] == built.model->vocab_size(),
              "the logits of 2 rows of ", kLength, " tokens do not have the shape (2, ", kLength,
              ", vocab_size())");
  test.expect(loss_of(built.part, batch).numel() == 1,
              "with labels the last layer does not return one number, the sum of the losses");
}

void gradients(TestContext& test) {
  Built built(test);
  built.fill();
  torch::autograd::backward({loss_of(built.part, built.batch(test.seed(), 4))}, {});
  for (nn::Parameter* parameter : built.part.parameters()) {
    if (parameter->is_frozen() || parameter->is_state()) continue;
    test.expect(parameter->grad().defined(), "the parameter '", parameter->name(),
                "' has no gradient");
    test.expect(parameter->grad().isfinite().all().item<bool>(), "the gradient of '",
                parameter->name(), "' is not finite");
  }
}

void learns(TestContext& test) {
  Built built(test);
  built.fill();
  const Batch batch = built.batch(test.seed());
  double first = 0, last = 0;
  for (int step = 0; step < 8; ++step) {
    built.part.clear_gradients();
    const at::Tensor loss = loss_of(built.part, batch) / batch.labels.numel();
    last = loss.item<double>();
    if (step == 0) first = last;
    torch::autograd::backward({loss}, {});
    const at::NoGradGuard no_gradients;
    for (nn::Parameter* parameter : built.part.parameters())
      if (parameter->grad().defined())
        parameter->shard().sub_(parameter->grad() *
                                (0.02 / (parameter->grad().abs().max() + 1e-12)));
  }
  test.expect(std::isfinite(last) && last < first, "8 steps along the gradients turned the loss ",
              first, " into ", last);
}

void starts_uniform(TestContext& test) {
  Built built(test);
  built.fill();
  const Batch batch = built.batch(test.seed());
  const double loss = (loss_of(built.part, batch) / batch.labels.numel()).item<double>();
  const double uniform = std::log(static_cast<double>(built.model->vocab_size()));
  test.measure("excess over the loss of a uniform guess, relative", loss / uniform - 1);
}

/// Changes one token in each of several rows, at different places, and none in a further row.
void causal(TestContext& test) {
  constexpr int64_t kRows = 4, kNone = kLength;
  Built built(test);
  built.fill(at::kDouble);
  const bool attends = has_attention(built);
  const Batch batch = built.batch(test.seed(), kRows);
  const at::Tensor before = logits_of(built, batch);
  double leaked = 0;
  for (const auto& places : {std::array{int64_t{0}, kNone, kLength / 2, kLength - 1},
                             std::array{kNone, int64_t{1}, kLength / 2 - 1, kLength - 2}}) {
    Batch changed = batch;
    changed.tokens = batch.tokens.clone();
    auto* tokens = changed.tokens.mutable_data_ptr<int64_t>();
    for (int64_t row = 0; row < kRows; ++row) {
      if (places[row] == kNone) continue;
      int64_t& token = tokens[row * kLength + places[row]];
      token = (token + 1) % std::min<int64_t>(built.model->vocab_size(), 1000);
    }
    const at::Tensor change = (logits_of(built, changed) - before).abs().amax(2);
    const auto change_at = [&](int64_t row, int64_t i) { return change[row][i].item<double>(); };
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t place = places[row];
      for (int64_t i = 0; i < place; ++i) leaked = std::max(leaked, change_at(row, i));
      if (place == kNone) continue;
      test.expect(change_at(row, place) > 0, "the logits of token ", place,
                  " do not depend on the token");
      test.expect(!attends || place + 1 == kLength || change_at(row, place + 1) > 0,
                  "the logits of token ", place + 1, " do not depend on the token before it");
    }
  }
  test.measure("change by later tokens and other rows", leaked / before.abs().max().item<double>());
}

void initial_values(TestContext& test) {
  Built one(test), same(test), other(test);
  one.fill();
  same.fill();
  other.fill(at::kFloat, 2);
  bool depends_on_seed = false;
  for (size_t i = 0; i < one.part.parameters().size(); ++i) {
    const at::Tensor value = one.part.parameters()[i]->value();
    test.expect(value.isfinite().all().item<bool>(), "the initial values of '",
                one.part.parameters()[i]->name(), "' are not finite");
    test.expect(value.equal(same.part.parameters()[i]->value()), "the same seed gives '",
                one.part.parameters()[i]->name(), "' two values");
    depends_on_seed = depends_on_seed || !value.equal(other.part.parameters()[i]->value());
  }
  test.expect(depends_on_seed, "two seeds give the same weights");
}

void cut_anywhere(TestContext& test) {
  // the second part runs in another object, as on another rank: only the activation connects them
  Built built(test), other(test);
  built.fill();
  other.fill();
  const at::NoGradGuard no_gradients;
  Batch batch = built.batch(test.seed());
  batch.labels = at::Tensor();
  const at::Tensor whole = built.part.forward(at::Tensor(), batch);
  const std::vector<Layer>& layers = built.part.layers();
  size_t num_cuts = 0;
  for (size_t cut = 1; cut < layers.size(); ++cut) {
    if (layers[cut - 1].output_width == 0) continue;
    ++num_cuts;
    const at::Tensor x = built.part.forward(0, cut, at::Tensor(), batch);
    test.expect(x.dim() == 3 && x.size(2) == layers[cut - 1].output_width, "the layer '",
                layers[cut - 1].name, "' says that its output is ", layers[cut - 1].output_width,
                " wide, and it is ", x.size(-1));
    test.expect(other.part.forward(cut, layers.size(), x, batch).equal(whole),
                "a cut after the layer '", layers[cut - 1].name, "' changes the logits");
  }
  test.expect(num_cuts > 0, "no layer has an output_width, so no pipeline can cut the model");
}

void flops(TestContext& test) {
  const Built built(test);
  const Flops flops = built.model->flops_per_token(kLength),
              more = built.model->flops_per_token(1 << 20);
  test.expect(std::isfinite(flops.full_attention) && flops.full_attention > 0,
              "flops_per_token() is ", flops.full_attention);
  test.expect(flops.causal_half > 0 && flops.causal_half <= flops.full_attention, "causal_half is ",
              flops.causal_half, ", full_attention ", flops.full_attention);
  test.expect(more.full_attention >= flops.full_attention, "a longer sequence has fewer FLOPs");
}

Job model_job(TestContext& test, const std::string& name) {
  Job job = job_with(test, name);
  const SmallModel small = small_model(test);
  job.set_options({"model"}, small.options);
  if (!small.flavor.empty() && test.key("model.flavor").empty())
    job.set("model.flavor", small.flavor);
  const Built built(test);
  job.set("dataset.synthetic.vocab_size", std::min<int64_t>(built.model->vocab_size(), 64));
  return job.set("optimizer.lr", 1e-3).steps(3);
}

/// Against one rank, in float64.
void compare_layout(TestContext& test, const Axis& axis) {
  const Job job = model_job(test, "one").exact().saves();
  const JobRun one = job.run();
  measure_runs(test, with_axis(job.named("two"), axis).run(), one);
}

void layout_fsdp(TestContext& test) {
  compare_layout(test, kFsdp);
}
void layout_tensor(TestContext& test) {
  compare_layout(test, kTensor);
}
void layout_pipeline(TestContext& test) {
  compare_layout(test, kPipeline);
}
void layout_context(TestContext& test) {
  Built built(test);
  if (!has_attention(built)) throw NotApplicable{"the model has no attention layer"};
  compare_layout(test, kContext);
}

void recomputed(TestContext& test) {
  Job job = model_job(test, "kept").saves();
  const JobRun kept = job.run();
  expect_same_bits(test, job.named("recomputed").set("activation_checkpoint.mode", "full").run(),
                   kept, "recomputed and kept activations");
}

void resume(TestContext& test) {
  Job job = model_job(test, "through").saves().set("checkpoint.interval", 1);
  const JobRun through = job.run();
  Job again = job.named("again");
  again.run();
  for (const char* step : {"checkpoint/step-2", "checkpoint/step-3"})
    std::filesystem::remove_all(again.folder() / step);
  expect_same_bits(test, again.run(), through, "after a resume from step 1");
}

void generates(TestContext& test) {
  const std::string assets = write_tokenizer(test.place().folder).string();
  Job job = model_job(test, "trained").saves().steps(1);
  job.set("model.hf_assets_path", assets);
  const Built built(test);
  if (built.model->vocab_size() < kSampleVocab) job.set("model.vocab_size", kSampleVocab);
  job.run();
  const auto text = [&](const char* cache) {
    ProgramCall call{
        test.place().program,
        {"generate", "--job.config_file", (test.place().folder / "trained.toml").string(),
         "--checkpoint", (job.folder() / "checkpoint").string(), "--prompt", "Hello",
         "--max-new-tokens", "8", "--ignore-eos", "--json"},
        test.place().folder,
        {"OMP_NUM_THREADS=1"}};
    if (*cache) call.arguments.push_back(cache);
    const ProgramRun run = run_program(call);
    test.expect(run.code == 0, "titan generate ", run.end());
    return run.output;
  };
  test.expect(text("") == text("--no-cache"),
              "8 tokens that titan generate takes with its cache and without it differ");
}

void exports(TestContext& test) {
  Job job = model_job(test, "trained").saves();
  job.run();
  const std::filesystem::path hf = test.place().folder / "hf", back = test.place().folder / "back";
  const auto convert = [&](const char* direction, const std::string& from, const std::string& to) {
    const ProgramRun run =
        run_program({test.place().program,
                     {"convert", direction, from, to, "--verify", "--job.config_file",
                      (test.place().folder / "trained.toml").string()},
                     test.place().folder});
    test.expect(run.code == 0, "titan convert ", direction, " ", run.end());
  };
  convert("to-hf", (job.folder() / "checkpoint/step-3").string(), hf.string());
  convert("from-hf", hf.string(), back.string());
}

}  // namespace
}  // namespace titan::conformance::model_kind

namespace titan::conformance {

std::vector<Test> model_tests() {
  using namespace model_kind;
  constexpr const char* kKind = "model";
  return {
      {kKind, "builds_on_meta", "build() gives two layers or more, and no parameter has memory.",
       builds_on_meta},
      {kKind, "stable_names",
       "Two calls of build() give the same names and shapes, without blanks and slashes.",
       stable_names},
      {kKind, "shapes",
       "The logits have the shape (rows, tokens, vocab_size()); with labels the loss is one "
       "number.",
       shapes},
      {kKind, "gradients", "Every trained parameter gets a gradient, and all are finite.",
       gradients},
      {kKind, "learns", "Eight small steps along the gradients lower the loss of one batch.",
       learns},
      {kKind, "starts_uniform",
       "The first loss is at most the tolerance above that of a uniform guess.", starts_uniform, "",
       0.5},
      {kKind, "causal",
       "The logits of a token depend on it and, if a layer attends, on the one before, but not on "
       "later tokens or other rows.",
       causal, "", 1e-9},
      {kKind, "initial_values",
       "Initial values are finite, equal for one seed and different for two.", initial_values},
      {kKind, "cut_anywhere",
       "Layers run in two parts give the logits of the whole, after every layer with an "
       "output_width.",
       cut_anywhere},
      {kKind, "flops", "The FLOPs per token are above 0 and do not fall with the sequence.", flops},
      {kKind, "layout_fsdp",
       "A float64 run over 2 ranks of FSDP gives losses and weights of one rank.", layout_fsdp, "",
       1e-9},
      {kKind, "layout_tensor",
       "A float64 run over 2 ranks of tensor parallelism gives losses and weights of one rank.",
       layout_tensor, "", 1e-9},
      {kKind, "layout_pipeline",
       "A float64 run over 2 ranks of a pipeline gives losses and weights of one rank.",
       layout_pipeline, "", 1e-9},
      {kKind, "layout_context",
       "A float64 run over 2 ranks of context parallelism gives losses and weights of one rank.",
       layout_context, "", 1e-9},
      {kKind, "recomputed",
       "A run that recomputes all blocks gives losses and weights of one that keeps them, bit for "
       "bit.",
       recomputed},
      {kKind, "resume", "A run that resumes from step 1 equals a whole run bit for bit.", resume},
      {kKind, "generates", "titan generate gives the same 8 tokens with its cache and without it.",
       generates},
      {kKind, "exports",
       "titan convert writes a Hugging Face folder and reads it back, each verified.", exports,
       "HfExchange"},
  };
}

}  // namespace titan::conformance
