// The place in a layer where others compute instead of it, and who does: nobody is replaced without
// a word.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/export.h>

namespace titan::nn {

/// Who computes in the place of a layer, by the names that they gave.
struct TITAN_API KernelTakers {
  std::string replaced_by;              ///< empty: the layer computes itself
  std::vector<std::string> wrapped_by;  ///< who goes around that, the innermost first
  bool is_skipped = false;  ///< `replaced_by` computes all of what holds the layer

  bool empty() const { return replaced_by.empty() && wrapped_by.empty(); }
  /// "quantize.linear.float8, lora around it"; empty when there are none.
  std::string text() const;
  /// Throws a config Error that names both when `taker` would replace what another one computes or
  /// goes around. `place`: the layer, in the message.
  void check_replaceable(std::string_view taker, std::string_view place) const;
  /// Throws a config Error that names both when what `taker` would go around is skipped.
  void check_wrappable(std::string_view taker, std::string_view place) const;
};

/// `Around` of a kernel: gets the one that computes at present and gives one that runs it.
template <class Kernel>
using KernelAround = std::function<std::unique_ptr<Kernel>(std::unique_ptr<Kernel> inner)>;

/// One kernel that is swapped at most once and wrapped by as many as want to.
template <class Kernel>
class KernelSeam {
 public:
  explicit KernelSeam(std::unique_ptr<Kernel> own) : kernel_(std::move(own)) {}

  /// Throws as KernelTakers::check_replaceable.
  void replace(std::string taker, std::unique_ptr<Kernel> kernel, std::string_view place) {
    takers_.check_replaceable(taker, place);
    takers_.replaced_by = std::move(taker);
    kernel_ = std::move(kernel);
  }
  /// Throws as KernelTakers::check_wrappable.
  void wrap(std::string taker, const KernelAround<Kernel>& around, std::string_view place) {
    takers_.check_wrappable(taker, place);
    takers_.wrapped_by.push_back(std::move(taker));
    kernel_ = around(std::move(kernel_));
  }

  /// `taker` computes all of what holds the layer. Throws as KernelTakers::check_replaceable.
  void skip(std::string taker, std::string_view place) {
    takers_.check_replaceable(taker, place);
    takers_.replaced_by = std::move(taker);
    takers_.is_skipped = true;
  }

  const KernelTakers& takers() const { return takers_; }
  Kernel* operator->() const { return kernel_.get(); }
  Kernel& operator*() const { return *kernel_; }

 private:
  std::unique_ptr<Kernel> kernel_;
  KernelTakers takers_;
};

}  // namespace titan::nn
