#include "id_writer.h"

#include <span>

#include "merge_loops.h"

namespace titan::bpe {

// Receives the symbols of a long piece and writes it part by part.
class IdWriter::Parts {
 public:
  Parts(IdWriter& writer, std::string_view piece)
      : writer_(writer), symbols_(writer.scratch_.part_symbols), piece_(piece) {
    symbols_.clear();
  }

  void symbol(int32_t id, size_t begin, size_t end, bool plain) {
    if (!symbols_.empty() && !writer_.engine_.joinable_(symbols_.back(), id)) {
      finish();
      begin_ = begin;
    }
    symbols_.push_back(id);
    plain_ = plain_ && plain;
    end_ = end;
  }

  void finish() {
    if (symbols_.size() == 1) {
      writer_.token(symbols_[0]);
    } else if (symbols_.size() > 1) {
      write();
    }
    symbols_.clear();
    plain_ = true;
  }

 private:
  void write() {
    // The ids of a plain part depend only on its bytes, so they can be cached.
    const bool may_know = plain_ && writer_.engine_.whole_.empty();
    const std::string_view part = piece_.substr(begin_, end_ - begin_);
    if (may_know && part.size() <= 16) return writer_.wait_for(part);
    writer_.finish();
    if (may_know && part.size() <= 48) {
      return writer_.write_through(writer_.scratch_.long_words, LongWords::key_of(part));
    }
    symbols_.swap(writer_.scratch_.symbols);
    writer_.merge();
  }

  IdWriter& writer_;
  std::vector<int32_t>& symbols_;
  std::string_view piece_;
  size_t begin_ = 0;
  size_t end_ = 0;
  bool plain_ = true;
};

void IdWriter::piece(std::string_view text) {
  if (text.size() <= 16) return wait_for(text);
  finish();
  if (text.size() <= 48) return write_through(scratch_.long_words, LongWords::key_of(text));
  if (const int32_t id = engine_.whole_.find(text); id >= 0) return ids_.push_back(id);
  Parts parts(*this, text);
  engine_.symbols_.for_each(text, [&](int32_t id, size_t begin, size_t end, bool plain) {
    parts.symbol(id, begin, end, plain);
  });
  parts.finish();
}

void IdWriter::token(int32_t id) {
  Waiting& waiting = next_waiting();
  waiting.key.length = 0;
  waiting.id = id;
}

void IdWriter::finish() {
  for (; num_waiting_ > 0; --num_waiting_) {
    write(scratch_.waiting[first_waiting_]);
    first_waiting_ = (first_waiting_ + 1) % kMaxWaiting;
  }
}

IdWriter::Waiting& IdWriter::next_waiting() {
  if (num_waiting_ == kMaxWaiting) {
    write(scratch_.waiting[first_waiting_]);
    first_waiting_ = (first_waiting_ + 1) % kMaxWaiting;
    --num_waiting_;
  }
  return scratch_.waiting[(first_waiting_ + num_waiting_++) % kMaxWaiting];
}

void IdWriter::wait_for(std::string_view short_piece) {
  Waiting& waiting = next_waiting();
  waiting.key = ShortWords::key_of(short_piece);
  scratch_.short_words.prefetch(waiting.key);
}

void IdWriter::write(const Waiting& waiting) {
  if (waiting.key.length == 0) {
    ids_.push_back(waiting.id);
  } else {
    write_through(scratch_.short_words, waiting.key);
  }
}

template <class Cache>
void IdWriter::write_through(Cache& cache, const typename Cache::Key& key) {
  const std::span<const int32_t> known = cache.find(key);
  if (known.size() == 1) {
    ids_.push_back(known[0]);
  } else if (!known.empty()) {
    ids_.insert(ids_.end(), known.begin(), known.end());
  } else {
    const size_t begin = ids_.size();
    write_uncached(key.piece());
    if (ids_.size() > begin) cache.put(key, std::span(ids_).subspan(begin));
  }
}

void IdWriter::write_uncached(std::string_view piece) {
  if (const int32_t id = engine_.whole_.find(piece); id >= 0) return ids_.push_back(id);
  std::vector<int32_t>& symbols = scratch_.symbols;
  symbols.clear();
  engine_.symbols_.for_each(piece,
                            [&](int32_t id, size_t, size_t, bool) { symbols.push_back(id); });
  merge();
}

void IdWriter::merge() {
  std::vector<int32_t>& symbols = scratch_.symbols;
  if (symbols.size() <= kMaxScan) {
    merge_by_scan(engine_.merges_, symbols);
  } else {
    merge_by_heap(engine_.merges_, symbols,
                  {scratch_.ranks, scratch_.previous, scratch_.next, scratch_.heap});
  }
  ids_.insert(ids_.end(), symbols.begin(), symbols.end());
}

}  // namespace titan::bpe
