// The folder titan/compat holds what differs between the versions of LibTorch that Titan supports
// (sdk/torch_versions.txt), so that no other source asks for the version.
#pragma once

#include <memory>

#include <torch/csrc/autograd/anomaly_mode.h>
#include <torch/headeronly/version.h>
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
#include <c10/util/intrusive_ptr.h>
#endif

namespace titan::compat {

/// How LibTorch's virtual functions are handed a node of the graph of autograd.
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 13
using AutogradNode = c10::intrusive_ptr<torch::autograd::Node>;
#else
using AutogradNode = std::shared_ptr<torch::autograd::Node>;
#endif

}  // namespace titan::compat
