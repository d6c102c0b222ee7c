// Runs an optimizer plugin on given weights and gradients for the referee of optimizers.
//
//   optimizer_probe --plugins <folder> --job <job.json> --out <folder>
//
// The job: dtype ("float32", "bfloat16"), steps, lr_factors, parameters [{name, shape}], weights
// and gradients: folders of <name>.bin, fp32, the gradients of all steps one after the other; runs
// [{name, optimizer, options}]. Every run starts from the weights and writes its final ones to
// <out>/<name>/<parameter>.bin, fp32.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <titan/optimizer.h>

#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "tests/tools/probe_files.h"

namespace {

namespace fs = std::filesystem;
using titan::Value;
using titan::nn::Parameter;
using titan::probe::read_tensor;
using titan::probe::write_tensor;

struct Given {
  std::string name;
  std::vector<int64_t> shape;
  at::Tensor weight, gradients;  // in the dtype of the run; of all steps
};

std::vector<Given> read_parameters(const Value& job, at::ScalarType dtype) {
  std::vector<Given> all;
  for (const Value& parameter : job.at("parameters").as_list()) {
    Given given{.name = parameter.at("name").as_string()};
    for (const Value& size : parameter.at("shape").as_list())
      given.shape.push_back(size.as_integer());
    std::vector<int64_t> of_steps = given.shape;
    of_steps.insert(of_steps.begin(), job.at("steps").as_integer());
    const std::string file = given.name + ".bin";
    given.weight =
        read_tensor(fs::path(job.at("weights").as_string()) / file, given.shape, at::kFloat);
    given.gradients =
        read_tensor(fs::path(job.at("gradients").as_string()) / file, of_steps, at::kFloat);
    given.weight = given.weight.to(dtype);
    given.gradients = given.gradients.to(dtype);
    all.push_back(std::move(given));
  }
  return all;
}

void run(titan::core::Registry& registry, const Value& job, const Value& wanted,
         const std::vector<Given>& all, const fs::path& out) {
  at::NoGradGuard no_grad;
  std::vector<std::unique_ptr<Parameter>> parameters;
  titan::OptimizerContext context;
  for (const Given& given : all) {
    parameters.push_back(std::make_unique<Parameter>(given.shape, titan::nn::Init::constant(0)));
    Parameter& parameter = *parameters.back();
    parameter.set_name(given.name);
    parameter.allocate(c10::kCPU, given.weight.scalar_type());
    parameter.shard().detach().copy_(given.weight);
    context.parameters.push_back(&parameter);
  }
  const auto optimizer = registry.create<titan::Optimizer>(wanted.at("optimizer").as_string(),
                                                           wanted.at("options"), context);
  const auto& lr_factors = job.at("lr_factors").as_list();
  for (int64_t step = 0; step < job.at("steps").as_integer(); ++step) {
    for (size_t i = 0; i < all.size(); ++i)
      parameters[i]->shard().mutable_grad() = all[i].gradients[step].clone();
    optimizer->step(lr_factors.at(static_cast<size_t>(step)).as_number());
  }
  for (const auto& parameter : parameters)
    write_tensor(out / (parameter->name() + ".bin"), parameter->shard().to(at::kFloat));
}

}  // namespace

int main(int argc, char** argv) {
  return titan::probe::run_job(
      argc, argv, [](const std::string& plugins, const Value& job, const fs::path& out) {
        const bool is_narrow = job.at("dtype").as_string() == "bfloat16";
        const std::vector<Given> all = read_parameters(job, is_narrow ? at::kBFloat16 : at::kFloat);
        const titan::core::Catalog catalog({plugins});
        titan::core::Registry registry(catalog);
        for (const Value& wanted : job.at("runs").as_list())
          run(registry, job, wanted, all, out / wanted.at("name").as_string());
      });
}
