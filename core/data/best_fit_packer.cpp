#include "core/data/best_fit_packer.h"

#include <algorithm>
#include <set>
#include <utility>

#include <titan/error.h>

#include "core/data/order/saved_position.h"

namespace titan::core {
namespace {
constexpr int64_t kMaxEmptyGroups = 100;
}

BestFitPacker::BestFitPacker(std::unique_ptr<RowReader> reader, const PackingOptions& options)
    : reader_(std::move(reader)), options_(options), group_start_(reader_->state()) {}

/// Splits the documents of the group, in order, into pieces; only the last piece of a document is
/// shorter than a window. Conversations fit a window, so they stay whole.
std::vector<BestFitPacker::Piece> BestFitPacker::cut() const {
  const auto window = static_cast<size_t>(options_.window);
  std::vector<Piece> pieces;
  for (size_t d = 0; d < documents_.size(); ++d) {
    const size_t size = documents_[d].tokens.size();
    for (size_t begin = 0; begin < size; begin += window)
      pieces.push_back({d, begin, std::min(window, size - begin)});
  }
  return pieces;
}

/// A single token is a target only after another piece.
bool BestFitPacker::has_target(const Bin& bin) const {
  return (bin.size() > 1 && options_.labels_cross_documents) ||
         std::any_of(bin.begin(), bin.end(), [](const Piece& piece) { return piece.size > 1; });
}

/// Packs the next group into windows and drops windows without a target. `documents_` is empty when
/// the reader has ended.
void BestFitPacker::fill() {
  documents_.clear();
  bins_.clear();
  const auto wanted = static_cast<size_t>(kGroupWindows * options_.window);
  size_t num_tokens = 0;
  for (TokenizedDocument document; num_tokens < wanted && reader_->next(document); document = {}) {
    num_tokens += document.tokens.size();
    documents_.push_back(std::move(document));
  }

  std::vector<Piece> pieces = cut();
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.size > b.size; });
  std::set<std::pair<size_t, size_t>> rooms;  // (tokens free, bin)
  for (const Piece& piece : pieces) {
    auto best = rooms.lower_bound({piece.size, 0});
    if (best == rooms.end()) {
      best = rooms.emplace(static_cast<size_t>(options_.window), bins_.size()).first;
      bins_.emplace_back();
    }
    const auto [room, bin] = *best;
    rooms.erase(best);
    bins_[bin].push_back(piece);
    if (room > piece.size) rooms.emplace(room - piece.size, bin);
  }

  const auto empty =
      std::partition(bins_.begin(), bins_.end(), [&](const Bin& bin) { return has_target(bin); });
  for (auto bin = empty; bin != bins_.end(); ++bin)
    for (const Piece& piece : *bin)
      reader_->leave_out(documents_[piece.document].source,
                         "packed without the last token, which alone has nothing to learn");
  bins_.erase(empty, bins_.end());

  // orders windows by their first documents, not by length
  const auto earlier = [](const Piece& a, const Piece& b) {
    return std::pair(a.document, a.begin) < std::pair(b.document, b.begin);
  };
  for (Bin& bin : bins_) std::sort(bin.begin(), bin.end(), earlier);
  std::sort(bins_.begin(), bins_.end(),
            [&](const Bin& a, const Bin& b) { return earlier(a.front(), b.front()); });
}

Window BestFitPacker::to_window(const Bin& bin) const {
  Window window;
  window.tokens.reserve(static_cast<size_t>(options_.window));
  for (const Piece& piece : bin)
    append_piece(window, options_, documents_[piece.document], piece.begin, piece.size);
  pad(window, options_);
  return window;
}

bool BestFitPacker::next(Window& window) {
  const auto is_empty = [&] { return given_ == static_cast<int64_t>(bins_.size()); };
  if (must_refill_) {
    must_refill_ = false;
    fill();
    TITAN_CHECK(given_ <= static_cast<int64_t>(bins_.size()), data,
                "the saved data position is window ", given_, " of a group that holds ",
                bins_.size(),
                "; was it saved with another tokenizer, data set or sequence length?");
  }
  for (int64_t num_groups = 0; is_empty(); ++num_groups) {
    TITAN_CHECK(num_groups < kMaxEmptyGroups, data, reader_->place(), ": ", num_groups,
                " groups of documents in a row have nothing to learn, because each document is a "
                "single token; use other data, or set data.labels_cross_documents = true");
    group_start_ = reader_->state();
    given_ = 0;
    fill();
    if (documents_.empty()) return false;
  }
  window = to_window(bins_[static_cast<size_t>(given_++)]);
  return true;
}

Value BestFitPacker::state() const {
  return Value::map({{"reader", group_start_}, {"given", given_}});
}

void BestFitPacker::restore(const Value& state) {
  group_start_ = saved_member(state, "reader");
  given_ = saved_integer(state, "given");
  reader_->restore(group_start_);
  must_refill_ = given_ > 0;
  documents_.clear();
  bins_.clear();
}

}  // namespace titan::core
