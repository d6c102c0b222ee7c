#include "fingerprints.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <xxhash.h>

#include <titan/counted_elements.h>
#include <titan/error.h>
#include <titan/files/hash.h>

namespace titan::fingerprints {
namespace {

/// The bits of a tensor as integers that every transport can add: 16-bit types are widened.
at::Tensor bits_of(const at::Tensor& tensor) {
  switch (tensor.element_size()) {
    case 8:
      return tensor.view(at::kLong);
    case 4:
      return tensor.view(at::kInt);
    default:
      return tensor.view(at::kShort).to(at::kInt);
  }
}

at::ScalarType type_of_bits(at::ScalarType dtype) {
  return c10::elementSize(dtype) == 8 ? at::kLong : at::kInt;
}

/// The bits of the whole parameter on every rank: the rank that counts an element contributes it.
/// `own`: this rank's part; null on other pipeline stages.
at::Tensor gather_bits(const ParameterInfo& parameter, const nn::Parameter* own,
                       at::ScalarType dtype, const dist::Mesh& mesh, c10::Device device) {
  at::Tensor whole =
      at::zeros(parameter.shape, at::TensorOptions().dtype(type_of_bits(dtype)).device(device));
  if (own && counts_elements(*own, mesh)) {
    at::Tensor place = whole;
    const nn::Slice& slice = own->slice();
    for (size_t dim = 0; dim < slice.sizes.size(); ++dim)
      place = place.narrow(static_cast<int64_t>(dim), slice.offsets[dim], slice.sizes[dim]);
    place.copy_(bits_of(own->shard().detach().contiguous()));
  }
  mesh.group("world").all_reduce(whole, dist::Reduce::sum).wait();
  if (c10::elementSize(dtype) == 2) whole = whole.to(at::kShort);
  return whole.cpu();
}

}  // namespace

Fingerprints::Fingerprints(const std::string& folder, bool goes_on, const dist::Mesh& mesh,
                           c10::Device device)
    : mesh_(mesh), device_(device) {
  if (mesh.rank() != 0) return;
  const std::string path = folder + "/fingerprints.jsonl";
  out_.open(path, std::ios::binary | (goes_on ? std::ios::app : std::ios::trunc));
  TITAN_CHECK(out_, io, "cannot write '", path, "' (debug.fingerprints)");
}

void Fingerprints::record_weights(ModelPart& part) {
  at::NoGradGuard no_grad;
  std::map<std::string_view, const nn::Parameter*> held;
  for (const nn::Parameter* parameter : part.parameters()) held[parameter->name()] = parameter;
  const auto weight = std::find_if(part.parameters().begin(), part.parameters().end(),
                                   [](const nn::Parameter* p) { return !p->is_state(); });
  TITAN_ASSERT(weight != part.parameters().end(), "a part without weights");
  const at::ScalarType of_weights = (*weight)->shard().scalar_type();
  for (const ParameterInfo& parameter : part.all_parameters()) {
    const auto own = held.find(parameter.name);
    const at::ScalarType dtype = parameter.own_dtype.value_or(of_weights);
    const at::Tensor bits =
        gather_bits(parameter, own == held.end() ? nullptr : own->second, dtype, mesh_, device_);
    write(Value::map({{"parameter", parameter.name},
                      {"xxh3", hex_text(XXH3_64bits(bits.const_data_ptr(), bits.nbytes()))}}));
  }
}

std::string Fingerprints::hash_of_tokens(const StepBatches& batches) const {
  uint64_t sum = 0;
  for (const Batch& batch : batches.microbatches) {
    auto row = static_cast<uint64_t>(batch.places.first_row);
    for (int64_t i = 0; i < batch.tokens.size(0); ++i, ++row)
      for (const at::Tensor& tensor : {batch.tokens[i], batch.labels[i]})
        sum += XXH3_64bits_withSeed(tensor.const_data_ptr(), tensor.nbytes(), row);
  }
  auto total = static_cast<int64_t>(sum);
  for (const dist::Group* group : {&mesh_.group("dp"), &mesh_.replicas()})
    if (group->size() > 1) total = group->all_reduce(total, dist::Reduce::sum, device_);
  return hex_text(static_cast<uint64_t>(total));
}

void Fingerprints::record_tokens(int64_t step, const std::string& hash) {
  write(Value::map({{"step", step}, {"tokens", hash}}));
}

void FingerprintWatcher::start(const WatcherStart& start) {
  fingerprints_.emplace(context_.dump_folder, start.resumed_step > 0, context_.mesh,
                        context_.device.device());
  fingerprints_->record_weights(start.part);
}

void FingerprintWatcher::begin(Step& step) {
  if (step.attempt == 1) tokens_ = fingerprints_->hash_of_tokens(step.batches);
}

void Fingerprints::write(const Value& line) {
  if (out_.is_open()) out_ << to_json(line) << std::endl;
}

}  // namespace titan::fingerprints
