// Compile backend `fused`: gives layers fused kernels, except layers that another plugin computes.
#pragma once

#include <string>
#include <vector>

#include <titan/compile_backend.h>

namespace titan::fused {

struct FusedOptions {
  std::vector<std::string> components = {"model", "loss"};
  bool attention_inputs = true;
  bool feed_forward = true;
  bool residual_norm = true;
};

class Fused final : public CompileBackend {
 public:
  Fused(const FusedOptions& options, const TransformContext&) : options_(options) {}
  void apply(ModelPart& part, const TransformContext& context) override;

 private:
  FusedOptions options_;
};

}  // namespace titan::fused
