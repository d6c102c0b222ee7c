#include "core/checkpoint/part_loader.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <titan/error.h>

#include "core/exchange/quantised.h"
#include "core/runtime/tensors/dtypes.h"

namespace titan::core {
namespace {

constexpr int64_t kRoundBytes = int64_t{256} << 20;

/// A part of a weight that overlaps this rank's shard.
struct OwnPart {
  const TensorPart* part;
  const StateTensor* weight;
  PartOverlap common;
};

/// A stored tensor and how the model uses it; the same on every rank.
struct SourcePart {
  const TensorPart* part = nullptr;  ///< one of the parts that come from it
  int num_uses = 0;
  Encoding encoding = Encoding::plain;
  bool is_direct = false;  ///< it is read straight into the weight
};

/// The smallest rectangle that holds both.
void widen(nn::Slice& box, const nn::Slice& other) {
  for (size_t d = 0; d < box.sizes.size(); ++d) {
    const int64_t end = std::max(box.offsets[d] + box.sizes[d], other.offsets[d] + other.sizes[d]);
    box.offsets[d] = std::min(box.offsets[d], other.offsets[d]);
    box.sizes[d] = end - box.offsets[d];
  }
}

class PartLoader {
 public:
  PartLoader(const TensorIndex& index, const std::vector<FoundWeight>& found,
             const std::vector<StateTensor>& weights, const dist::Group& world, c10::Device device)
      : index_(index), world_(world), device_(device) {
    std::map<std::string_view, const StateTensor*> held;
    for (const StateTensor& weight : weights) held.emplace(weight.name, &weight);
    for (const FoundWeight& weight : found)
      for (const TensorPart& part : weight.parts) {
        const auto [source, is_new] = sources_.try_emplace(part.source);
        if (is_new) order_.push_back(part.source);
        source->second.part = &part;
        source->second.num_uses += 1;
        const auto own = held.find(weight.ours);
        if (own == held.end()) continue;
        if (auto common = overlap(part, own->second->slice))
          own_[part.source].push_back({&part, own->second, std::move(*common)});
      }
    for (auto& [name, source] : sources_) {
      source.encoding = encoding_of(*source.part, index_);
      source.is_direct =
          source.num_uses == 1 && source.encoding == Encoding::plain && is_rectangle(*source.part);
    }
  }

  LoadStats run() {
    std::vector<std::string> direct, round;
    for (const std::string& name : order_)
      if (sources_.at(name).is_direct) direct.push_back(name);
    load_direct(direct);
    int64_t bytes = 0;
    for (const std::string& name : order_) {
      if (sources_.at(name).is_direct) continue;
      const int64_t own = stored_bytes(name);
      if (!round.empty() && bytes + own > kRoundBytes) {
        load_staged(round);
        round.clear();
        bytes = 0;
      }
      round.push_back(name);
      bytes += own;
    }
    if (!round.empty()) load_staged(round);
    return stats_;
  }

 private:
  int64_t stored_bytes(const std::string& name) const {
    int64_t bytes = 0;
    for (const StoredPiece& piece : index_.tensors.find(name)->second.pieces) bytes += piece.bytes;
    return bytes;
  }

  void load(const std::vector<StateTensor>& wanted) {
    const LoadStats stats = load_tensors(
        index_, wanted, [](const std::string& name) { return name; }, world_, device_);
    stats_.bytes_read += stats.bytes_read;
    stats_.bytes_received += stats.bytes_received;
    stats_.num_converted += stats.num_converted;
  }

  /// Reads each tensor into a view of the weight itself.
  void load_direct(const std::vector<std::string>& names) {
    std::vector<StateTensor> wanted;
    for (const std::string& name : names) {
      const auto own = own_.find(name);
      if (own == own_.end()) continue;
      const OwnPart& part = own->second.front();
      StateTensor& target = wanted.emplace_back();
      target.name = name;
      target.slice = part.common.source;
      target.tensor = target_as_source(*part.part, part.common, part.weight->tensor,
                                       part.weight->slice.offsets);
    }
    load(wanted);
  }

  /// Reads the rectangle that this rank needs of each tensor into memory, then copies it into the
  /// weights.
  void load_staged(const std::vector<std::string>& names) {
    struct Staged {
      std::string name;
      nn::Slice box;
      std::vector<size_t> tensors;  // in `wanted`
    };
    std::vector<StateTensor> wanted;
    std::vector<Staged> all;
    for (const std::string& name : names) {
      const auto own = own_.find(name);
      if (own == own_.end()) continue;
      Staged staged = {.name = name, .box = own->second.front().common.source, .tensors = {}};
      for (const OwnPart& part : own->second) widen(staged.box, part.common.source);
      const SourcePart& source = sources_.at(name);
      for (const StoredBox& needed : boxes_for(*source.part, source.encoding, staged.box)) {
        const std::string& dtype = index_.tensors.find(needed.name)->second.dtype;
        staged.tensors.push_back(wanted.size());
        StateTensor& target = wanted.emplace_back();
        target.name = needed.name;
        target.slice = needed.box;
        target.tensor = at::empty(needed.box.sizes, at::TensorOptions().dtype(scalar_type(dtype)));
      }
      all.push_back(std::move(staged));
    }
    load(wanted);
    for (const Staged& staged : all) {
      std::vector<at::Tensor> stored;
      for (const size_t i : staged.tensors) stored.push_back(wanted[i].tensor);
      const SourcePart& source = sources_.at(staged.name);
      const at::Tensor values = decoded(*source.part, source.encoding, staged.box, stored);
      for (const OwnPart& part : own_.at(staged.name)) {
        copy_part(*part.part, part.common, values, staged.box.offsets, part.weight->tensor,
                  part.weight->slice.offsets);
        stats_.num_converted += source.encoding == Encoding::plain &&
                                values.scalar_type() != part.weight->tensor.scalar_type();
      }
    }
  }

  const TensorIndex& index_;
  const dist::Group& world_;
  c10::Device device_;
  std::map<std::string, SourcePart> sources_;
  std::vector<std::string> order_;  // of the sources, the same on every rank
  std::map<std::string, std::vector<OwnPart>> own_;
  LoadStats stats_;
};

}  // namespace

LoadStats load_parts(const TensorIndex& index, const std::vector<FoundWeight>& found,
                     const std::vector<StateTensor>& weights, const dist::Group& world,
                     c10::Device device) {
  at::NoGradGuard no_grad;
  return PartLoader(index, found, weights, world, device).run();
}

}  // namespace titan::core
