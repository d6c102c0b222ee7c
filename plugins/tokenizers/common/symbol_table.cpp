#include "symbol_table.h"

namespace titan::bpe {

void SymbolMap::put(char32_t symbol, int32_t id) {
  std::unique_ptr<Page>& page = pages_[symbol >> 8];
  if (!page) {
    page = std::make_unique<Page>();
    page->fill(-1);
  }
  int32_t& slot = (*page)[symbol & 0xFF];
  if (slot < 0) slot = id;
}

}  // namespace titan::bpe
