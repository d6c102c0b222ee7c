// Optional interface of a model: how weights are imported from and exported to the formats of
// Hugging Face, Meta and torchtitan. No torch.
//
// "Ours" is a parameter of the Titan model; "theirs" is a tensor of the other format.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <titan/export.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(hf_exchange);

namespace titan {

/// Naming convention of weights: parameter names and row order.
enum class Naming {
  hugging_face,  ///< transformers
  meta,          ///< the weights that Meta released
  torchtitan,    ///< torchtitan v0.2.2 and newer
};

/// A slice of one dimension of a tensor: the elements begin, begin + step, ...
struct TensorCut {
  int64_t dim = 0;
  int64_t begin = 0;
  int64_t size = 0;  ///< elements; 0: in of_ours all that follow, in of_theirs as many as in ours
  int64_t step = 1;
  bool drops_dim = false;  ///< selects one element and removes the dimension

  /// One index of a stack: (E, F, D) becomes (F, D).
  static TensorCut at(int64_t dim, int64_t index) {
    return {.dim = dim, .begin = index, .size = 1, .drops_dim = true};
  }
  static TensorCut range(int64_t dim, int64_t begin, int64_t size) {
    return {.dim = dim, .begin = begin, .size = size};
  }
  /// Every `step`-th element from `first` on: every(0, 2, 0) selects the even ones of interleaved
  /// rows.
  static TensorCut every(int64_t dim, int64_t step, int64_t first) {
    return {.dim = dim, .begin = first, .step = step};
  }
};

/// Maps a model's weights and configuration to other formats.
class TITAN_API HfExchange {
 public:
  virtual ~HfExchange();

  /// Maps one of our parameters, or a slice of it, to one of their tensors, or a slice of it.
  /// {ours, theirs} alone: the two tensors are equal.
  struct NameRule {
    std::string ours;
    std::string theirs;
    /// Not 0: number of heads that the slice's rows belong to. Rotary pairs within a head are
    /// adjacent in theirs and half a head apart in ours: their row 2j + r is our row
    /// r * size / 2 + j.
    int64_t num_rotary_heads = 0;
    /// The slices of ours and of theirs; dimensions without a cut are whole. The two slices have
    /// the same shape, up to `order`.
    std::vector<TensorCut> of_ours = {};
    std::vector<TensorCut> of_theirs = {};
    /// Dimension d of our slice is dimension order[d] of their slice; empty: the same order.
    std::vector<int64_t> order = {};
    /// Name of the tensor of scales, if theirs may be quantised. Only for imports.
    ///
    /// `theirs` in float8 (e4m3): one scale for each block of 128 x 128 of the last two dimensions;
    /// blocks at the edges are smaller (DeepSeek-V3). `theirs` in bytes (..., n / 32, 16): MXFP4,
    /// two elements per byte, the lower half first; one scale 2^(byte - 127) for 32 elements (OCP
    /// Microscaling Formats v1.0); the rule refers to the shape (..., n). Any other dtype is read
    /// unchanged and needs no scales.
    std::string scales = {};
  };
  /// The rules of every parameter of the model; empty: the model does not support this naming.
  /// Consecutive rules with the same `ours` are its parts until they cover it. Rules after that
  /// form an alternative; the first alternative is preferred, and exports use it.
  ///
  /// The rules of an alternative must cover each element of ours exactly once, and all rules of one
  /// tensor of theirs each of its elements exactly once. Otherwise the core rejects the model when
  /// it is made. The rules determine the shapes of theirs.
  virtual std::vector<NameRule> name_rules(Naming naming) const = 0;
  /// Tensors that such weights may also hold and that imports ignore: names, suffixes of names
  /// after a dot, or prefixes that end in a dot.
  virtual std::vector<std::string> ignored_names(Naming naming) const;
  /// The members of config.json that follow from the model: all but token ids and dtype.
  virtual Value hf_config() const = 0;
  /// Differences between `theirs`, a config.json, and this model that change results: "rope_theta
  /// is 10000.0 there and 500000.0 here". titan/hf_config.h computes them.
  virtual std::vector<std::string> config_differences(const Value& theirs) const = 0;
  /// [model] options that build the network of `theirs`, a config.json; absent: it describes
  /// another architecture. config_differences reports the settings that no option covers. The
  /// default returns nothing.
  virtual std::optional<Value> options_for(const Value& theirs) const;
};

/// The rules of a parameter `ours` (count, ...) that stacks `count` tensors of theirs along
/// dimension 0. `base`: the other members of each rule, such as `order`.
TITAN_API std::vector<HfExchange::NameRule> stack_rules(
    const std::string& ours, int64_t count, const std::function<std::string(int64_t)>& theirs,
    const HfExchange::NameRule& base = {});

}  // namespace titan
