// See tokens_dataset.h.
#include "plugins/datasets/tokens/tokens_dataset.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <utility>

#include <titan/error.h>

#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/source_files.h"

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

std::optional<TokenType> type_named(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  for (TokenType type :
       {TokenType::uint8, TokenType::uint16, TokenType::int32, TokenType::uint32, TokenType::int64})
    if (*name == name_of(type)) return type;
  fail(ErrorKind::config, "option 'dtype' of dataset 'tokens' is '", *name,
       "', which is not a type of ids");
}

std::optional<DocumentMark> mark_of(const TokensOptions& o) {
  TITAN_CHECK(!o.document_start || !o.document_end, config,
              "options 'document_start' and 'document_end' of dataset 'tokens' are both set; "
              "remove one of them");
  if (!o.document_start && !o.document_end) return std::nullopt;
  const int64_t id = o.document_start ? *o.document_start : *o.document_end;
  TITAN_CHECK(id >= 0 && id <= std::numeric_limits<int32_t>::max(), config, "option '",
              o.document_start ? "document_start" : "document_end",
              "' of dataset 'tokens' must be an id from 0 to 2147483647, got ", id);
  return DocumentMark{static_cast<int32_t>(id),
                      o.document_start ? DocumentMark::Place::first : DocumentMark::Place::last};
}

/// A .bin next to an .idx is Megatron's; read as raw ids it would lose its document boundaries.
void refuse_megatron(const fs::path& path) {
  std::error_code ignored;
  const fs::path index = fs::path(path).replace_extension(".idx");
  if (index == path || !fs::is_regular_file(index, ignored)) return;
  char magic[7];
  const bool is_megatron = InputFile(index).read_some(0, magic, sizeof(magic)) == sizeof(magic) &&
                           std::string_view(magic, sizeof(magic)) == "MMIDIDX";
  TITAN_CHECK(!is_megatron, config, "'", path.string(), "' has a Megatron index next to it ('",
              index.filename().string(),
              "'); use dataset 'megatron', or format = \"raw\" to read it without its documents");
}

}  // namespace

TokensDataset::TokensDataset(const TokensOptions& options, DatasetContext context)
    : options_(options), type_(type_named(options.dtype)), mark_(mark_of(options)) {
  TITAN_CHECK(options_.chunk_tokens >= 1, config,
              "option 'chunk_tokens' of dataset 'tokens' must be >= 1, got ",
              options_.chunk_tokens);
  uint64_t num_marks = 0;
  for (const SourceFile& source : find_source_files(context.path, {".bin", ".npy", ".ds"})) {
    const InputFile input(source.path);
    File file = opened(source, input);
    file.first_document = num_documents_;
    num_documents_ += file.num_documents;
    num_marks += file.num_marks;
    inputs_.add(source.path, input.size());
    files_.push_back(std::move(file));
  }
  TITAN_CHECK(!mark_ || num_marks > 0, data, "no document of data set '", context.path,
              mark_->place == DocumentMark::Place::first ? "' starts" : "' ends", " with the id ",
              mark_->id, ", which option 'document_start' or 'document_end' names");
}

TokensDataset::File TokensDataset::opened(const SourceFile& source, const InputFile& input) const {
  File file;
  file.name = source.name;
  const bool is_datatrove =
      options_.format == TokenFormat::datatrove ||
      (options_.format == TokenFormat::automatic && source.path.extension() == ".ds");
  if (is_datatrove) {
    use_datatrove_index(input, file);
  } else {
    if (options_.format == TokenFormat::automatic) refuse_megatron(source.path);
    std::string head(kTokenHeadBytes, '\0');
    head.resize(input.read_some(0, head.data(), head.size()));
    file.layout =
        parse_token_layout(head, input.size(), options_.format, type_, source.path.string());
    if (mark_) {
      DocumentBounds bounds = scan_documents(input, file.layout, *mark_);
      file.ends = std::move(bounds.ends);
      file.num_marks = bounds.num_marks;
    }
  }
  const auto chunk = static_cast<uint64_t>(options_.chunk_tokens);
  file.num_documents = static_cast<int64_t>(
      file.ends.empty() ? (file.layout.num_tokens - 1) / chunk + 1 : file.ends.size());
  return file;
}

void TokensDataset::use_datatrove_index(const InputFile& input, File& file) const {
  const std::string name = input.path().string();
  const fs::path index = name + ".index";
  TITAN_CHECK(!mark_, config, "the documents of '", name,
              "', of the format 'datatrove', are given by its index; remove 'document_start' and "
              "'document_end'");
  std::error_code ignored;
  TITAN_CHECK(fs::exists(index, ignored), io, "'", index.string(), "' is missing, the index of ",
              "the documents of '", name, "'; get it, or set format = \"raw\" and dtype in ",
              "[dataset.tokens] to read the ids without it");
  file.ends = read_datatrove_index(InputFile(index));
  const uint64_t num_tokens = file.ends.back();
  for (TokenType type : {TokenType::uint16, TokenType::uint32})
    if (num_tokens > 0 && num_tokens <= input.size() && num_tokens * width_of(type) == input.size())
      file.layout = {type, 0, num_tokens};
  TITAN_CHECK(file.layout.num_tokens > 0, data, "'", name, "' has ", input.size(),
              " bytes, but its index counts ", num_tokens,
              " tokens of 2 or 4 bytes; are both copies complete?");
  TITAN_CHECK(!type_ || *type_ == file.layout.type, config,
              "option 'dtype' of dataset 'tokens' is ", *options_.dtype, ", but '", name,
              "' holds ", name_of(file.layout.type), "; leave the option out");
}

TokensDataset::Range TokensDataset::range_of(int64_t index) const {
  TITAN_ASSERT(index >= 0 && index < size(), "document ", index, " of ", size());
  const auto behind = std::upper_bound(
      files_.begin(), files_.end(), index,
      [](int64_t wanted, const File& file) { return wanted < file.first_document; });
  const File& file = *std::prev(behind);
  const int64_t document = index - file.first_document;
  const auto at = static_cast<size_t>(document);
  Range range{static_cast<size_t>(&file - files_.data()), document};
  if (file.ends.empty()) {
    range.begin = at * static_cast<uint64_t>(options_.chunk_tokens);
    range.end = std::min(range.begin + static_cast<uint64_t>(options_.chunk_tokens),
                         file.layout.num_tokens);
  } else {
    range.begin = at == 0 ? 0 : file.ends[at - 1];
    range.end = file.ends[at];
  }
  return range;
}

void TokensDataset::read(int64_t index, Document& document) const {
  const Range range = range_of(index);
  document.text.clear();
  document.is_tokenised = true;
  try {
    read_tokens(*inputs_.open(range.file), files_[range.file].layout, range.begin, range.end,
                document.tokens);
  } catch (Error& error) {
    error.with_context("while reading " + place(index));
    throw;
  }
}

std::string TokensDataset::place(int64_t index) const {
  const Range range = range_of(index);
  return detail::concat(files_[range.file].name, ": document ", range.document, " (token ",
                        range.begin, ")");
}

std::string TokensDataset::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add("tokens").add(options_.chunk_tokens);
  if (mark_) fingerprint.add(static_cast<int>(mark_->place)).add(mark_->id);
  for (size_t i = 0; i < files_.size(); ++i)
    fingerprint.add(files_[i].name)
        .add(name_of(files_[i].layout.type))
        .add(inputs_.num_bytes(i))
        .add(files_[i].num_documents);
  return fingerprint.hex();
}

}  // namespace titan::datasets
