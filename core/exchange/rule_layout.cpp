#include "core/exchange/rule_layout.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include <titan/error.h>
#include <titan/shown_text.h>

#include "core/exchange/shape_text.h"

namespace titan::core {
namespace {

using NameRule = HfExchange::NameRule;
using Shape = std::vector<int64_t>;

constexpr size_t kMaxProblems = 12, kMaxLine = 1000;  // fits two names of a plugin and their shapes

/// A valid rule and its part: the elements in our tensor and in theirs.
struct Resolved {
  const NameRule* rule;
  TensorPart part;  ///< from theirs to ours
};

/// Resolves one rule. Throws a config Error, without the rule's names, if it is invalid.
class Resolver {
 public:
  Resolver(const NameRule& rule, const Shape& shape) : rule_(rule), shape_(shape) {}

  TensorPart part() {
    read_ours();
    read_theirs();
    if (rule_.num_rotary_heads != 0) {
      require(!part_.dims.empty() && rule_.num_rotary_heads > 0 &&
                  part_.dims[0].size % (2 * rule_.num_rotary_heads) == 0,
              "its rows do not divide into ", rule_.num_rotary_heads, " heads of even size");
      part_.order = RowOrder::pairs_to_halves;
      part_.num_heads = rule_.num_rotary_heads;
    }
    part_.source = rule_.theirs;
    part_.scales = rule_.scales;
    return std::move(part_);
  }

 private:
  template <class... Text>
  static void require(bool holds, const Text&... text) {
    if (!holds) fail(ErrorKind::config, text...);
  }

  static std::map<int64_t, const TensorCut*> by_dim(const std::vector<TensorCut>& cuts,
                                                    const char* whose) {
    std::map<int64_t, const TensorCut*> found;
    for (const TensorCut& cut : cuts) {
      require(found.emplace(cut.dim, &cut).second, whose, " cuts dimension ", cut.dim, " twice");
      require(cut.dim >= 0 && cut.begin >= 0 && cut.size >= 0 && cut.step >= 1, whose,
              " has a negative number, or a step of 0, for dimension ", cut.dim);
    }
    return found;
  }

  void read_ours() {
    const auto cuts = by_dim(rule_.of_ours, "of_ours");
    const auto rank = static_cast<int64_t>(shape_.size());
    require(cuts.empty() || cuts.rbegin()->first < rank, "of_ours cuts dimension ",
            cuts.empty() ? 0 : cuts.rbegin()->first, " of ", shape_text(shape_));
    for (int64_t d = 0; d < rank; ++d) {
      const int64_t length = shape_[static_cast<size_t>(d)];
      const auto cut = cuts.find(d);
      Progression run = {.dim = d};
      int64_t size = length;
      if (cut != cuts.end()) {
        run.begin = cut->second->begin;
        run.step = cut->second->step;
        size = cut->second->size;
        if (size == 0) size = std::max<int64_t>(0, (length - run.begin + run.step - 1) / run.step);
        require(size > 0 && run.begin + (size - 1) * run.step < length, "of_ours leaves dimension ",
                d, " of ", shape_text(shape_));
      }
      if (cut != cuts.end() && cut->second->drops_dim)
        part_.target_fixed.push_back(run);
      else
        part_.dims.push_back({.size = size, .target = run, .source = {}});
    }
  }

  void read_theirs() {
    const auto cuts = by_dim(rule_.of_theirs, "of_theirs");
    const size_t num_left = part_.dims.size();
    std::vector<int64_t> order = rule_.order;
    if (order.empty()) {
      order.resize(num_left);
      std::iota(order.begin(), order.end(), 0);
    }
    Shape sorted = order;
    std::sort(sorted.begin(), sorted.end());
    bool is_permutation = sorted.size() == num_left;
    for (size_t k = 0; is_permutation && k < num_left; ++k)
      is_permutation = sorted[k] == static_cast<int64_t>(k);
    require(is_permutation, "order does not name each of the ", num_left,
            " remaining dimensions of ours exactly once");

    int64_t rank = static_cast<int64_t>(num_left);
    for (const auto& [dim, cut] : cuts) rank += cut->drops_dim;
    Shape left;  // remaining dimensions of theirs
    for (int64_t d = 0; d < rank; ++d) {
      const auto cut = cuts.find(d);
      if (cut != cuts.end() && cut->second->drops_dim)
        part_.source_fixed.push_back({.dim = d, .begin = cut->second->begin});
      else
        left.push_back(d);
    }
    require(cuts.empty() || cuts.rbegin()->first < rank, "of_theirs cuts dimension ",
            cuts.empty() ? 0 : cuts.rbegin()->first, " of a tensor of ", rank, " dimensions");
    for (size_t k = 0; k < num_left; ++k) {
      PartDim& dim = part_.dims[k];
      dim.source.dim = left[static_cast<size_t>(order[k])];
      const auto cut = cuts.find(dim.source.dim);
      if (cut == cuts.end()) continue;
      dim.source.begin = cut->second->begin;
      dim.source.step = cut->second->step;
      require(cut->second->size == 0 || cut->second->size == dim.size, "of_theirs takes ",
              cut->second->size, " elements of dimension ", dim.source.dim, ", ours has ",
              dim.size);
    }
  }

  const NameRule& rule_;
  const Shape& shape_;
  TensorPart part_;
};

/// The elements of one tensor that a part covers: a progression for each dimension.
struct Region {
  const NameRule* rule;
  std::vector<std::pair<Progression, int64_t>> runs;  ///< with their sizes, by dimension

  int64_t count() const {
    int64_t elements = 1;
    for (const auto& [run, size] : runs) elements *= size;
    return elements;
  }
};

Region region_of(const Resolved& resolved, Progression PartDim::*side,
                 std::vector<Progression> TensorPart::*fixed) {
  Region region = {.rule = resolved.rule, .runs = {}};
  const TensorPart& part = resolved.part;
  region.runs.resize(part.dims.size() + (part.*fixed).size());
  for (const PartDim& dim : part.dims)
    region.runs[static_cast<size_t>((dim.*side).dim)] = {dim.*side, dim.size};
  for (const Progression& run : part.*fixed) region.runs[static_cast<size_t>(run.dim)] = {run, 1};
  return region;
}

/// One past its last number.
int64_t end_of(const std::pair<Progression, int64_t>& run) {
  return run.first.begin + (run.second - 1) * run.first.step + 1;
}

/// The first number in both progressions.
std::optional<int64_t> common(const std::pair<Progression, int64_t>& a,
                              const std::pair<Progression, int64_t>& b) {
  const Progression &x = a.first, &y = b.first;
  const int64_t begin = std::max(x.begin, y.begin);
  const int64_t end = std::min(end_of(a), end_of(b));
  const int64_t first = x.begin + (begin - x.begin + x.step - 1) / x.step * x.step;
  for (int64_t at = first, tries = 0; at < end && tries < y.step; at += x.step, ++tries)
    if ((at - y.begin) % y.step == 0) return at;
  return std::nullopt;
}

/// An element that both regions cover.
std::optional<Shape> common_element(const Region& a, const Region& b) {
  Shape element;
  for (size_t d = 0; d < a.runs.size(); ++d) {
    const auto at = common(a.runs[d], b.runs[d]);
    if (!at) return std::nullopt;
    element.push_back(*at);
  }
  return element;
}

int64_t num_elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

class RuleLayoutMaker {
 public:
  RuleLayoutMaker(const std::vector<ParameterInfo>& parameters, const std::string& model_name)
      : model_name_(model_name) {
    for (const ParameterInfo& parameter : parameters)
      shapes_.emplace(parameter.name, parameter.shape);
  }

  RuleLayout of(const std::vector<NameRule>& rules) {
    for (const NameRule& rule : rules) resolve(rule);
    for (const auto& [ours, group] : by_ours_) group_parts(ours, group);
    for (const std::string& theirs : order_of_theirs_) measure_theirs(theirs);
    report();
    for (const std::string& theirs : order_of_theirs_) add_export(theirs);
    return std::move(result_);
  }

 private:
  void problem(const std::string& text) { problems_.push_back(text); }

  static std::string named(const NameRule& rule) {
    return rule.ours + (rule.theirs == rule.ours ? "" : " (" + rule.theirs + ")");
  }

  void resolve(const NameRule& rule) {
    const auto shape = shapes_.find(rule.ours);
    if (shape == shapes_.end()) return problem(named(rule) + ": the model has no such parameter");
    try {
      by_ours_[rule.ours].push_back({&rule, Resolver(rule, shape->second).part()});
    } catch (const Error& e) {
      return problem(named(rule) + ": " + e.message());
    }
    if (!by_theirs_.contains(rule.theirs)) order_of_theirs_.push_back(rule.theirs);
    by_theirs_[rule.theirs].push_back(by_ours_[rule.ours].back());
  }

  /// Reports elements of a tensor of `shape` that no region or several `regions` cover.
  void check_cover(const std::string& name, const Shape& shape,
                   const std::vector<Region>& regions) {
    int64_t taken = 0;
    bool is_twice = false;
    for (const Region& region : regions) taken += region.count();
    for (size_t i = 0; i < regions.size(); ++i)
      for (size_t k = 0; k < i && !is_twice; ++k)
        if (const auto element = common_element(regions[k], regions[i])) {
          problem("the rules " + named(*regions[k].rule) + " and " + named(*regions[i].rule) +
                  " both map element " + shape_text(*element) + " of " + name);
          is_twice = true;
        }
    if (!is_twice && taken < num_elements(shape))
      problem("no rule covers " + std::to_string(num_elements(shape) - taken) + " of the " +
              std::to_string(num_elements(shape)) + " elements of " + name + " " +
              shape_text(shape));
  }

  void group_parts(const std::string& ours, const std::vector<Resolved>& group) {
    const Shape& shape = shapes_.at(ours);
    std::vector<TensorParts>& alternatives = result_.alternatives[ours];
    for (size_t i = 0; i < group.size();) {
      int64_t taken = 0;
      std::vector<Region> regions;
      TensorParts parts;
      do {
        regions.push_back(region_of(group[i], &PartDim::target, &TensorPart::target_fixed));
        taken += regions.back().count();
        parts.push_back(group[i].part);
        if (alternatives.empty()) exported_.insert(group[i].rule);
      } while (++i < group.size() && taken < num_elements(shape));
      check_cover(ours, shape, regions);
      alternatives.push_back(std::move(parts));
    }
  }

  void measure_theirs(const std::string& theirs) {
    std::vector<Region> regions;
    Shape& shape = result_.shapes[theirs];
    for (const Resolved& resolved : by_theirs_.at(theirs)) {
      regions.push_back(region_of(resolved, &PartDim::source, &TensorPart::source_fixed));
      const auto& runs = regions.back().runs;
      if (runs.size() != regions.front().runs.size())
        return problem("the rules make " + theirs + " a tensor of " +
                       std::to_string(regions.front().runs.size()) + " and of " +
                       std::to_string(runs.size()) + " dimensions");
      shape.resize(runs.size());
      for (size_t d = 0; d < runs.size(); ++d) shape[d] = std::max(shape[d], end_of(runs[d]));
    }
    check_cover(theirs, shape, regions);
    const auto num_exported =
        std::count_if(regions.begin(), regions.end(),
                      [&](const Region& region) { return exported_.contains(region.rule); });
    if (num_exported > 0 && num_exported < static_cast<int64_t>(regions.size()))
      problem("of the rules of " + theirs +
              " some are for preferred forms of their parameters and others for alternatives");
  }

  void report() const {
    if (problems_.empty()) return;
    std::string text = "the plugin of model '" + model_name_ +
                       "' has invalid rules for weights of other programs:";
    for (size_t i = 0; i < std::min(problems_.size(), kMaxProblems); ++i)
      text += "\n  " + printable(problems_[i], kMaxLine);
    if (problems_.size() > kMaxProblems)
      text += "\n  and " + std::to_string(problems_.size() - kMaxProblems) + " more";
    fail(ErrorKind::plugin, text);
  }

  void add_export(const std::string& theirs) {
    TensorParts parts;
    for (const Resolved& resolved : by_theirs_.at(theirs)) {
      if (!exported_.contains(resolved.rule)) return;  // belongs to an alternative
      TensorPart part = resolved.part;
      part.source = resolved.rule->ours;
      part.scales.clear();
      for (PartDim& dim : part.dims) std::swap(dim.target, dim.source);
      std::swap(part.target_fixed, part.source_fixed);
      if (part.order != RowOrder::as_stored) part.order = RowOrder::halves_to_pairs;
      parts.push_back(std::move(part));
    }
    result_.exports.emplace_back(theirs, std::move(parts));
  }

  const std::string& model_name_;
  std::map<std::string, Shape> shapes_;
  std::map<std::string, std::vector<Resolved>> by_ours_, by_theirs_;
  std::vector<std::string> order_of_theirs_, problems_;
  std::set<const NameRule*> exported_;
  RuleLayout result_;
};

}  // namespace

RuleLayout lay_out_rules(const std::vector<ParameterInfo>& parameters,
                         const std::vector<NameRule>& rules, const std::string& model_name) {
  return RuleLayoutMaker(parameters, model_name).of(rules);
}

void check_name_rules(const Model& model, const ModelPart& part, const std::string& model_name) {
  const auto* exchange = dynamic_cast<const HfExchange*>(&model);
  if (!exchange) return;
  for (const Naming naming : {Naming::hugging_face, Naming::meta, Naming::torchtitan}) {
    const std::vector<NameRule> rules = exchange->name_rules(naming);
    if (rules.empty()) continue;
    const RuleLayout layout = lay_out_rules(part.all_parameters(), rules, model_name);
    for (const ParameterInfo& parameter : part.all_parameters())
      TITAN_CHECK(layout.alternatives.contains(parameter.name) || parameter.is_state(), plugin,
                  "the plugin of model '", model_name, "' gives no name for its parameter ",
                  parameter.name);
  }
}

}  // namespace titan::core
