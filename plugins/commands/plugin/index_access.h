// Reads an index and its files, from a folder or over HTTP, and verifies the index.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "index.h"
#include "index_store.h"
#include "new_file.h"

namespace titan::plugin_index {

/// Where an index is. Every method throws an io Error that names the address.
class IndexPlace {
 public:
  virtual ~IndexPlace() = default;
  /// The text of a file of the index. Throws a plugin Error if it is longer than `most` bytes.
  virtual std::string text(const std::string& name, int64_t most) = 0;
  /// Appends the content of `url` to `file`. Throws a plugin Error beyond `most` bytes.
  virtual void fetch(const std::string& url, int64_t most, NewFile& file) = 0;
};

/// `address`: a URL or a folder.
std::unique_ptr<IndexPlace> open_place(const std::string& address);
/// A URL without a final slash, or the absolute path of a folder. Throws a config Error for an
/// address with a password, or of another scheme.
std::string complete_address(const std::string& address);

/// The index at `place` with its signature checked against `added.key`: the name and counter are
/// those of the signed comment, it has not expired at `now`, and it is not older than
/// `added.counter`. An empty `added.name` accepts any name. Throws a plugin Error with the remedy.
Index verified_index(IndexPlace& place, const AddedIndex& added, int64_t now);

/// The same for an index in `store`, which remembers the counter.
Index read_index(IndexPlace& place, const AddedIndex& added, IndexStore& store);

}  // namespace titan::plugin_index
