#include "token_pipeline.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <utility>

#include <titan/error.h>

#include <titan/program/stop_signals.h>

namespace titan::tokenising {
namespace {

void append(std::span<const int32_t> ids, TokenWidth width, std::string& bytes) {
  const size_t before = bytes.size();
  bytes.resize(before + ids.size() * static_cast<size_t>(width));
  char* out = bytes.data() + before;
  if (width == TokenWidth::four_bytes) {
    std::memcpy(out, ids.data(), ids.size_bytes());
    return;
  }
  for (const int32_t id : ids) {
    const auto narrow = static_cast<uint16_t>(id);
    std::memcpy(out, &narrow, sizeof narrow);
    out += sizeof narrow;
  }
}

}  // namespace

TokenWidth token_width(int64_t vocab_size) {
  return vocab_size < 65'500 ? TokenWidth::two_bytes : TokenWidth::four_bytes;
}

TokenPipeline::TokenPipeline(const Dataset& dataset, const Tokenizer& tokenizer,
                             const Framing& framing, SourcePosition start,
                             const PipelineOptions& options)
    : tokenizer_(tokenizer),
      framing_(framing),
      vocab_size_(tokenizer.vocab_size()),
      width_(token_width(vocab_size_)),
      options_(options),
      blocks_(dataset, std::move(start), options.block_bytes),
      pieces_(options.most_waiting_bytes) {
  TITAN_ASSERT(options.num_workers > 0, options.num_workers);
  try {
    for (int i = 0; i < options.num_workers; ++i) workers_.emplace_back([this] { work(); });
  } catch (...) {
    pieces_.close();
    for (std::thread& worker : workers_) worker.join();
    throw;
  }
}

TokenPipeline::~TokenPipeline() {
  pieces_.close();
  for (std::thread& worker : workers_) worker.join();
}

void TokenPipeline::work() {
  block_signals();
  DocumentBlock block;
  Document scratch;
  std::vector<int32_t> ids;
  while (blocks_.claim(block)) {
    TokenPiece piece = {.block = block.number};
    try {
      for (int64_t i = 0; i < block.count; ++i) {
        if (static_cast<int64_t>(piece.bytes.size()) >= options_.piece_bytes) {
          if (!pieces_.put(std::exchange(piece, TokenPiece{.block = block.number}))) return;
        }
        tokenise(block, i, scratch, ids, piece);
      }
      if (block.error) std::rethrow_exception(block.error);
      piece.end = block.end;
    } catch (...) {
      piece.error = std::current_exception();
    }
    const bool has_failed = static_cast<bool>(piece.error);
    if (!pieces_.put(std::move(piece)) || has_failed) return;
  }
  pieces_.end_at(blocks_.num_claimed());
}

void TokenPipeline::tokenise(const DocumentBlock& block, int64_t i, Document& scratch,
                             std::vector<int32_t>& ids, TokenPiece& piece) {
  const Document& document = blocks_.document(block, i, scratch);
  ids.clear();
  try {
    append_tokens(document, tokenizer_, framing_, ids);
  } catch (Error& e) {
    throw e.with_context("while tokenizing " + blocks_.place(block, i));
  }
  if (!document.is_tokenised) piece.text_bytes += static_cast<int64_t>(document.text.size());
  const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
  if (!ids.empty() && (*least < 0 || *most >= vocab_size_))
    fail(document.is_tokenised ? ErrorKind::data : ErrorKind::plugin, blocks_.place(block, i),
         " has the id ", *least < 0 ? *least : *most, ", the tokenizer's ids are 0 to ",
         vocab_size_ - 1,
         document.is_tokenised
             ? "; set model.hf_assets_path to the tokenizer that made these documents"
             : ": it breaks its contract");
  TITAN_CHECK(ids.size() <= std::numeric_limits<int32_t>::max(), data, blocks_.place(block, i),
              " has ", ids.size(),
              " tokens; an .idx file counts at most 2147483647 for a document");
  append(ids, width_, piece.bytes);
  piece.sizes.push_back(static_cast<int32_t>(ids.size()));
}

}  // namespace titan::tokenising
