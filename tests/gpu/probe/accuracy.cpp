// Mode `ops`: each operation against double precision, in poisoned memory, with bitwise equal
// results in each round.
#include <cmath>
#include <limits>
#include <set>

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <titan/error.h>
#include <titan/files/hash.h>
#include <titan/ops/linear.h>
#include <titan/program/clock.h>

#include "numbers.h"
#include "operations.h"

namespace titan::probe {
namespace {

using Inputs = std::vector<Input>;

/// Upper limit of an operation's temporary memory.
constexpr int64_t kScratch = int64_t{256} << 20, kLargeScratch = int64_t{2} << 30;

/// Selects deterministic algorithms during its lifetime.
class Deterministic {
 public:
  explicit Deterministic(bool is_on) { set(is_on); }
  ~Deterministic() { set(false); }
  Deterministic(const Deterministic&) = delete;

 private:
  static void set(bool is_on) {
    at::globalContext().setDeterministicAlgorithms(is_on, /*warn_only=*/false);
    at::globalContext().setDeterministicFillUninitializedMemory(false);  // the poison does
  }
};

/// The inputs on `device`, rounded to `type` unless their kind has its own dtype.
Inputs in_type(const Inputs& inputs, at::ScalarType type, at::Device device) {
  Inputs typed;
  for (Input input : inputs) {
    Tensor& x = input.values;
    switch (input.kind) {
      case Input::Kind::differentiable:
      case Input::Kind::constant:
        x = x.to(device, type);
        break;
      case Input::Kind::table:
        x = x.to(device, type == at::kDouble ? type : at::kFloat);
        break;
      case Input::Kind::as_it_is:
        x = x.to(device);
        break;
      case Input::Kind::on_the_host:
        break;
    }
    typed.push_back(std::move(input));
  }
  return typed;
}

int64_t bytes_of(const Results& results) {
  int64_t bytes = 0;
  for (const Result& result : results) bytes += static_cast<int64_t>(result.values.nbytes());
  return bytes;
}

class Judge {
 public:
  Judge(Device& device, const Options& options)
      : device_(device), options_(options), checksum_(device.device()), poison_(device.device()) {
    // matrix products keep a workspace from the first product of a thread on
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const auto tensor = at::TensorOptions().device(device.device()).dtype(type);
      const Tensor x = at::ones({64, 64}, tensor).requires_grad_(true);
      ops::linear(x, x).sum().backward();
    }
  }

  /// The report row of one case in one dtype, without the identifying fields.
  Value row(const Case& c, at::ScalarType type) {
    const double begin = monotonic_seconds();
    poison_.release();
    at::manual_seed(seed_of(c));
    const at::Device device = device_.device(), host(c10::kCPU);
    const at::Device referee = c.is_large ? device : host;
    const Inputs made = c.inputs(referee);
    const Inputs typed = in_type(made, type, device);
    if (c.missing)
      if (const std::string why = c.missing(typed); !why.empty())
        return Value::map({{"skipped", why}, {"ok", true}});
    Results exact = c.reference
                        ? c.reference(in_type(made, type, referee))
                        : c.run(in_type(in_type(made, type, referee), at::kDouble, referee));

    const int64_t scratch = c.is_large ? kLargeScratch : kScratch;
    poison_.cover(2 * bytes_of(exact) + scratch);
    const double poisoned = poison_.share_seen();
    std::vector<double> errors(exact.size(), 0), limits;
    std::vector<Tensor> sums;
    bool is_exceeded = false;
    {
      const Deterministic off(false);
      limits = compare(c, type, run(c, typed, sums, is_exceeded), exact, errors);
    }
    const Tensor by_default = sums.front();
    sums.clear();
    {
      const Deterministic on(true);
      for (int64_t round = 0; round < options_.rounds; ++round) {
        const Results results = run(c, typed, sums, is_exceeded);
        if (round == 0) compare(c, type, results, exact, errors);
      }
    }
    Value found = describe(exact, errors, limits, sums, by_default);
    found["poisoned"] = poisoned;
    found["poison_exceeded"] = is_exceeded;
    found["seconds"] = monotonic_seconds() - begin;
    return found;
  }

 private:
  static uint64_t seed_of(const Case& c) {
    return std::stoull(hash64_hex(c.operation + c.shape).substr(0, 8), nullptr, 16);
  }

  /// Runs in poisoned memory. Adds the checksums of the results, in one tensor, to `sums`.
  Results run(const Case& c, const Inputs& typed, std::vector<Tensor>& sums, bool& is_exceeded) {
    poison_.spread();
    Results results = c.run(typed);
    is_exceeded = is_exceeded || poison_.is_exceeded();
    std::vector<Tensor> bits;
    for (const Result& result : results) bits.push_back(checksum_.of(result.values));
    sums.push_back(at::stack(bits).cpu());
    return results;
  }

  /// Raises `errors` where this run's are larger; NaN errors stay.
  static std::vector<double> compare(const Case& c, at::ScalarType type, const Results& results,
                                     const Results& exact, std::vector<double>& errors) {
    TITAN_ASSERT(results.size() == exact.size(), results.size(), " results");
    std::vector<double> limits;
    for (size_t i = 0; i < results.size(); ++i) {
      const Result& result = results[i];
      const double error = result.is_exact ? share_of_unequal_bytes(result.values, exact[i].values)
                                           : relative_error(result.values, exact[i].values);
      if (!(error <= errors[i])) errors[i] = std::isnan(errors[i]) ? errors[i] : error;
      limits.push_back(result.is_exact ? 0 : result.limit > 0 ? result.limit : c.limits.of(type));
    }
    return limits;
  }

  Value describe(const Results& exact, const std::vector<double>& errors,
                 const std::vector<double>& limits, const std::vector<Tensor>& sums,
                 const Tensor& by_default) const {
    bool is_ok = true;
    Value::List outputs;
    std::set<std::string> all;
    const auto text = [](const Tensor& sum) {
      return hash64_hex(std::string_view(static_cast<const char*>(sum.const_data_ptr()),
                                         static_cast<size_t>(sum.nbytes())));
    };
    for (const Tensor& sum : sums) all.insert(text(sum));
    for (size_t i = 0; i < exact.size(); ++i) {
      std::set<int64_t> bits;
      for (const Tensor& sum : sums) bits.insert(sum.const_data_ptr<int64_t>()[i]);
      const bool is_within = errors[i] <= limits[i], is_same = bits.size() == 1;
      is_ok = is_ok && is_within && is_same;
      Value output =
          Value::map({{"name", exact[i].name}, {"error", errors[i]}, {"limit", limits[i]}});
      if (!std::isfinite(errors[i])) output["error"] = "not a number";
      if (!is_within) output["fails"] = "error above its limit";
      if (!is_same) {
        output["fails"] = is_within ? "bits differ between rounds"
                                    : "error above its limit, bits differ between rounds";
        output["results"] = static_cast<int64_t>(bits.size());
      }
      outputs.push_back(std::move(output));
    }
    return Value::map({{"rounds", options_.rounds},
                       {"results", static_cast<int64_t>(all.size())},
                       {"bits", text(sums.front())},
                       {"same_by_default", text(by_default) == text(sums.front())},
                       {"outputs", std::move(outputs)},
                       {"ok", is_ok}});
  }

  Device& device_;
  Options options_;
  Checksum checksum_;
  Poison poison_;
};

}  // namespace

bool check_operations(Device& device, const Options& options) {
  Judge judge(device, options);
  bool is_ok = true;
  for (const Case& c : all_cases()) {
    const bool is_planted = c.operation.starts_with("planted_");
    if (is_planted ? c.operation != options.only
                   : c.operation.find(options.only) == std::string::npos)
      continue;
    if (c.is_large && (options.is_small || device.device().is_cpu())) continue;
    for (const at::ScalarType type : c.types) {
      const Value head = Value::map({{"operation", c.operation},
                                     {"shape", c.shape},
                                     {"dtype", std::string(c10::toString(type))}});
      is_ok = print_row(device, head, [&] { return judge.row(c, type); }) && is_ok;
    }
  }
  return is_ok;
}

}  // namespace titan::probe
