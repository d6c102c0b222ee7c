// Replaces the metadata that autograd's anomaly mode keeps of each recorded operation. Used by the
// core's detect_anomaly.
#pragma once

#include <memory>

#include <titan/export.h>

namespace torch::autograd {
struct AnomalyMetadata;
}

namespace titan::nn {

using MakeAnomalyMetadata = std::unique_ptr<torch::autograd::AnomalyMetadata> (*)();

/// [no graph is being recorded] From now on `make` creates the metadata of every operation that is
/// recorded while torch::autograd::AnomalyMode is on. Null: LibTorch's own, which holds a stack of
/// addresses.
TITAN_API void set_anomaly_metadata(MakeAnomalyMetadata make);

}  // namespace titan::nn
