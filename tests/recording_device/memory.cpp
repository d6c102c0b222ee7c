#include "memory.h"

#include <cstdlib>

#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include "graph.h"
#include "host_kernels.h"

namespace titan::recording {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr size_t kAlignment = 64;
constexpr StreamId kNumPooled = 8;

const c10::Device kDevice(kType, 0);

thread_local StreamId tls_stream = 0;

uintptr_t address(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory);
}

void free_memory(void* memory) {
  if (!memory) return;
  order().judge_free(address(memory));
  give_back(memory, [memory] {
    order().forget(address(memory));
    std::free(memory);
  });
}

void free_adopted(void* storage) {
  auto* const held = static_cast<c10::Storage*>(storage);
  order().judge_free(address(held->data()));
  give_back(held->data(), [held] {
    order().forget(address(held->data()));
    delete held;
  });
}

void* take(size_t bytes) {
  return bytes == 0
             ? nullptr
             : std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

class DeviceAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const memory = take(bytes);
    if (memory) order().allocate(address(memory), static_cast<int64_t>(bytes), tls_stream);
    taken(memory);
    return {memory, memory, &free_memory, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

class PinnedAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    void* const memory = take(bytes);
    if (memory) order().allocate_pinned(address(memory), static_cast<int64_t>(bytes));
    return {memory, memory, &free_memory, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }
};

c10::Stream stream_of(StreamId id) {
  return c10::Stream(c10::Stream::UNSAFE, kDevice, id);
}

/// Streams are numbers. An event is the clock of its stream when it was recorded.
struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return stream_of(tls_stream); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream_of(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override {
    static std::atomic<StreamId> next = 0;
    return stream_of(1 + next++ % kNumPooled);
  }
  c10::Stream getNewStream(c10::Device device, int) const override {
    return getStreamFromGlobalPool(device, false);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return stream_of(std::exchange(tls_stream, stream.id()));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex,
              c10::EventFlag) const override {
    if (!*event) *event = new Clock;
    *static_cast<Clock*>(*event) = order().record(stream.id());
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event) order().wait(stream.id(), *static_cast<Clock*>(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Clock*>(event);
  }
  bool queryEvent(void*) const override { return true; }
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream& stream) const override {
    order().host_wait_for_stream("synchronize a stream", stream.id());
  }
  void synchronizeEvent(void* event) const override {
    if (event) order().host_wait("synchronize an event", *static_cast<Clock*>(event));
  }
  void synchronizeDevice(c10::DeviceIndex) const override {
    order().host_wait_for_all("synchronize the device");
  }
  void recordDataPtrOnStream(const c10::DataPtr& memory, const c10::Stream& stream) const override {
    order().keep_for(address(memory.get()), stream.id());
  }
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  bool isPinnedPtr(const void* memory) const override { return order().is_pinned(address(memory)); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
};

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), device_allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), device_allocator(),
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

/// Like cudaMemcpyAsync: asynchronous with pinned memory; with other memory the host waits.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  SharedMemory memory;
  const auto here = [&](const at::Tensor& tensor) {
    return tensor.is_cpu() ? tensor : memory.on_host(tensor);
  };
  here(to).copy_(here(from));
  if (is_capturing()) {
    if (from.is_cpu() || to.is_cpu())
      order().host_wait_for_stream("a copy between host and device", tls_stream);
    record_for_replay(
        [from = alias_of(from), to = alias_of(to)] { copy_from(from, to, /*non_blocking=*/true); });
  }
  const bool is_inside = !from.is_cpu() && !to.is_cpu();
  const char* const what = is_inside       ? "copy on the device"
                           : from.is_cpu() ? "copy to the device"
                                           : "copy to the host";
  const at::Tensor& host = from.is_cpu() ? from : to;
  const bool is_pinned = is_inside || order().is_pinned(address(host.const_data_ptr()));
  std::vector<Access> accesses;
  for (const bool is_write : {false, true}) {
    const at::Tensor& end = is_write ? to : from;
    if (!end.is_cpu() || is_pinned) accesses.push_back(access_of(end, is_write));
  }
  order().launch(c10::str(what, ' ', to.sizes()), tls_stream, accesses);
  if (is_inside || to.numel() == 0) return to;
  if (!is_pinned)
    order().host_wait_for_stream(c10::str(what, " of pageable memory ", to.sizes()), tls_stream);
  else if (!non_blocking)
    order().host_wait_for_stream(c10::str(what, ", waited for ", to.sizes()), tls_stream);
  return to;
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  order().launch("copy of a number to the host", tls_stream, {access_of(tensor, false)});
  order().host_wait_for_stream("item()", tls_stream);
  SharedMemory memory;
  return memory.on_host(tensor).item();
}

}  // namespace

c10::Allocator* device_allocator() {
  static auto* const allocator = new DeviceAllocator;
  return allocator;
}

c10::Allocator* pinned_allocator() {
  static auto* const allocator = new PinnedAllocator;
  return allocator;
}

c10::DataPtr adopt(const c10::Storage& host) {
  void* const memory = host.mutable_data();
  if (memory) order().allocate(address(memory), static_cast<int64_t>(host.nbytes()), tls_stream);
  taken(memory);
  return {memory, new c10::Storage(host), &free_adopted, kDevice};
}

StreamId current_stream() {
  return tls_stream;
}

void register_backend() {
  c10::register_privateuse1_backend("recording");
  c10::SetAllocator(kType, device_allocator());
  static auto* const hooks = new Hooks;
  at::RegisterPrivateUse1HooksInterface(hooks);
  static const c10::impl::DeviceGuardImplRegistrar registrar(kType, new Guard);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&compute_on_host>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar));
}

}  // namespace titan::recording
