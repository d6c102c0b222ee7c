#include "core/data/concatenating_packer.h"

#include <algorithm>
#include <utility>

#include <titan/error.h>

#include "core/data/order/saved_position.h"

namespace titan::core {

ConcatenatingPacker::ConcatenatingPacker(std::unique_ptr<RowReader> reader,
                                         const PackingOptions& options)
    : reader_(std::move(reader)), options_(options) {}

bool ConcatenatingPacker::read_document() {
  before_document_ = reader_->state();
  used_ = 0;
  if (!reader_->next(document_)) {
    document_.tokens.clear();
    return false;
  }
  used_ = std::exchange(skip_, 0);
  TITAN_CHECK(used_ < document_.tokens.size(), data, reader_->place(), ": the document has ",
              document_.tokens.size(), " tokens, the saved data position is after ", used_,
              " of them; was it saved with another tokenizer or data set?");
  return true;
}

bool ConcatenatingPacker::next(Window& window) {
  window = {};
  const auto size = static_cast<size_t>(options_.window);
  window.tokens.reserve(size);
  while (window.tokens.size() < size) {
    if (used_ == document_.tokens.size() && !read_document()) break;
    const size_t count = std::min(size - window.tokens.size(), document_.tokens.size() - used_);
    append_piece(window, options_, document_, used_, count);
    used_ += count;
  }
  if (window.num_tokens == 0) return false;
  pad(window, options_);
  return true;
}

Value ConcatenatingPacker::state() const {
  const bool is_between = used_ == document_.tokens.size();
  return Value::map({{"reader", is_between ? reader_->state() : before_document_},
                     {"used", static_cast<int64_t>(is_between ? skip_ : used_)}});
}

void ConcatenatingPacker::restore(const Value& state) {
  reader_->restore(saved_member(state, "reader"));
  skip_ = static_cast<size_t>(saved_integer(state, "used"));
  document_.tokens.clear();
  used_ = 0;
}

}  // namespace titan::core
