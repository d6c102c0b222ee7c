#include "core/data/first_document.h"

namespace titan::core {

bool read_first(const Dataset& dataset, Document& document) {
  if (const IndexedDocuments* documents = dataset.indexed()) {
    if (documents->size() == 0) return false;
    documents->read(0, document);
    return true;
  }
  const StreamedDocuments& documents = *dataset.streamed();
  for (int64_t shard = 0; shard < documents.num_shards(); ++shard)
    if (documents.open(shard)->next(document)) return true;
  return false;
}

}  // namespace titan::core
