// Plugin kind `compile_backend`: what [compile] asks for, a pass over the layers of this rank when
// everything else has changed them, that swaps how they compute and not what.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <titan/export.h>
#include <titan/transform.h>

TITAN_OPTIONAL_HEADER(compile_backend);

namespace titan {

/// Chosen by [compile] backend where [compile] enable = true; its options stand in
/// [compile_backend.<name>]. Applied last, on every rank: weights are whole where a kernel reads
/// them, and what gathers, recomputes or moves a layer goes around what it swaps.
///
/// Kernels have one owner each (titan/nn/kernel_seam.h): what a converter or a parallelism computes
/// is left to it. For which parts the job asks, "model" and "loss", is [compile] components, which
/// an option follows: .option("components", ...).fed_by("compile.components").
/// TransformContext::device says what the layers will run on; a backend that runs whole steps in
/// another way, as captured graphs, is an ExecutorWrapper as well.
class TITAN_API CompileBackend : public ModelTransform {
 public:
  static constexpr const char* kKind = "compile_backend";
  Phase phase() const override { return Phase::compile; }
  ~CompileBackend() override;
};

/// Whether `components`, the value of [compile] components, asks for `part`.
inline bool compiles(const std::vector<std::string>& components, std::string_view part) {
  for (const std::string& component : components)
    if (component == part) return true;
  return false;
}

}  // namespace titan
