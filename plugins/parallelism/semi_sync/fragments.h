// Cuts a model into the fragments that are synchronised in turn, by the names of its parameters. No
// torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace titan::semi_sync {

/// The fragment of each name. `names`: the parameters of the whole model, in its order. Cut like
/// the stages of a pipeline: each of "layers.<n>" weighs one, and so does all that comes before
/// them and all that comes after them. Earlier fragments get the remainder. A model without such
/// names is cut between the modules of the first level. Throws a config Error for more fragments
/// than these.
std::vector<size_t> fragments_by_layers(const std::vector<std::string>& names,
                                        int64_t num_fragments);

/// `modules[f]`: the modules or parameters of fragment f. Throws a config Error that lists every
/// name that is in none or in two, and every module that the model does not have.
std::vector<size_t> fragments_by_modules(const std::vector<std::string>& names,
                                         const std::vector<std::vector<std::string>>& modules);

}  // namespace titan::semi_sync
