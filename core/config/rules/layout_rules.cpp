// Checks the degrees against the world size, and the batch against the degrees.
#include <algorithm>
#include <numeric>
#include <vector>

#include "core/config/rules/cross_rules.h"
#include "core/config/selection/component_error.h"

namespace titan::core {
namespace {

struct Degree {
  const char* key;
  const char* name;
  int64_t value;
  int64_t ParallelismSection::*member = nullptr;  // null: several options of plugins
  bool cuts_model = false;                        // not every model supports every value
};

/// Capped: no machine has this many ranks, and products stay in range.
int64_t product(std::initializer_list<int64_t> factors) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t result = 1;
  for (const int64_t factor : factors)
    result = factor > kMost / std::max<int64_t>(result, 1) ? kMost : result * factor;
  return result;
}

/// The product of all degrees.
int64_t num_ranks(const Layout& layout) {
  return product({layout.replicate, layout.shard, layout.context, layout.tensor, layout.pipeline,
                  layout.added});
}

std::string text_of(const std::vector<Degree>& degrees) {
  std::string text;
  for (const Degree& degree : degrees)
    text += (text.empty() ? "" : " x ") + std::string(degree.name) + " " +
            (degree.value < 0 ? "-1" : std::to_string(degree.value));
  return text;
}

/// How many rules of layouts and batches `tried` breaks.
int broken_rules(const JobConfig& tried, const RuleContext& rules) {
  Diagnostics found;
  const RuleContext context{tried, rules.given, found, /*looks_for_files=*/false};
  check_layout(context, plan_layout(context));
  return found.count(Severity::error);
}

/// Whether a run with this degree breaks no more rules than a run of `whole` ranks with the degrees
/// as written.
bool keeps_rules(const RuleContext& rules, const Degree& degree, int64_t value, int64_t whole) {
  JobConfig tried = rules.config, as_written = rules.config;
  tried.parallelism.*degree.member = value;
  as_written.world_size = static_cast<int>(whole);
  return broken_rules(tried, rules) <= broken_rules(as_written, rules);
}

/// A value of this degree that corrects the product, or 0 if there is none. For a degree that
/// splits the model, it divides the present value: a model that fits that many ranks fits this
/// many. `shards_rest`: sharding takes the remaining ranks.
int64_t proposed(const RuleContext& rules, const Degree& degree, int64_t whole, bool shards_rest) {
  if (!degree.member || degree.value < 1 || whole % degree.value != 0) return 0;
  const int64_t world = rules.config.world_size, rest = whole / degree.value;
  if (world % rest != 0) return 0;
  int64_t value = world / rest;
  if (shards_rest) value = std::gcd(value, degree.value);
  if (value == degree.value || (degree.cuts_model && degree.value % value != 0)) return 0;
  return keeps_rules(rules, degree, value, whole) ? value : 0;
}

/// The nearest world size that the degrees allow, or two that are equally near.
std::string nearest_ranks(int64_t world, int64_t whole, bool shards_rest) {
  const int64_t below = shards_rest ? world / whole * whole : 0;
  const int64_t above = below + whole;
  if (below == 0 || above - world < world - below)
    return "start " + std::to_string(above) + (above == 1 ? " rank" : " ranks");
  return "start " + std::to_string(below) +
         (above - world == world - below ? " or " + std::to_string(above) : "") +
         (below == 1 ? " rank" : " ranks");
}

/// Reports the error at the first degree whose change alone corrects the product, else at the
/// largest. `whole`: the product of the degrees.
void report_product(const RuleContext& rules, const std::vector<Degree>& degrees, int64_t whole) {
  const int64_t world = rules.config.world_size;
  const bool shards_rest = degrees.front().value < 0;
  const Degree* blamed =
      &*std::max_element(degrees.begin(), degrees.end(),
                         [](const Degree& a, const Degree& b) { return a.value < b.value; });
  std::string hint = nearest_ranks(world, whole, shards_rest);
  for (const Degree& degree : degrees)
    if (const int64_t value = proposed(rules, degree, whole, shards_rest); value > 0) {
      blamed = &degree;
      hint += " or set " + std::string(degree.key).substr(12) + " = " + std::to_string(value);
      break;
    }
  rules.error(blamed->key,
              "the parallel degrees do not make the world size: " + text_of(degrees) + " = " +
                  std::to_string(whole) + ", but the world size is " + std::to_string(world),
              hint);
}

void plan_degrees(const RuleContext& rules, Layout& layout) {
  const ParallelismSection& p = rules.config.parallelism;
  const int64_t world = rules.config.world_size;
  std::vector<Degree> degrees = {
      {"parallelism.data_parallel_shard_degree", "shard", p.data_parallel_shard_degree,
       &ParallelismSection::data_parallel_shard_degree},
      {"parallelism.data_parallel_replicate_degree", "replicate", p.data_parallel_replicate_degree,
       &ParallelismSection::data_parallel_replicate_degree},
      {"parallelism.tensor_parallel_degree", "tensor", p.tensor_parallel_degree,
       &ParallelismSection::tensor_parallel_degree, true},
      {"parallelism.context_parallel_degree", "context", p.context_parallel_degree,
       &ParallelismSection::context_parallel_degree, true},
      {"parallelism.pipeline_parallel_degree", "pipeline", p.pipeline_parallel_degree,
       &ParallelismSection::pipeline_parallel_degree, true},
  };
  for (const Degree& degree : degrees)
    if (!rules.given.is_sound(degree.key)) return;
  for (const AxisRequest& request : rules.config.axis_requests)
    layout.added = product({layout.added, request.plan.num_added_ranks()});
  if (layout.added > 1) degrees.push_back({"parallelism.further", "axes of plugins", layout.added});
  layout.replicate = p.data_parallel_replicate_degree;
  layout.context = p.context_parallel_degree;
  layout.tensor = p.tensor_parallel_degree;
  layout.pipeline = p.pipeline_parallel_degree;
  layout.shard = std::max<int64_t>(1, p.data_parallel_shard_degree);
  layout.data_parallel = product({layout.replicate, layout.shard});

  const int64_t others =
      product({layout.replicate, layout.context, layout.tensor, layout.pipeline, layout.added});
  if (p.data_parallel_shard_degree == 0) {
    rules.error(degrees[0].key,
                "parallelism.data_parallel_shard_degree must be -1 or at least 1, got 0",
                "-1: all remaining ranks");
  } else if (p.data_parallel_shard_degree < 0) {
    if (world % others != 0) {
      report_product(rules, degrees, others);
      return;
    }
    layout.shard = world / others;
    layout.data_parallel = layout.replicate * layout.shard;
  } else if (num_ranks(layout) != world) {
    report_product(rules, degrees, num_ranks(layout));
  }
}

void plan_batch(const RuleContext& rules, Layout& layout) {
  const TrainingSection& t = rules.config.training;
  const char* const key = "training.global_batch_size";
  if (!rules.are_sound({"training.local_batch_size", key})) return;
  const int64_t round = product({t.local_batch_size, layout.data_parallel});
  const FaultToleranceSection& fault_tolerance = rules.config.fault_tolerance;
  const int64_t groups =
      fault_tolerance.enable ? std::max<int64_t>(1, fault_tolerance.group_size) : 1;
  layout.global_batch_size =
      t.global_batch_size < 0 ? product({round, groups}) : t.global_batch_size;
  layout.accumulation_rounds =
      std::max<int64_t>(1, layout.global_batch_size / product({round, groups}));
  if (t.global_batch_size == 0) {
    rules.error(key, "training.global_batch_size must not be 0", "-1: one accumulation round");
  } else if (layout.global_batch_size % round != 0) {
    const int64_t below = layout.global_batch_size / round * round;
    std::string nearest = "nearest: " + (below > 0 ? std::to_string(below) : "");
    if (below <= INT64_MAX - round)  // otherwise int64_t cannot hold the next multiple
      nearest += (below > 0 ? " or " : "") + std::to_string(below + round);
    rules.error(key,
                "training.global_batch_size = " + std::to_string(t.global_batch_size) +
                    " is not a multiple of local_batch_size x data-parallel ranks = " +
                    std::to_string(t.local_batch_size) + " x " +
                    std::to_string(layout.data_parallel) + " = " + std::to_string(round),
                std::move(nearest));
  }
}

}  // namespace

bool RuleContext::are_sound(std::initializer_list<std::string_view> keys) const {
  return std::all_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return given.is_sound(key); });
}

void RuleContext::error(std::string_view key, std::string message, std::string hint) const {
  const SourceRange place = given.place_of_rule(key, message);
  diagnostics.error(place, std::move(message), std::move(hint));
}

void make_grid(JobConfig& config, Diagnostics& diagnostics) {
  Layout& layout = config.layout;
  if (num_ranks(layout) != config.world_size) return;  // reported
  layout.grid = dist::Grid(layout.core_axes());
  for (const AxisRequest& request : config.axis_requests) try {
      on_behalf_of(request.by, [&] { request.plan.apply(layout.grid); });
    } catch (const Error& error) {
      add_mistakes(error, config, diagnostics);
    }
}

Layout plan_layout(const RuleContext& context) {
  Layout layout;
  plan_degrees(context, layout);
  plan_batch(context, layout);
  return layout;
}

}  // namespace titan::core
