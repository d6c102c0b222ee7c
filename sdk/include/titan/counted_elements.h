// Which rank counts the elements of a parameter that several ranks hold. Used by the gradient norm
// and by watchers that sum over all parameters of a model.
#pragma once

#include <titan/dist/mesh.h>
#include <titan/export.h>
#include <titan/nn/parameter.h>

TITAN_OPTIONAL_HEADER(counted_elements);

namespace titan {

/// Whether this rank counts the elements of its shard of `parameter`. Along an axis that does not
/// shard the parameter all ranks hold the same values, and only the first rank counts. Pipeline
/// stages hold different parameters, except for copies, which no rank counts.
TITAN_API bool counts_elements(const nn::Parameter& parameter, const dist::Mesh& mesh);

}  // namespace titan
