// Writes the ids of pieces of text. Used by BpeEncoder and UnigramEncoder.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model_file.h"

namespace titan::sentencepiece {

/// Text without a piece becomes byte pieces if the model has them, else the unknown piece, once for
/// a run of such texts. References are borrowed.
class IdWriter {
 public:
  IdWriter(const ModelFile& model, std::vector<int32_t>& ids)
      : model_(model), ids_(ids), start_(ids.size()) {}

  void piece(int32_t id) { ids_.push_back(id); }
  void unknown(std::string_view text) {
    if (model_.byte_fallback) {
      for (const char c : text) ids_.push_back(model_.byte_ids[static_cast<uint8_t>(c)]);
    } else if (!ends_unknown()) {
      ids_.push_back(model_.unknown_id);
    }
  }
  /// Appends the ids that another writer of this model wrote for the following text; not empty.
  void append(std::span<const int32_t> ids) {
    size_t first = 0;
    if (ids[0] == model_.unknown_id && ends_unknown()) first = 1;
    for (size_t i = first; i < ids.size(); ++i) ids_.push_back(ids[i]);  // few: faster than insert
  }

 private:
  bool ends_unknown() const { return ids_.size() > start_ && ids_.back() == model_.unknown_id; }

  const ModelFile& model_;
  std::vector<int32_t>& ids_;
  size_t start_;
};

}  // namespace titan::sentencepiece
