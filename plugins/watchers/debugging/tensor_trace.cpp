#include "tensor_trace.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include <titan/error.h>
#include <titan/files/file.h>
#include <titan/files/hash.h>
#include <titan/name_pattern.h>
#include <titan/value.h>

#include "tensor_statistics.h"

namespace titan::debugging {
namespace {

using Kind = TensorPlace::Kind;

Value list_of(at::IntArrayRef numbers) {
  Value::List list;
  for (const int64_t number : numbers) list.emplace_back(number);
  return Value(std::move(list));
}

Value list_of(const std::vector<std::string>& texts) {
  Value::List list;
  for (const std::string& text : texts) list.emplace_back(text);
  return Value(std::move(list));
}

Value list_of(const TensorPlace::Key& key) {
  const auto [phase, microbatch, layer, sequence] = key;
  return Value::list({phase, microbatch, layer, sequence});
}

/// Removes an incomplete last line of a killed run.
void cut_to_whole_lines(const std::string& path) {
  if (!std::filesystem::exists(path)) return;
  const std::string text = read_text(path);
  const size_t whole = text.rfind('\n') + 1;
  if (whole != text.size()) std::filesystem::resize_file(path, whole);
}

/// Whether its first dimension is the sequences of the batch.
bool has_rows(const TensorPlace& place, const at::Tensor& tensor) {
  const Kind kind = place.kind;
  return (kind == Kind::input || kind == Kind::output || kind == Kind::output_gradient) &&
         tensor.dim() > 0 && tensor.size(0) == place.num_rows;
}

}  // namespace

void TensorTrace::check(const std::vector<std::string>& names) const {
  for (const std::string& pattern : options_.trace_tensors) {
    const bool fits = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return matches_pattern(name, pattern);
    });
    TITAN_CHECK(
        fits, config, "debug.trace_tensors: '", pattern,
        "' fits no layer, module or weight of the model; '*' stands for any text, and there "
        "are '",
        names.front(), "' and '", names.back(), "'");
  }
}

void TensorTrace::start(const std::string& dump_folder, int64_t resumed_step, int64_t first_row) {
  first_row_ = first_row;
  const std::string folder = dump_folder + "/tensor_trace";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  TITAN_CHECK(!error, io, "cannot make the folder '", folder,
              "' (debug.trace_tensors): ", error.message());
  path_ = folder + "/rank_" + std::to_string(mesh_.rank()) + ".jsonl";
  if (resumed_step > 0) cut_to_whole_lines(path_);
  out_.open(path_, std::ios::binary | (resumed_step > 0 ? std::ios::app : std::ios::trunc));
  TITAN_CHECK(out_, io, "cannot write '", path_, "' (debug.trace_tensors): ", std::strerror(errno));
  Value axes = Value::map();
  for (const dist::Grid::Axis& axis : mesh_.grid().axes()) axes[axis.name] = axis.size;
  lines_ = to_json(Value::map({{"trace", list_of(options_.trace_tensors)},
                               {"rank", mesh_.rank()},
                               {"world_size", mesh_.grid().world_size()},
                               {"axes", axes},
                               {"from_step", resumed_step + 1}})) +
           "\n";
  write();
}

bool TensorTrace::watches(const Step& step) {
  step_ = step.number, attempt_ = step.attempt;
  lines_.clear();
  if (step_ < options_.trace_tensors_from) return false;
  if (options_.trace_tensors_until && step_ > *options_.trace_tensors_until) return false;
  return (step_ - options_.trace_tensors_from) % options_.trace_tensors_every == 0;
}

bool TensorTrace::wants(std::string_view name) const {
  return matches_any(name, options_.trace_tensors);
}

void TensorTrace::see(const TensorPlace& place, const at::Tensor& tensor) {
  GlobalPart part;
  const bool is_whole_weight = place.kind == Kind::parameter || place.kind == Kind::gradient;
  if (is_whole_weight) {
    part = {place.parameter->slice().offsets, place.parameter->global_shape()};
  } else if (has_rows(place, tensor)) {
    // position in the global batch, whose number of rows does not affect the index
    part.offsets.assign(static_cast<size_t>(tensor.dim()), 0);
    part.offsets[0] = first_row_ + place.first_row;
    part.shape = tensor.sizes().vec();
  }
  const TensorStatistics s = statistics_of(tensor, part);
  Value line = Value::map({{"step", step_},
                           {"attempt", attempt_},
                           {"tensor", word_of(place.kind)},
                           {"name", place.name},
                           {"key", list_of(place.key())},
                           {"dtype", c10::toString(tensor.scalar_type())},
                           {"shape", list_of(tensor.sizes())},
                           {"count", s.count},
                           {"mean", s.mean},
                           {"rms", s.rms},
                           {"min", s.min},
                           {"max", s.max},
                           {"nan", s.num_nan},
                           {"inf", s.num_inf},
                           {"hash", hex_text(s.hash)}});
  if (is_whole_weight) {
    line["offsets"] = list_of(part.offsets);
    line["of"] = list_of(part.shape);
  } else if (has_rows(place, tensor)) {
    line["row"] = part.offsets[0];
    line["rows"] = tensor.size(0);
  }
  lines_ += to_json(line) + "\n";
}

void TensorTrace::write() {
  out_ << lines_ << std::flush;
  lines_.clear();
  TITAN_CHECK(out_, io, "cannot write '", path_,
              "' (debug.trace_tensors); make room or set "
              "debug.trace_tensors_until");
}

}  // namespace titan::debugging
