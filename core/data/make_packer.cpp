#include "core/data/make_packer.h"

#include <utility>

#include "core/data/best_fit_packer.h"
#include "core/data/concatenating_packer.h"

namespace titan::core {

std::unique_ptr<Packer> make_packer(std::unique_ptr<RowReader> reader,
                                    const PackingOptions& options) {
  if (options.packing == Packing::best_fit)
    return std::make_unique<BestFitPacker>(std::move(reader), options);
  return std::make_unique<ConcatenatingPacker>(std::move(reader), options);
}

}  // namespace titan::core
