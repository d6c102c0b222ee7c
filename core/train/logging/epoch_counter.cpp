#include "core/train/logging/epoch_counter.h"

#include <titan/log.h>

namespace titan::core {
namespace {

std::string ended_epochs(const std::string& source, int64_t from, int64_t to, int64_t step) {
  std::string text = "source '" + source + "': epoch";
  text += from == to ? " " + std::to_string(to)
                     : "s " + std::to_string(from) + " to " + std::to_string(to);
  return text + " ended by step " + std::to_string(step) +
         "; the documents come again from here on";
}

}  // namespace

EpochCounter::EpochCounter(const Loader& loader, const dist::Mesh& mesh)
    : loader_(loader), mesh_(mesh), begun_with_(loader.ended_epochs()) {
  for (const std::string& name : loader.source_names()) {
    names_.push_back(name);
    tags_.push_back("data_metrics/epochs/" + name);
  }
}

std::vector<Scalar> EpochCounter::count(int64_t step, c10::Device device) {
  const dist::Group& group = mesh_.group("dp");
  const auto of_all = [&](int64_t own) { return group.all_reduce(own, dist::Reduce::min, device); };
  if (reported_.empty())
    for (const int64_t own : begun_with_) reported_.push_back(of_all(own));
  const std::vector<int64_t> ended = loader_.ended_epochs();
  std::vector<Scalar> scalars;
  for (size_t i = 0; i < names_.size(); ++i) {
    const int64_t all = of_all(ended[i]);
    if (all > reported_[i] && mesh_.rank() == 0)
      log::info(ended_epochs(names_[i], reported_[i] + 1, all, step));
    reported_[i] = all;
    scalars.push_back({tags_[i], static_cast<double>(all)});
  }
  return scalars;
}

}  // namespace titan::core
