#include <titan/checkpoints/tensor_index.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>

#include <titan/checkpoints/metadata_texts.h>
#include <titan/error.h>
#include <titan/files/json_string.h>

namespace titan {
namespace {

std::string list_text(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::string piece_text(const TensorIndex& index, const StoredPiece& piece) {
  return list_text(piece.sizes) + " at " + list_text(piece.offsets) + " in " +
         index.files[piece.file].string();
}

/// Elements of a rectangle; below 2^63 for pieces, because their bytes were counted before.
int64_t num_elements(const std::vector<int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

bool overlap(const StoredPiece& a, const StoredPiece& b) {
  for (size_t dim = 0; dim < a.sizes.size(); ++dim)
    if (a.offsets[dim] + a.sizes[dim] <= b.offsets[dim] ||
        b.offsets[dim] + b.sizes[dim] <= a.offsets[dim])
      return false;
  return true;
}

/// The dimension along which the pieces have the most distinct offsets.
size_t most_cut_dim(const std::vector<const StoredPiece*>& pieces) {
  size_t best = 0, most = 0;
  for (size_t dim = 0; dim < pieces.front()->offsets.size(); ++dim) {
    std::vector<int64_t> starts;
    for (const StoredPiece* piece : pieces) starts.push_back(piece->offsets[dim]);
    std::sort(starts.begin(), starts.end());
    const size_t places = std::unique(starts.begin(), starts.end()) - starts.begin();
    if (places > most) std::tie(best, most) = std::make_pair(dim, places);
  }
  return best;
}

/// Two pieces that overlap, or nulls. A sweep along one dimension compares only pieces that are
/// open at the same time, so a tensor cut into n pieces along a dimension costs n log n.
std::pair<const StoredPiece*, const StoredPiece*> find_overlap(const StoredTensor& tensor) {
  std::vector<const StoredPiece*> pieces;
  for (const StoredPiece& piece : tensor.pieces)
    if (num_elements(piece.sizes) > 0) pieces.push_back(&piece);
  if (pieces.size() < 2) return {};
  if (tensor.shape.empty()) return {pieces[0], pieces[1]};

  const size_t dim = most_cut_dim(pieces);
  std::stable_sort(pieces.begin(), pieces.end(),
                   [&](const auto* a, const auto* b) { return a->offsets[dim] < b->offsets[dim]; });
  std::multimap<int64_t, const StoredPiece*> open;  // by their end
  for (const StoredPiece* piece : pieces) {
    open.erase(open.begin(), open.upper_bound(piece->offsets[dim]));
    for (const auto& [end, other] : open)
      if (overlap(*other, *piece)) return {other, piece};
    open.emplace(piece->offsets[dim] + piece->sizes[dim], piece);
  }
  return {};
}

/// Checks that pieces do not overlap and cover the rectangle from 0 to their largest end.
void check_cover(const TensorIndex& index, const std::string& name, const StoredTensor& tensor) {
  const auto [one, other] = find_overlap(tensor);
  TITAN_CHECK(!one, data, "tensor ", in_quotes(name),
              " is stored twice in part: ", piece_text(index, *one), " overlaps ",
              piece_text(index, *other));
  const int64_t whole = num_bytes(tensor.dtype, tensor.shape, "tensor " + in_quotes(name));
  int64_t stored = 0;
  bool overflows = false;
  for (const StoredPiece& piece : tensor.pieces)
    overflows |= __builtin_add_overflow(stored, piece.bytes, &stored);
  if (stored == whole && !overflows) return;
  std::set<int> files;
  for (const StoredPiece& piece : tensor.pieces) files.insert(piece.file);
  std::string names;
  constexpr size_t kMostNamed = 8;
  size_t num_named = 0;
  for (const int file : files)
    if (num_named++ < kMostNamed) names += (names.empty() ? "" : ", ") + index.files[file].string();
  if (files.size() > kMostNamed)
    names += " and " + std::to_string(files.size() - kMostNamed) + " more";
  fail(ErrorKind::data, "tensor ", in_quotes(name), " has gaps: its pieces hold ", stored, " of ",
       whole, " bytes of shape ", list_text(tensor.shape), "; a file is missing next to ", names);
}

/// Adds a file's piece of one tensor.
void add_piece(TensorIndex& index, const TensorEntry& entry, StoredPiece piece) {
  const std::string file = index.files[piece.file].string();
  const std::string about = "tensor " + in_quotes(entry.name) + " in " + file;
  TITAN_CHECK(piece.offsets.size() == piece.sizes.size(), data, about, " has ",
              piece.offsets.size(), " saved_offsets ", list_text(piece.offsets),
              ", but its shape is ", list_text(piece.sizes));
  const auto [place, is_new] = index.tensors.try_emplace(entry.name);
  StoredTensor& tensor = place->second;
  if (is_new) {
    tensor.dtype = entry.dtype;
    tensor.shape.resize(piece.sizes.size());
  }
  const auto first_file = [&] { return index.files[tensor.pieces.front().file].string(); };
  TITAN_CHECK(tensor.dtype == entry.dtype, data, about, " has type ", entry.dtype, ", but ",
              tensor.dtype, " in ", first_file());
  TITAN_CHECK(tensor.shape.size() == piece.sizes.size(), data, about, " has ", piece.sizes.size(),
              " dimensions, but ", tensor.shape.size(), " in ", first_file());
  for (size_t dim = 0; dim < piece.sizes.size(); ++dim) {
    int64_t end;
    TITAN_CHECK(!__builtin_add_overflow(piece.offsets[dim], piece.sizes[dim], &end), data, about,
                " begins at ", list_text(piece.offsets), ", which is beyond 64 bits with sign");
    tensor.shape[dim] = std::max(tensor.shape[dim], end);
  }
  tensor.pieces.push_back(std::move(piece));
}

void add_file(TensorIndex& index, int file, const SafetensorsHeader& header) {
  const std::string place = index.files[file].string();
  const auto sharding_text = header.metadata.find(kShardingKey);
  const bool is_sharded = sharding_text != header.metadata.end();
  const auto sharding = is_sharded ? parse_sharding(sharding_text->second, place)
                                   : std::map<std::string, std::vector<int64_t>>();
  const auto hashes_text = header.metadata.find(kTensorHashesKey);
  const auto convention = header.metadata.find(kConventionKey);
  index.says_own.push_back(convention != header.metadata.end()
                               ? convention->second == kOwnConvention
                               : hashes_text != header.metadata.end());
  const auto hashes = hashes_text != header.metadata.end()
                          ? parse_tensor_hashes(hashes_text->second, place)
                          : std::map<std::string, std::string>();
  for (const TensorEntry& entry : header.tensors) {
    StoredPiece piece;
    piece.file = file;
    piece.sizes = entry.shape;
    piece.offsets.assign(entry.shape.size(), 0);
    if (is_sharded) {
      const auto found = sharding.find(entry.name);
      TITAN_CHECK(found != sharding.end(), data, "cannot read ", place, ": ", kShardingKey,
                  " does not name tensor ", in_quotes(entry.name));
      piece.offsets = found->second;
    }
    piece.position = header.data_start + entry.begin;
    piece.bytes = entry.end - entry.begin;
    if (const auto hash = hashes.find(entry.name); hash != hashes.end()) piece.hash = hash->second;
    add_piece(index, entry, std::move(piece));
  }
}

}  // namespace

TensorIndex index_headers(std::vector<std::filesystem::path> files,
                          const std::vector<SafetensorsHeader>& headers) {
  TITAN_ASSERT(files.size() == headers.size(), files.size(), " files with ", headers.size(),
               " headers");
  TensorIndex index;
  index.files = std::move(files);
  for (size_t file = 0; file < headers.size(); ++file)
    add_file(index, static_cast<int>(file), headers[file]);
  for (const auto& [name, tensor] : index.tensors) check_cover(index, name, tensor);
  return index;
}

TensorIndex index_files(std::vector<std::filesystem::path> files) {
  std::vector<SafetensorsHeader> headers;
  headers.reserve(files.size());
  for (const std::filesystem::path& file : files) headers.push_back(read_header(file));
  return index_headers(std::move(files), headers);
}

std::vector<std::filesystem::path> safetensors_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".safetensors") files.push_back(entry->path());
  TITAN_CHECK(!error, io, "cannot list folder ", folder.string(), ": ", error.message());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace titan
