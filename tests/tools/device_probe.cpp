// What a device does, for tests/gpu/run_all.py: the same bits each time, and how fast its ranks
// talk.
//
//   device_probe --plugins <folder> ops <device> <rounds>
//       runs every operation of titan/ops forward and backward so often and hashes what comes out;
//       exit code 1 when one of them gave two results
//   titan launch --nproc N --program device_probe -- --plugins <folder> collectives <device> <MiB>
//       all_reduce, all_gather and reduce_scatter of all ranks: checks the values, tells bytes/s
//
// Prints JSON; of several ranks the first.
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/stack.h>
#include <titan/device.h>
#include <titan/dist/mesh.h>
#include <titan/error.h>
#include <titan/ops/attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>

#include "core/base/clock.h"
#include "core/base/environment.h"
#include "core/base/hash.h"
#include "core/base/terminal.h"
#include "core/plugin/catalog.h"
#include "core/plugin/registry.h"
#include "core/runtime/groups/process_groups.h"
#include "core/runtime/groups/rendezvous.h"
#include "core/runtime/launch_env.h"

namespace {

using at::Tensor;
using titan::Value;
using Tensors = std::vector<Tensor>;

struct Operation {
  const char* name;
  Tensors inputs;  ///< on the CPU, in fp32 or integers
  std::function<Tensor(const Tensors&)> run;
};

/// Sizes of a small model; odd where an operation cuts into blocks.
std::vector<Operation> operations() {
  using namespace titan;
  const int64_t rows = 257, dim = 192, vocabulary = 1003, heads = 4, width = 64;
  const auto normal = [](at::IntArrayRef shape) { return at::randn(shape); };
  const Tensor angles = at::arange(rows * width / 2, at::kFloat).reshape({rows, width / 2});
  return {
      {"rms_norm",
       {normal({rows, dim}), normal({dim})},
       [](const Tensors& x) { return ops::rms_norm(x[0], x[1], 1e-5); }},
      {"swiglu",
       {normal({rows, dim}), normal({rows, dim})},
       [](const Tensors& x) { return ops::swiglu(x[0], x[1]); }},
      {"linear",
       {normal({rows, dim}), normal({2 * dim, dim})},
       [](const Tensors& x) { return ops::linear(x[0], x[1]); }},
      {"attention",
       {normal({2, heads, rows, width}), normal({2, heads, rows, width}),
        normal({2, heads, rows, width})},
       [](const Tensors& x) { return ops::attention(x[0], x[1], x[2]); }},
      {"rope",
       {normal({2, rows, heads, width}), normal({2, rows, heads, width})},
       [angles](const Tensors& x) {
         const Tensor on_device = angles.to(x[0].device());
         const auto [q, k] = ops::rope(x[0], x[1], on_device.cos(), on_device.sin(), Tensor());
         return q * 2 + k;
       }},
      {"embedding",
       {normal({vocabulary, dim}), at::randint(vocabulary, {2, rows}, at::kLong)},
       [](const Tensors& x) { return ops::embedding(x[0], x[1]); }},
      {"linear_cross_entropy",
       {normal({rows, dim}), normal({vocabulary, dim}), at::randint(vocabulary, {rows}, at::kLong)},
       [](const Tensors& x) { return ops::linear_cross_entropy(x[0], x[1], x[2]); }},
  };
}

std::string hash_of(const Tensor& tensor) {
  const Tensor bytes = tensor.detach().cpu().contiguous();
  return titan::core::hash64_hex(std::string_view(static_cast<const char*>(bytes.const_data_ptr()),
                                                  static_cast<size_t>(bytes.nbytes())));
}

/// Of the result and every gradient.
std::string bits_of(const Operation& operation, const at::Device& device, at::ScalarType type) {
  Tensors inputs;
  for (const Tensor& input : operation.inputs) {
    Tensor copy = input.is_floating_point() ? input.to(device, type) : input.to(device);
    if (copy.is_same(input)) copy = input.clone();
    copy = copy.detach();
    if (copy.is_floating_point()) copy.requires_grad_(true);
    inputs.push_back(copy);
  }
  const Tensor out = operation.run(inputs);
  const Tensor direction = at::arange(out.numel(), out.options().dtype(at::kFloat)).cos();
  (out.to(at::kFloat) * direction.reshape(out.sizes())).sum().backward();
  std::string bits = hash_of(out);
  for (const Tensor& input : inputs)
    if (input.grad().defined()) bits += "-" + hash_of(input.grad());
  return bits;
}

Value run_operations(titan::Device& device, int64_t rounds, bool& is_same) {
  Value::List rows;
  for (const Operation& operation : operations())
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      std::set<std::string> found;
      for (int64_t round = 0; round < rounds; ++round)
        found.insert(bits_of(operation, device.device(), type));
      is_same = is_same && found.size() == 1;
      rows.push_back(Value::map({{"operation", operation.name},
                                 {"dtype", std::string(c10::toString(type))},
                                 {"rounds", rounds},
                                 {"results", static_cast<int64_t>(found.size())},
                                 {"bits", *found.begin()}}));
    }
  return Value(std::move(rows));
}

/// Bytes that each rank sends per second, by the formula of the operation; the fastest of ten.
Value run_collectives(titan::Device& device, const titan::dist::Group& world, int64_t mebibytes) {
  const int64_t size = world.size(), count = (mebibytes << 20) / 4 / size * size;
  const auto options = at::device(device.device()).dtype(at::kFloat);
  const double total = static_cast<double>(size * (size + 1) / 2);
  Value::List rows;
  const auto measure = [&](const char* name, double sent, const std::function<Tensor()>& run,
                           double first, double last) {
    double best = 1e30;
    for (int round = 0; round < 10; ++round) {
      world.barrier();
      device.synchronize();
      const double begin = titan::core::monotonic_seconds();
      const Tensor result = run();
      device.synchronize();
      best = std::min(best, titan::core::monotonic_seconds() - begin);
      const Tensor ends = at::stack({result.select(0, 0), result.select(0, -1)}).cpu();
      TITAN_CHECK(ends[0].item<float>() == first && ends[1].item<float>() == last, distributed,
                  name, " of ", size, " ranks gave ", ends[0].item<float>(), " and ",
                  ends[1].item<float>(), " in place of ", first, " and ", last);
    }
    rows.push_back(Value::map(
        {{"operation", name}, {"bytes", count * 4}, {"sent_bytes_per_second", sent / best}}));
  };
  const double bytes = static_cast<double>(count * 4), share = 1 - 1 / static_cast<double>(size);
  const double own = world.rank() + 1;
  measure(
      "all_reduce", 2 * share * bytes,
      [&] {
        Tensor values = at::full({count}, own, options);
        world.all_reduce(values, titan::dist::Reduce::sum).wait();
        return values;
      },
      total, total);
  const Tensor part = at::full({count / size}, own, options),
               whole = at::full({count}, own, options);
  measure(
      "all_gather", share * bytes,
      [&] {
        Tensor out = at::full({count}, 0, options);
        world.all_gather(out, part).wait();
        return out;
      },
      1, static_cast<double>(size));
  measure(
      "reduce_scatter", share * bytes,
      [&] {
        Tensor out = at::full({count / size}, 0, options);
        world.reduce_scatter(out, whole, titan::dist::Reduce::sum).wait();
        return out;
      },
      total, total);
  return Value(std::move(rows));
}

int run(const std::vector<std::string>& words) {
  using namespace titan::core;
  TITAN_CHECK(words.size() == 5 && words[0] == "--plugins", config,
              "usage: device_probe --plugins FOLDER ops|collectives DEVICE COUNT");
  const std::string& what = words[2];
  const int64_t count = parse_integer(words[4], "COUNT", 1, 1 << 20);
  const Catalog catalog({words[1]});
  Registry registry(catalog);
  const LaunchEnv launch = detect_launch();
  Rendezvous rendezvous(launch, std::chrono::seconds(120));
  rendezvous.agree({});
  const auto device = registry.create<titan::Device>(
      words[3], Value::map(), titan::DeviceContext{.local_rank = launch.local_rank});
  const titan::dist::Mesh mesh =
      connect_mesh(titan::dist::MeshShape{.dp_replicate = launch.world_size}, rendezvous, *device,
                   std::make_shared<titan::dist::Recorder>());
  bool is_same = true;
  Value found = Value::map({{"device", device->description()}, {"ranks", launch.world_size}});
  found["rows"] = what == "ops" ? run_operations(*device, count, is_same)
                                : run_collectives(*device, mesh.group("world"), count);
  if (launch.rank == 0) print_json(titan::to_json(found) + "\n");
  return is_same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    titan::core::print_error(error.what());
    return 1;
  }
}
