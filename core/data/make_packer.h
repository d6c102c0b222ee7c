// Makes the packer of [data] packing. Used by the window feed.
#pragma once

#include <memory>

#include "core/data/packer.h"
#include "core/data/row_reader.h"

namespace titan::core {

std::unique_ptr<Packer> make_packer(std::unique_ptr<RowReader> reader,
                                    const PackingOptions& options);

}  // namespace titan::core
