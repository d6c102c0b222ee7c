// The folder titan/compat hides differences between the LibTorch versions that Titan supports
// (sdk/torch_versions.txt), so that no other source checks the version.
#pragma once

#include <memory>

#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/headeronly/version.h>
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
#include <c10/util/intrusive_ptr.h>
#endif

namespace titan::compat {

/// The pointer type by which LibTorch passes nodes of the autograd graph to virtual functions.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
using AutogradNode = c10::intrusive_ptr<torch::autograd::Node>;
#else
using AutogradNode = std::shared_ptr<torch::autograd::Node>;
#endif

}  // namespace titan::compat
