// Plugin kind `compile_backend`: replaces kernels in this rank's layers after all other transforms,
// without changing what the layers compute. Selected by [compile].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>
#include <titan/transform.h>

TITAN_OPTIONAL_HEADER(compile_backend);

namespace titan {

/// Selected by [compile] backend if [compile] enable = true; its options are in
/// [compile_backend.<name>]. Applied last, on every rank. Weights are whole where a kernel reads
/// them; wrappers that gather, recompute or move a layer stay around the replaced kernels.
///
/// Each kernel has one owner (titan/nn/kernel_seam.h): a backend must not replace kernels of a
/// converter or parallelism. [compile] components lists the parts to compile, "model" and "loss";
/// an option reads it with .option("components", ...).fed_by("compile.components").
/// TransformContext::device is the device that the layers will run on. A backend that runs whole
/// steps differently, for example as captured graphs, is also an ExecutorWrapper.
class TITAN_API CompileBackend : public ModelTransform {
 public:
  static constexpr const char* kKind = "compile_backend";
  Phase phase() const override { return Phase::compile; }
  ~CompileBackend() override;
};

/// Whether `components`, the value of [compile] components, contains `part`.
inline bool compiles(const std::vector<std::string>& components, std::string_view part) {
  for (const std::string& component : components)
    if (component == part) return true;
  return false;
}

}  // namespace titan
