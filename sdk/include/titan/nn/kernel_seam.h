// Kernel seam: the place in a layer where a plugin can replace or wrap the computation. Each plugin
// that does so is known by name; a second replacement is refused.
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
  std::string replaced_by;              ///< empty: the layer's own kernel computes
  std::vector<std::string> wrapped_by;  ///< plugins that wrap the kernel, the innermost first
  bool is_skipped = false;  ///< `replaced_by` computes the enclosing layer as a whole, so this
                            ///< kernel does not run

  bool empty() const { return replaced_by.empty() && wrapped_by.empty(); }
  /// "quantize.linear.float8, lora around it"; empty if there are no owners.
  std::string text() const;
  /// Throws a config Error that names both plugins if another one has already replaced or wrapped
  /// the kernel. `place`: the layer, for the message.
  void check_replaceable(std::string_view owner, std::string_view place) const;
  /// Throws a config Error that names both plugins if the kernel is skipped.
  void check_wrappable(std::string_view owner, std::string_view place) const;
};

using KernelTakers = KernelOwners;  ///< deprecated name, until 0.3

/// Receives the current kernel and returns one that runs it.
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

  /// `owner` computes the enclosing layer as a whole. Throws as KernelOwners::check_replaceable.
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
