// Kernel seam: the place in a layer where plugins compute in place of the layer. Each owner of a
// kernel is known by name; a second one is refused.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <titan/export.h>

namespace titan::nn {

/// The plugins that compute in place of a layer, by name.
struct TITAN_API KernelOwners {
  std::string replaced_by;              ///< empty: the layer computes itself
  std::vector<std::string> wrapped_by;  ///< plugins around it, the innermost first
  bool is_skipped = false;  ///< `replaced_by` computes all of what holds the layer

  bool empty() const { return replaced_by.empty() && wrapped_by.empty(); }
  /// "quantize.linear.float8, lora around it"; empty when there are none.
  std::string text() const;
  /// Throws a config Error that names both when `owner` would replace what another one computes or
  /// goes around. `place`: the layer, in the message.
  void check_replaceable(std::string_view owner, std::string_view place) const;
  /// Throws a config Error that names both when what `owner` would go around is skipped.
  void check_wrappable(std::string_view owner, std::string_view place) const;
};

using KernelTakers = KernelOwners;  ///< deprecated name, until 0.3

/// `Around` of a kernel: gets the one that computes at present and gives one that runs it.
template <class Kernel>
using KernelAround = std::function<std::unique_ptr<Kernel>(std::unique_ptr<Kernel> inner)>;

/// One kernel, which is replaced at most once and may be wrapped several times.
template <class Kernel>
class KernelSeam {
 public:
  explicit KernelSeam(std::unique_ptr<Kernel> own) : kernel_(std::move(own)) {}

  /// Throws as KernelOwners::check_replaceable.
  void replace(std::string owner, std::unique_ptr<Kernel> kernel, std::string_view place) {
    owners_.check_replaceable(owner, place);
    owners_.replaced_by = std::move(owner);
    kernel_ = std::move(kernel);
  }
  /// Throws as KernelOwners::check_wrappable.
  void wrap(std::string owner, const KernelAround<Kernel>& around, std::string_view place) {
    owners_.check_wrappable(owner, place);
    owners_.wrapped_by.push_back(std::move(owner));
    kernel_ = around(std::move(kernel_));
  }

  /// `owner` computes all of what holds the layer. Throws as KernelOwners::check_replaceable.
  void skip(std::string owner, std::string_view place) {
    owners_.check_replaceable(owner, place);
    owners_.replaced_by = std::move(owner);
    owners_.is_skipped = true;
  }

  const KernelOwners& owners() const { return owners_; }
  Kernel* operator->() const { return kernel_.get(); }
  Kernel& operator*() const { return *kernel_; }

 private:
  std::unique_ptr<Kernel> kernel_;
  KernelOwners owners_;
};

}  // namespace titan::nn
