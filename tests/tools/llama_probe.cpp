// Runs a model plugin and an optimizer plugin for the referees of models and of AdamW.
//
//   llama_probe --plugins <folder> [--job <job.json> --out <folder>]
//
// Without --job and --out it reads jobs from standard input (probe_files.h). A job is a map:
//   model, seq_len, seed   the plugin's name, [training] seq_len, the seed of the initial weights;
//                          without a seed the model gets no memory and only result.json is written
//   options, flavor        the model's options; the preset of a flavor, which the options override
//   weights                folder of <fqn>.bin that replace initial weights (optional; a parameter
//                          without a file is an error)
//   tokens, labels         files of int64, each of `batches` x `rows` x seq_len; without
//                          them nothing is run
//   positions              file of int64, rows x seq_len (optional)
//   ropes                  list of {theta, head_dim, scaling_factor}: the frequencies of each are
//                          written (optional)
//   optimizer              {name, options, steps, max_norm, lr_factors} (optional): step k
//                          trains on batch k
//   gradients              folder of <fqn>.bin with `steps` gradients each: the optimizer
//                          gets these, nothing is run
//   dtype                  "float64": the model computes in it (optional; else float32)
//   outputs                list of patterns of modules whose outputs are written (optional)
//
// Writes result.json, logits.bin, gradients/<fqn>.bin and outputs/<module>.bin of batch 0,
// parameters/<fqn>.bin before and final/<fqn>.bin after the steps. Files are raw little-endian fp32
// or int64.
#include <filesystem>
#include <map>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <titan/dist/mesh.h>
#include <titan/hf_exchange.h>
#include <titan/model.h>
#include <titan/name_pattern.h>
#include <titan/nn/rope.h>
#include <titan/optimizer.h>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "core/train/optimizer/gradient_norm.h"
#include "tests/tools/probe_files.h"

namespace {

namespace fs = std::filesystem;
using titan::Batch;
using titan::Value;
using titan::nn::Parameter;
using titan::probe::read_tensor;
using titan::probe::write_bytes;
using titan::probe::write_tensor;

std::string file_name(const Parameter& parameter) {
  return parameter.name() + ".bin";
}

class Probe {
 public:
  Probe(const fs::path& plugins, const Value& job, fs::path out)
      : job_(job),
        out_(std::move(out)),
        catalog_({plugins}),
        registry_(catalog_),
        seq_len_(job.at("seq_len").as_integer()) {
    const std::string& name = job.at("model").as_string();
    Value options = Value::map();
    if (const Value* flavor = job.find("flavor"))
      options = registry_.flavor(name, flavor->as_string()).preset;
    if (const Value* changed = job.find("options"))
      for (const auto& [option, value] : changed->as_map()) options[option] = value;
    model_ = registry_.create<titan::Model>(name, options, {.seq_len = seq_len_});
    part_ = std::make_unique<titan::ModelPart>(model_->build());
    if (const Value* seed = job.find("seed"))  // without a seed: only results that need no weights
      part_->materialize(c10::kCPU, dtype(), static_cast<uint64_t>(seed->as_integer()));
  }

  void run() {
    if (const Value* weights = job_.find("weights")) load_weights(weights->as_string());
    describe();
    if (job_.find("seed")) write_all("parameters");
    watch_outputs();
    if (job_.find("tokens")) run_once();
    if (const Value* optimizer = job_.find("optimizer")) optimize(*optimizer);
    const std::string text = titan::to_json(result_, 2);
    write_bytes(out_ / "result.json", text.data(), text.size());
  }

 private:
  void load_weights(const fs::path& folder) {
    at::NoGradGuard no_grad;
    for (Parameter* p : part_->parameters()) {
      at::Tensor shard = p->shard();
      shard.copy_(read_tensor(folder / file_name(*p), shard.sizes(), at::kFloat));
    }
  }

  at::ScalarType dtype() const {
    const Value* name = job_.find("dtype");
    return name && name->as_string() == "float64" ? at::kDouble : at::kFloat;
  }

  /// From now on each run of the requested modules writes their outputs.
  void watch_outputs() {
    const Value* patterns = job_.find("outputs");
    if (!patterns) return;
    part_->visit_modules([&](const std::string& path, titan::nn::Module& module) {
      for (const Value& pattern : patterns->as_list()) {
        if (!titan::matches_pattern(path, pattern.as_string())) continue;
        module.wrap(
            [this, path](const at::Tensor& x, const Batch& batch, const titan::nn::Next& next) {
              at::Tensor y = next(x, batch);
              write_tensor(out_ / "outputs" / (path + ".bin"),
                           y.is_floating_point() ? y.to(at::kFloat) : y.to(at::kLong));
              return y;
            });
      }
    });
  }

  void describe() {
    Value::List parameters, rules, frequencies;
    for (const Parameter* p : part_->parameters()) {
      Value::List shape(p->global_shape().begin(), p->global_shape().end());
      parameters.push_back(Value::map({{"name", p->name()}, {"shape", std::move(shape)}}));
    }
    const auto& exchange = dynamic_cast<const titan::HfExchange&>(*model_);
    for (const auto& rule : exchange.name_rules(titan::Naming::hugging_face))
      rules.push_back(Value::map({{"ours", rule.ours}, {"theirs", rule.theirs}}));
    result_["parameters"] = std::move(parameters);
    result_["num_parameters"] = part_->num_parameters();
    result_["name_rules"] = std::move(rules);
    result_["hf_config"] = exchange.hf_config();
    if (const Value* ropes = job_.find("ropes")) {
      for (const Value& rope : ropes->as_list()) {
        const titan::nn::RopeOptions options = {
            .theta = rope.at("theta").as_number(),
            .scaling_factor = rope.at("scaling_factor").as_number()};
        const auto found = titan::nn::rope_frequencies(rope.at("head_dim").as_integer(), options);
        frequencies.emplace_back(Value::List(found.begin(), found.end()));
      }
      result_["rope_frequencies"] = std::move(frequencies);
    }
  }

  void write_all(const std::string& folder) {
    for (const Parameter* p : part_->parameters())
      write_tensor(out_ / folder / file_name(*p), p->shard().to(at::kFloat));
  }

  Batch batch(int64_t index) {
    const int64_t num_batches = job_.at("batches").as_integer(),
                  rows = job_.at("rows").as_integer();
    const auto read = [&](const char* member) {
      return read_tensor(job_.at(member).as_string(), {num_batches, rows, seq_len_},
                         at::kLong)[index];
    };
    Batch batch = {.tokens = read("tokens"), .labels = read("labels")};
    if (const Value* positions = job_.find("positions"))
      batch.positions = read_tensor(positions->as_string(), {rows, seq_len_}, at::kLong);
    return batch;
  }

  void run_once() {
    Batch first = batch(0);
    const at::Tensor loss = part_->forward(at::Tensor(), first);
    loss.backward();
    result_["loss_sum"] = loss.item<double>();
    for (const Parameter* p : part_->parameters())
      if (p->grad().defined())
        write_tensor(out_ / "gradients" / file_name(*p), p->grad().to(at::kFloat));
    part_->clear_gradients();
    at::NoGradGuard no_grad;
    first.labels = at::Tensor();
    write_tensor(out_ / "logits.bin", part_->forward(at::Tensor(), first).to(at::kFloat));
  }

  void optimize(const Value& settings) {
    const auto optimizer = registry_.create<titan::Optimizer>(
        settings.at("name").as_string(), settings.at("options"), {part_->parameters()});
    const int64_t num_steps = settings.at("steps").as_integer();
    const Value* lr_factors = settings.find("lr_factors");
    const Value* gradients = job_.find("gradients");
    if (gradients) read_gradients(gradients->as_string(), num_steps);
    Value::List losses, norms;
    for (int64_t step = 0; step < num_steps; ++step) {
      if (gradients) {
        for (Parameter* p : part_->parameters())
          p->shard().mutable_grad() = given_gradients_.at(p)[step].clone();
      } else {
        const Batch current = batch(step);
        const int64_t num_valid = (current.labels != Batch::kIgnoredLabel).sum().item<int64_t>();
        const at::Tensor loss =
            part_->forward(at::Tensor(), current) / static_cast<double>(num_valid);
        loss.backward();
        losses.emplace_back(loss.item<double>());
      }
      if (const Value* max_norm = settings.find("max_norm"))
        norms.emplace_back(
            titan::core::clip_gradients(*part_, mesh_, c10::kCPU, max_norm->as_number()).value);
      optimizer->step(lr_factors ? lr_factors->as_list().at(static_cast<size_t>(step)).as_number()
                                 : 1.0);
      part_->clear_gradients();
    }
    result_["losses"] = std::move(losses);
    result_["norms"] = std::move(norms);
    write_all("final");
  }

  void read_gradients(const fs::path& folder, int64_t num_steps) {
    for (Parameter* p : part_->parameters()) {
      std::vector<int64_t> shape = p->global_shape();
      shape.insert(shape.begin(), num_steps);
      given_gradients_[p] = read_tensor(folder / file_name(*p), shape, at::kFloat);
    }
  }

  const Value& job_;
  fs::path out_;
  titan::core::Catalog catalog_;
  titan::core::Registry registry_;
  titan::dist::Mesh mesh_;
  int64_t seq_len_;
  std::unique_ptr<titan::Model> model_;
  std::unique_ptr<titan::ModelPart> part_;
  std::map<const Parameter*, at::Tensor> given_gradients_;
  Value result_;
};

}  // namespace

int main(int argc, char** argv) {
  return titan::probe::run_job(
      argc, argv, [](const std::string& plugins, const Value& job, const std::string& out) {
        Probe(plugins, job, out).run();
      });
}
