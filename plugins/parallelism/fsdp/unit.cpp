#include "unit.h"

#include <map>
#include <numeric>

#include <titan/error.h>

#include "leaf_storage.h"

namespace titan::fsdp {
namespace {

constexpr int64_t kAlignment = 16;  // bytes that one vector instruction copies

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// For each layer the first layer that it shares a parameter with, directly or through others; its
/// own place when it shares none.
std::vector<size_t> first_relatives(ModelPart& part) {
  std::vector<size_t> first(part.layers().size());
  std::iota(first.begin(), first.end(), size_t{0});
  std::map<nn::Parameter*, size_t> owner;
  for (size_t layer = 0; layer < first.size(); ++layer) {
    part.layers()[layer].module->visit_parameters([&](nn::Parameter& parameter) {
      const auto [met, is_new] = owner.emplace(&parameter, layer);
      const size_t a = first[met->second], b = first[layer];
      if (is_new || a == b) return;
      for (size_t& relative : first)
        if (relative == std::max(a, b)) relative = std::min(a, b);
    });
  }
  return first;
}

Member make_member(nn::Parameter& parameter, const Settings& settings) {
  TITAN_CHECK(!parameter.global_shape().empty(), config, "fsdp cannot shard parameter '",
              parameter.name(), "': it is a scalar and has no rows");
  TITAN_CHECK(parameter.shard().is_same(parameter.value()), config, "fsdp cannot shard parameter '",
              parameter.name(), "': another data-parallel transform has taken it; select one");
  const std::vector<int64_t> sizes = parameter.slice().sizes;
  const int64_t row_elements =
      std::accumulate(sizes.begin() + 1, sizes.end(), int64_t{1}, std::multiplies<>());
  const int64_t num_ranks = settings.shards.size();

  Member member{.parameter = &parameter, .wire_dtype = settings.param_dtype};
  if (parameter.gather_transform() && num_ranks > 1)
    member.wire_dtype = parameter.gather_transform()->wire_dtype();
  if (num_ranks > 1) parameter.shard_over(0, settings.shards);
  if (settings.is_offloaded()) parameter.keep_shard_on(c10::kCPU);
  member.leaf =
      make_empty_leaf(sizes, settings.param_dtype, settings.device, !parameter.is_frozen());
  parameter.separate_value(member.leaf);
  member.chunk_rows = (sizes[0] + num_ranks - 1) / num_ranks;
  member.chunk_elements = member.chunk_rows * row_elements;
  member.own_elements = parameter.shard().numel();
  member.wire_bytes =
      member.chunk_elements * static_cast<int64_t>(c10::elementSize(member.wire_dtype));
  return member;
}

/// A chunk starts at a multiple of 16 bytes; where the chunk before it ends at one too, which is
/// the rule, the buffer has no gaps.
void lay_out(Unit& unit) {
  for (Member& member : unit.members) {
    member.wire_offset = round_up(unit.slot_bytes, kAlignment);
    unit.slot_bytes = member.wire_offset + member.wire_bytes;
    if (member.is_frozen()) continue;
    ++unit.num_trainable;
    member.gradient_offset = unit.slot_elements;
    unit.slot_elements += member.chunk_elements;
  }
  unit.slot_bytes = round_up(unit.slot_bytes, kAlignment);
}

}  // namespace

std::vector<Unit> make_units(ModelPart& part, const Settings& settings) {
  const std::vector<size_t> relatives = first_relatives(part);
  std::map<size_t, Unit> by_first_layer;
  std::map<nn::Parameter*, bool> is_taken;
  for (size_t layer = 0; layer < relatives.size(); ++layer) {
    Unit& unit = by_first_layer[relatives[layer]];
    unit.layers.push_back(layer);
    part.layers()[layer].module->visit_parameters([&](nn::Parameter& parameter) {
      if (!std::exchange(is_taken[&parameter], true))
        unit.members.push_back(make_member(parameter, settings));
    });
  }
  std::vector<Unit> units;
  for (auto& [first, unit] : by_first_layer) {
    lay_out(unit);
    units.push_back(std::move(unit));
  }
  return units;
}

}  // namespace titan::fsdp
