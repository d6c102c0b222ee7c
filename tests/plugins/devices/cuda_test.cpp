// The cuda device: its errors without a GPU, and with one its memory, operations and NCCL. Each
// suite groups tests with the same requirement. On a machine that lacks it the whole suite is
// skipped with the reason; no other test is ever skipped.
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <titan/device.h>
#include <titan/ops/attention.h>
#include <titan/ops/embedding.h>
#include <titan/ops/grouped_linear.h>
#include <titan/ops/linear_cross_entropy.h>
#include <titan/ops/rms_norm.h>
#include <titan/ops/rope.h>
#include <titan/ops/swiglu.h>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "core/plugin/registry.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"
#include "tests/sdk/ops/ops_testing.h"

namespace titan::testing {
namespace {

using at::Tensor;
using ops::testing::Tensors;

bool has_driver() {
  return std::filesystem::exists("/dev/nvidiactl");
}

std::unique_ptr<Device> make_cuda(int local_rank = 0) {
  const DeviceContext context{.local_rank = local_rank};
  return create<Device>("cuda", Value::map(), context);
}

bool is_built() {
  return std::filesystem::exists(plugin_folder() / "cuda.plugin.so");
}

/// Why the plugin cannot be opened; empty when it can.
std::string why_closed() {
  if (!is_built()) return "this build has no cuda plugin (see TITAN_CUDA)";
  try {
    plugin_registry().component("device", "cuda");
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find("it needs the library") == std::string::npos) throw;
    return "LibTorch's CUDA libraries are not all installed: " + text;
  }
  return {};
}

#define SKIP_UNLESS_OPEN() \
  if (const std::string why = why_closed(); !why.empty()) GTEST_SKIP() << why
// With a GPU everything must work: a plugin that does not open there is a failure.
#define SKIP_WITHOUT_GPU()                                                                 \
  if (!is_built()) GTEST_SKIP() << why_closed();                                           \
  if (!has_driver()) GTEST_SKIP() << "this machine has no NVIDIA driver (/dev/nvidiactl)"; \
  ASSERT_EQ(why_closed(), "")
#define SKIP_WITHOUT_TWO_GPUS()                         \
  SKIP_WITHOUT_GPU();                                   \
  if (make_cuda(0)->device() == make_cuda(1)->device()) \
  GTEST_SKIP() << "two GPUs are needed, one is visible"

TEST(CudaPlugin, IsDescribedWithoutADriver) {
  SKIP_UNLESS_OPEN();
  const Component& component = plugin_registry().component("device", "cuda");
  EXPECT_EQ(component.name, "cuda");
  EXPECT_FALSE(component.help.empty());
}

TEST(CudaPlugin, BringsOperationsAndStreams) {
  SKIP_UNLESS_OPEN();
  for (const char* name :
       {"rms_norm_forward", "rms_norm_backward", "swiglu_forward", "swiglu_backward", "rope_rotate",
        "attention_forward", "attention_backward", "packed_attention_forward",
        "packed_attention_backward", "linear_cross_entropy", "embedding_forward",
        "embedding_backward"}) {
    const auto operation =
        c10::Dispatcher::singleton().findSchemaOrThrow((std::string("titan::") + name).c_str(), "");
    EXPECT_TRUE(operation.hasKernelForDispatchKey(c10::DispatchKey::CUDA)) << name;
  }
  EXPECT_TRUE(c10::impl::hasDeviceGuardImpl(c10::kCUDA));
}

// LibTorch checks once per process whether it has CUDA, at the first backward at the latest. A run
// creates the device before that; the test needs its own process.
TEST(CudaPlugin, IsKnownToLibTorchWhenItIsOpenedFirst) {
  SKIP_UNLESS_OPEN();
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // starts this program again
  EXPECT_EXIT(
      {
        plugin_registry().component("device", "cuda");
        std::_Exit(at::detail::getCUDAHooks().compiledWithCuDNN() ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(CudaAbsent, SaysThatThereIsNoGpu) {
  SKIP_UNLESS_OPEN();
  if (has_driver()) GTEST_SKIP() << "this machine has a GPU";
  const Error error = error_of([] { make_cuda(); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.message(), "no CUDA device: "));
  EXPECT_TRUE(holds(error.message(), "CUDA_VISIBLE_DEVICES"));
  EXPECT_TRUE(holds(error.message(), "set device.name = \"cpu\""));
}

// If only one GPU is visible, every local rank uses it.
TEST(CudaDevices, RefuseALocalRankWithoutAGpuOfItsOwn) {
  SKIP_WITHOUT_TWO_GPUS();
  const Error error = error_of([] { make_cuda(1000); });
  EXPECT_EQ(error.kind(), ErrorKind::config);
  EXPECT_TRUE(holds(error.message(), "local rank 1000"));
}

TEST(CudaDevice, CountsTheMemoryOfItsTensors) {
  SKIP_WITHOUT_GPU();
  const auto device = make_cuda();
  EXPECT_TRUE(holds(device->description(), "compute capability"));
  device->reset_peak_memory();
  const int64_t before = device->memory().peak;
  constexpr int64_t kBytes = int64_t{64} << 20;
  at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).device(device->device()));
  device->synchronize();
  EXPECT_GE(device->memory().peak, before + kBytes);
  EXPECT_GT(device->memory().total, kBytes);
  device->reset_peak_memory();
  EXPECT_EQ(device->memory().peak, before);
}

/// Outputs and gradients of `f` on the GPU against those on the CPU.
void expect_as_on_the_cpu(const ops::testing::Function& f, const Tensors& inputs,
                          at::ScalarType type, double tolerance) {
  const auto device = make_cuda();
  const Tensors on_cpu = ops::testing::leaves(inputs, type);
  Tensors on_gpu;
  for (const Tensor& x : on_cpu)
    on_gpu.push_back(x.detach().to(device->device()).requires_grad_(x.requires_grad()));
  const Tensors directions = ops::testing::directions_for(f, on_cpu);
  Tensors gpu_directions;
  for (const Tensor& d : directions) gpu_directions.push_back(d.to(device->device()));
  const Tensors expected = ops::testing::outputs_and_gradients(f, on_cpu, directions);
  const Tensors results = ops::testing::outputs_and_gradients(f, on_gpu, gpu_directions);
  ASSERT_EQ(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(results[i].is_cuda());
    EXPECT_EQ(results[i].scalar_type(), expected[i].scalar_type());
    EXPECT_EQ(results[i].strides(), expected[i].strides()) << "result " << i;
    const Tensor exact = expected[i].to(at::kDouble);
    const double largest = exact.abs().max().item<double>();
    EXPECT_LE(ops::testing::max_error(results[i].to(at::kCPU), exact), tolerance * largest)
        << type << " result " << i;
  }
}

struct Precision {
  at::ScalarType type;
  double tolerance;
};
constexpr Precision kPrecisions[] = {
    {at::kDouble, 1e-12}, {at::kFloat, 1e-5}, {at::kBFloat16, 3e-2}};

using ops::testing::random;
using ops::testing::random_ids;

TEST(CudaOps, NormAndGateAreThoseOfTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [type, tolerance] : kPrecisions) {
    expect_as_on_the_cpu(
        [](const Tensors& in) { return Tensors{ops::rms_norm(in[0], in[1], 1e-5)}; },
        {random({6, 50, 64}), random({64})}, type, tolerance);
    expect_as_on_the_cpu([](const Tensors& in) { return Tensors{ops::swiglu(in[0], in[1])}; },
                         {random({50, 96}), random({50, 96})}, type, tolerance);
  }
}

TEST(CudaOps, RopeIsThatOfTheCpu) {
  SKIP_WITHOUT_GPU();
  const Tensor angles = random({40, 16});
  for (const auto& [type, tolerance] : kPrecisions) {
    const at::ScalarType wide = type == at::kDouble ? at::kDouble : at::kFloat;
    expect_as_on_the_cpu(
        [&](const Tensors& in) {
          const auto tables = angles.to(in[0].device());
          const auto [q, k] =
              ops::rope(in[0], in[1], tables.cos().to(wide), tables.sin().to(wide), in[2]);
          return Tensors{q, k};
        },
        {random({2, 30, 4, 32}), random({2, 30, 2, 32}), random_ids(40, {2, 30})}, type, tolerance);
  }
}

// Double uses the matrix products, fp32 the memory-efficient kernel, bf16 flash.
TEST(CudaOps, AttentionIsThatOfTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [type, tolerance] : kPrecisions) {
    for (const int64_t kv_heads : {4, 2}) {
      for (const int64_t length : {64, 45}) {
        expect_as_on_the_cpu(
            [](const Tensors& in) {
              return Tensors{ops::attention(in[0].transpose(1, 2), in[1].transpose(1, 2),
                                            in[2].transpose(1, 2))};
            },
            {random({2, length, 4, 32}), random({2, length, kv_heads, 32}),
             random({2, length, kv_heads, 32})},
            type, tolerance);
      }
    }
  }
}

// Lengths for which a GPU with compute capability 9 uses cuDNN, without deterministic algorithms.
TEST(CudaOps, AttentionOfLongSequencesIsThatOfTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const int64_t head_dim : {64, 128})
    expect_as_on_the_cpu(
        [](const Tensors& in) {
          return Tensors{
              ops::attention(in[0].transpose(1, 2), in[1].transpose(1, 2), in[2].transpose(1, 2))};
        },
        {random({1, 1024, 8, head_dim}), random({1, 1024, 2, head_dim}),
         random({1, 1024, 2, head_dim})},
        at::kBFloat16, 3e-2);
}

TEST(CudaOps, LossAndEmbeddingAreThoseOfTheCpu) {
  SKIP_WITHOUT_GPU();
  for (const auto& [type, tolerance] : kPrecisions) {
    const Tensor labels = random_ids(100, {70});
    labels[5] = ops::kIgnoredLabel;
    expect_as_on_the_cpu(
        [](const Tensors& in) { return Tensors{ops::linear_cross_entropy(in[0], in[1], in[2])}; },
        {random({70, 32}), random({100, 32}), labels}, type, tolerance);
    expect_as_on_the_cpu([](const Tensors& in) { return Tensors{ops::embedding(in[0], in[1])}; },
                         {random({100, 32}), random_ids(20, {4, 50})}, type, tolerance);
  }
}

TEST(CudaOps, ProductsOfGroupsAreThoseOfTheCpu) {
  SKIP_WITHOUT_GPU();
  const std::vector<int64_t> rows = {5, 0, 12, 0};
  // with rows of 16 bytes, which ATen's grouped product requires, and without
  for (const auto& [type, tolerance] : kPrecisions)
    for (const int64_t width : {16, 18})
      expect_as_on_the_cpu(
          [&](const Tensors& in) { return Tensors{ops::grouped_linear(in[0], in[1], rows)}; },
          {random({17, width}), random({4, 24, width})}, type, tolerance);
}

/// Every collective, with results that differ by rank.
void check_collectives(const dist::Group& group, c10::Device device) {
  const auto options = at::TensorOptions().dtype(at::kFloat).device(device);
  const int64_t size = group.size(), rank = group.rank();
  const auto equals = [](const Tensor& got, const Tensor& expected) {
    EXPECT_TRUE(got.to(at::kCPU).equal(expected)) << got << expected;
  };
  const auto on_cpu = at::TensorOptions().dtype(at::kFloat);

  const Tensor sum = at::full({3}, static_cast<double>(rank + 1), options);
  group.all_reduce(sum, dist::Reduce::sum).wait();
  equals(sum, at::full({3}, static_cast<double>(size * (size + 1) / 2), on_cpu));

  const Tensor largest = at::full({3}, static_cast<double>(rank), options);
  group.all_reduce(largest, dist::Reduce::max).wait();
  equals(largest, at::full({3}, static_cast<double>(size - 1), on_cpu));

  const Tensor gathered = at::empty({size}, options);
  group.all_gather(gathered, at::full({1}, static_cast<double>(rank), options)).wait();
  equals(gathered, at::arange(size, on_cpu));

  const Tensor share = at::empty({2}, options);
  group.reduce_scatter(share, at::arange(2 * size, options), dist::Reduce::sum).wait();
  equals(share, at::arange(2 * rank, 2 * rank + 2, on_cpu) * static_cast<double>(size));

  const Tensor exchanged = at::empty({size}, options);
  group.all_to_all(exchanged, at::full({size}, static_cast<double>(rank), options)).wait();
  equals(exchanged, at::arange(size, on_cpu));

  const Tensor from_last = at::full({4}, static_cast<double>(rank), options);
  group.broadcast(from_last, static_cast<int>(size - 1)).wait();
  equals(from_last, at::full({4}, static_cast<double>(size - 1), on_cpu));

  EXPECT_EQ(group.all_reduce(int64_t{7}, dist::Reduce::sum, device), 7 * size);
  group.barrier();
}

TEST(CudaGroup, OfOneRankCommunicatesOverNccl) {
  SKIP_WITHOUT_GPU();
  const auto device = make_cuda();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const dist::Group group("alone",
                          device->connect({.store = *store, .name = "alone", .is_one_host = true}));
  check_collectives(group, device->device());
}

TEST(CudaPair, OfRanksCommunicatesOverNccl) {
  SKIP_WITHOUT_TWO_GPUS();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const auto device = make_cuda(rank);
        const dist::Group group(
            "pair",
            device->connect(
                {.store = *store, .name = "pair", .rank = rank, .size = 2, .is_one_host = true}));
        check_collectives(group, device->device());
      } catch (const std::exception& e) {
        ADD_FAILURE() << e.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace titan::testing
