// Optional interface of a model: weights of others in and out, Hugging Face folders above all. No
// torch.
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

/// Whose names and row orders weights come in.
enum class Naming {
  hugging_face,  ///< transformers
  meta,          ///< the weights that Meta gave out
  torchtitan,    ///< torchtitan v0.2.2 and newer
};

/// The elements begin, begin + step, ... of one dimension of a tensor.
struct TensorCut {
  int64_t dim = 0;
  int64_t begin = 0;
  int64_t size = 0;  ///< how many; 0: of ours all that follow, of theirs as many as ours has
  int64_t step = 1;
  bool drops_dim = false;  ///< one element, and what is left has a dimension less

  /// One index of a stack: of (E, F, D) it leaves (F, D).
  static TensorCut at(int64_t dim, int64_t index) {
    return {.dim = dim, .begin = index, .size = 1, .drops_dim = true};
  }
  static TensorCut range(int64_t dim, int64_t begin, int64_t size) {
    return {.dim = dim, .begin = begin, .size = size};
  }
  /// Every `step`-th from `first` on: of interleaved rows the even ones are every(0, 2, 0).
  static TensorCut every(int64_t dim, int64_t step, int64_t first) {
    return {.dim = dim, .begin = first, .step = step};
  }
};

/// How others name a model's weights and describe the model.
class TITAN_API HfExchange {
 public:
  virtual ~HfExchange();

  /// One of our parameters, or a part of it, and where its values stand there. {ours, theirs}: the
  /// two are one tensor.
  struct NameRule {
    std::string ours;
    std::string theirs;
    /// Not 0: the part's rows belong to so many heads, and within a head theirs hold rotary pairs
    /// side by side where ours hold them half a head apart: their row 2j + r is our row
    /// r * size / 2 + j.
    int64_t num_rotary_heads = 0;
    /// Which part of ours, which part of theirs; dimensions without a cut are whole. What is left
    /// of the two has the same shape, up to `order`.
    std::vector<TensorCut> of_ours = {};
    std::vector<TensorCut> of_theirs = {};
    /// Dimension d of what is left of ours is dimension order[d] of what is left of theirs; empty:
    /// the same order.
    std::vector<int64_t> order = {};
    /// Where theirs may be stored in fewer bits: the tensor of its scales. Only for reading.
    ///
    /// `theirs` in float8 (e4m3): one scale for each block of 128 x 128 of the last two dimensions,
    /// those at the edges smaller (DeepSeek-V3). `theirs` in bytes (..., n / 32, 16): MXFP4, two
    /// elements a byte, the lower half first; one scale 2^(byte - 127) for 32 elements (OCP
    /// Microscaling Formats v1.0); the rule speaks of the shape (..., n). Any other type: theirs
    /// is read as it is, and there need be no scales.
    std::string scales = {};
  };
  /// Every parameter of the model. The rules with one `ours` that follow each other are its parts
  /// until they cover it; those that come after are an alternative, the preferred one first. An
  /// export follows the first. Empty: this naming is not known for this model.
  ///
  /// Rules that leave an element of ours or of theirs out, or that take one twice, are refused when
  /// the model is made. How large theirs is follows from the rules.
  virtual std::vector<NameRule> name_rules(Naming naming) const = 0;
  /// Names, or ends of names after a dot, that such weights may hold beside and that nobody needs;
  /// those that end in a dot are beginnings of names.
  virtual std::vector<std::string> ignored_names(Naming naming) const;
  /// The members of config.json that follow from the model: all but token ids and dtype.
  virtual Value hf_config() const = 0;
  /// What of `theirs`, a config.json, would change results, as "rope_theta is 10000.0 there and
  /// 500000.0 here"; titan/hf_config.h compares.
  virtual std::vector<std::string> config_differences(const Value& theirs) const = 0;
  /// Options of this model ([model]) that make the network which `theirs`, a config.json, describes;
  /// none: it describes another kind of network. What of it no option can say is left to
  /// config_differences. The default knows none.
  virtual std::optional<Value> options_for(const Value& theirs) const;
};

/// The rules by which ours (count, ...) is a stack along dimension 0 of `count` tensors of theirs.
/// `base`: what each of them has beside names and the index, such as `order`.
TITAN_API std::vector<HfExchange::NameRule> stack_rules(
    const std::string& ours, int64_t count, const std::function<std::string(int64_t)>& theirs,
    const HfExchange::NameRule& base = {});

}  // namespace titan
