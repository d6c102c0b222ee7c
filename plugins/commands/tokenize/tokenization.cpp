#include "tokenization.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <titan/error.h>
#include <titan/program/clock.h>

#include "token_files.h"
#include "tokenize_journal.h"

namespace titan::tokenising {
namespace {

namespace fs = std::filesystem;

constexpr double kWaitSeconds = 0.1;
constexpr double kLeastBetweenSyncs = 0.5;
constexpr double kSyncShare = 20;  // at most 1/20 of the time goes into fsync

/// Throws when an existing output must be kept.
void check_free(const Tokenization& request, const TokenFilePaths& paths,
                const TokenizeJournal& journal) {
  // a kill may have come between the two renames
  const bool is_being_finished = journal.last().is_complete && !fs::exists(paths.bin_part);
  for (const fs::path& path : {paths.bin, paths.idx})
    TITAN_CHECK(request.overwrite || is_being_finished || !fs::exists(path), config,
                "the output exists: ", path.string(),
                "; choose another --output, or replace it with --overwrite");
}

/// Whether the journal has this request's identity. Throws when it has another one and must be
/// kept.
bool can_go_on(const Tokenization& request, const TokenFilePaths& paths,
               const TokenizeJournal& journal) {
  if (!journal.identity()) return false;
  const std::vector<std::string> different = differences(*journal.identity(), request.identity);
  if (different.empty()) {
    const JournalEntry& last = journal.last();
    const TokenWidth width = token_width(request.tokenizer->vocab_size());
    const bool is_new = last.next.documents == 0;
    return is_new || !request.overwrite ||
           token_files_hold(paths, width, last.next.documents, last.tokens, last.is_complete);
  }
  if (request.overwrite) return false;
  std::string text;
  for (const std::string& line : different) text += "\n  " + line;
  fail(ErrorKind::config, "cannot continue the unfinished output ", request.prefix.string(),
       ": it was begun with other settings", text,
       "\n  choose another --output, or start over with --overwrite");
}

TokenizeJournal open_journal(const Tokenization& request, const TokenFilePaths& paths) {
  TokenizeJournal journal(paths.journal);
  try {
    journal.load();
  } catch (const Error& e) {
    if (!request.overwrite || e.kind() != ErrorKind::data) throw;
    journal.begin(request.identity);
  }
  return journal;
}

class Run {
 public:
  Run(const Tokenization& request, const TokenFilePaths& paths, TokenizeJournal& journal,
      const std::function<bool(const TokenizationState&)>& goes_on)
      : request_(request),
        paths_(paths),
        journal_(journal),
        goes_on_(goes_on),
        width_(token_width(request.tokenizer->vocab_size())),
        sure_(journal.last()) {
    state_.old_documents = sure_.next.documents;
    state_.old_tokens = sure_.tokens;
    state_.old_text_bytes = sure_.text_bytes;
    state_.old_shard = sure_.next.shard;
    text_bytes_ = sure_.text_bytes;
    show(sure_.next.documents, sure_.tokens);
  }

  TokenizationState to_the_end() {
    if (!sure_.is_complete && !tokenise_all()) return state_;
    state_.is_complete = finish_token_files(paths_, width_, sure_.next.documents, sure_.tokens,
                                            [this] { return goes_on_(state_); });
    return state_;
  }

 private:
  /// False when it was asked to stop.
  bool tokenise_all() {
    TokenFiles files(paths_, width_, sure_.next.documents, sure_.tokens);
    TokenPipeline pipeline(*request_.dataset, *request_.tokenizer, request_.framing, sure_.next,
                           request_.pipeline);
    double last_sync = monotonic_seconds(), between = kLeastBetweenSyncs;
    while (true) {
      TokenPiece piece;
      const OrderedPieces::Taken taken = pipeline.take(piece, kWaitSeconds);
      const bool is_end = taken == OrderedPieces::Taken::end;
      if (taken == OrderedPieces::Taken::piece) append(files, piece);
      const bool stops = !is_end && !goes_on_(state_);
      if (piece.error || is_end || stops || monotonic_seconds() - last_sync > between) {
        const double start = monotonic_seconds();
        keep(files, is_end);
        last_sync = monotonic_seconds();
        between = std::max(kLeastBetweenSyncs, kSyncShare * (last_sync - start));
      }
      if (piece.error) std::rethrow_exception(piece.error);
      if (is_end) return true;
      if (stops) return false;
    }
  }

  void append(TokenFiles& files, const TokenPiece& piece) {
    files.append(piece);
    text_bytes_ += piece.text_bytes;
    if (piece.end)
      at_block_end_ = {.next = *piece.end, .tokens = files.tokens(), .text_bytes = text_bytes_};
    show(files.documents(), files.tokens());
  }

  /// Makes everything durable up to the end of the last complete block.
  void keep(TokenFiles& files, bool is_complete) {
    if (is_complete && !at_block_end_) at_block_end_ = sure_;
    if (!at_block_end_) return;
    TITAN_CHECK(!is_complete || at_block_end_->next.documents > 0, data,
                "the data set has no document: there is nothing to tokenize");
    files.sync();
    at_block_end_->is_complete = is_complete;
    journal_.add(*at_block_end_);
    sure_ = *std::exchange(at_block_end_, std::nullopt);
  }

  void show(int64_t documents, int64_t tokens) {
    state_.documents = documents;
    state_.tokens = tokens;
    state_.text_bytes = text_bytes_;
    state_.bin_bytes = tokens * static_cast<int64_t>(width_);
    state_.shard = (at_block_end_ ? *at_block_end_ : sure_).next.shard;
  }

  const Tokenization& request_;
  const TokenFilePaths& paths_;
  TokenizeJournal& journal_;
  const std::function<bool(const TokenizationState&)>& goes_on_;
  const TokenWidth width_;
  JournalEntry sure_;                         // in the journal
  std::optional<JournalEntry> at_block_end_;  // in the files, but not yet in the journal
  int64_t text_bytes_ = 0;
  TokenizationState state_;
};

}  // namespace

TokenizationState tokenise(const Tokenization& request,
                           const std::function<bool(const TokenizationState&)>& goes_on) {
  const TokenFilePaths paths = token_file_paths(request.prefix);
  // checked before anything is created
  if (!request.overwrite && !fs::exists(paths.journal))
    for (const fs::path& path : {paths.bin, paths.idx})
      TITAN_CHECK(!fs::exists(path), config, "the output exists: ", path.string(),
                  "; choose another --output, or replace it with --overwrite");
  if (request.prefix.has_parent_path()) fs::create_directories(request.prefix.parent_path());
  TokenizeJournal journal = open_journal(request, paths);
  check_free(request, paths, journal);
  if (!can_go_on(request, paths, journal)) journal.begin(request.identity);
  try {
    return Run(request, paths, journal, goes_on).to_the_end();
  } catch (Error& e) {
    if (e.kind() == ErrorKind::io)
      e.with_context("the work done before is kept: run the same command again to continue");
    throw;
  }
}

}  // namespace titan::tokenising
