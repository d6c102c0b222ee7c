#include "core/checkpoint/rank_state.h"

#include <cstdio>
#include <vector>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <xxhash.h>

#include <titan/error.h>

namespace titan::core {
namespace {

std::vector<c10::Device> generator_devices(c10::Device device) {
  if (device.is_cpu() || device.is_meta()) return {c10::Device(c10::kCPU)};
  return {c10::Device(c10::kCPU), device};
}

std::string to_hex(const at::Tensor& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  const uint8_t* data = bytes.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < bytes.numel(); ++i) {
    text += kDigits[data[i] >> 4];
    text += kDigits[data[i] & 15];
  }
  return text;
}

at::Tensor from_hex(const std::string& text) {
  const auto digit = [](char c) {
    const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    TITAN_CHECK(value >= 0, data, "the saved state of a random generator is not hexadecimal");
    return static_cast<uint8_t>(value);
  };
  const auto size = static_cast<int64_t>(text.size() / 2);
  at::Tensor bytes = at::empty({size}, at::TensorOptions().dtype(at::kByte));
  uint8_t* data = bytes.mutable_data_ptr<uint8_t>();
  for (int64_t i = 0; i < size; ++i)
    data[i] = static_cast<uint8_t>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return bytes;
}

}  // namespace

std::string rank_state_name(int rank) {
  char text[40];
  std::snprintf(text, sizeof text, "state-rank-%05d.json", rank);
  return text;
}

Value random_state(c10::Device device) {
  Value state = Value::map();
  for (const c10::Device place : generator_devices(device)) {
    at::Generator generator = at::globalContext().defaultGenerator(place);
    const std::lock_guard lock(generator.mutex());
    state[c10::DeviceTypeName(place.type(), true)] = to_hex(generator.get_state());
  }
  return state;
}

void restore_random_state(const Value& state, c10::Device device) {
  for (const c10::Device place : generator_devices(device)) {
    const Value* saved = state.find(c10::DeviceTypeName(place.type(), true));
    if (!saved) continue;  // written on another kind of device
    at::Generator generator = at::globalContext().defaultGenerator(place);
    const std::lock_guard lock(generator.mutex());
    generator.set_state(from_hex(saved->as_string()));
  }
}

void seed_generators(uint64_t seed, int64_t step, int rank, c10::Device device) {
  const int64_t place[] = {step, rank};
  const uint64_t own = XXH3_64bits_withSeed(place, sizeof place, seed);
  for (const c10::Device generator_device : generator_devices(device)) {
    at::Generator generator = at::globalContext().defaultGenerator(generator_device);
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(own);
  }
}

}  // namespace titan::core
