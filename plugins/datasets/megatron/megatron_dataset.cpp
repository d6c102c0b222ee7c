// See megatron_dataset.h.
#include "plugins/datasets/megatron/megatron_dataset.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <titan/error.h>

#include "plugins/datasets/common/fingerprint.h"
#include "plugins/datasets/common/source_files.h"

namespace titan::datasets {
namespace {

namespace fs = std::filesystem;

/// The .idx files of a path.
std::vector<SourceFile> find_indices(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored)) return find_source_files(path, {".idx"});
  std::string prefix = path;
  if (prefix.ends_with(".idx") || prefix.ends_with(".bin")) prefix.resize(prefix.size() - 4);
  return find_source_files(prefix + ".idx", {".idx"});
}

}  // namespace

MegatronDataset::MegatronDataset(DatasetContext context) {
  for (SourceFile& source : find_indices(context.path)) {
    fs::path bin = source.path;
    bin.replace_extension(".bin");
    std::error_code ignored;
    TITAN_CHECK(fs::exists(bin, ignored), io, "'", bin.string(), "' is missing; its index is '",
                source.path.string(), "'");
    const uint64_t num_bin_bytes = InputFile(bin).size();
    const uint64_t num_index_bytes = InputFile(source.path).size();
    const size_t file = inputs_.add(source.path, num_index_bytes);
    inputs_.add(bin, num_bin_bytes);
    MegatronIndex index(
        [this, file](uint64_t begin, uint64_t end, char* buffer) {
          inputs_.open(file)->read(begin, end, buffer);
        },
        num_index_bytes, num_bin_bytes, source.path.string());
    const TokenLayout layout{index.type(), 0, num_bin_bytes / width_of(index.type())};
    const int64_t first = num_documents_;
    num_documents_ += index.num_documents();
    std::string name = fs::path(source.name).replace_extension(".bin").string();
    pairs_.push_back({std::move(name), std::move(index), layout, first});
  }
}

const MegatronDataset::Pair& MegatronDataset::pair_of(int64_t index) const {
  TITAN_ASSERT(index >= 0 && index < size(), "document ", index, " of ", size());
  return *std::prev(std::upper_bound(
      pairs_.begin(), pairs_.end(), index,
      [](int64_t wanted, const Pair& pair) { return wanted < pair.first_document; }));
}

void MegatronDataset::read(int64_t index, Document& document) const {
  const Pair& pair = pair_of(index);
  const auto file = static_cast<size_t>(&pair - pairs_.data());
  const uint64_t width = width_of(pair.layout.type);
  document.text.clear();
  document.is_tokenised = true;
  try {
    const MegatronIndex::Range bytes = pair.index.document(index - pair.first_document);
    read_tokens(*inputs_.open(2 * file + 1), pair.layout, bytes.begin / width, bytes.end / width,
                document.tokens);
  } catch (Error& error) {
    error.with_context("while reading " + place(index));
    throw;
  }
}

std::string MegatronDataset::place(int64_t index) const {
  const Pair& pair = pair_of(index);
  return detail::concat(pair.name, ": document ", index - pair.first_document);
}

std::string MegatronDataset::fingerprint() const {
  Fingerprint fingerprint;
  fingerprint.add("megatron");
  for (size_t i = 0; i < pairs_.size(); ++i)
    fingerprint.add(pairs_[i].name)
        .add(name_of(pairs_[i].index.type()))
        .add(inputs_.num_bytes(2 * i))
        .add(inputs_.num_bytes(2 * i + 1))
        .add(pairs_[i].index.num_documents());
  return fingerprint.hex();
}

}  // namespace titan::datasets
