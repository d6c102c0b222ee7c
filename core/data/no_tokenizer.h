// A placeholder for a tokenizer whose files are missing, since data of tokens need none. Used where
// a run or titan tokenize opens its tokenizer and data sets.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <titan/dataset.h>
#include <titan/error.h>
#include <titan/tokenizer.h>

namespace titan::core {

/// Every use throws the Error with which the tokenizer could not be opened.
class NoTokenizer final : public Tokenizer {
 public:
  explicit NoTokenizer(Error reason) : reason_(std::move(reason)) {}

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  /// The largest possible size, because any id may occur in the data.
  int64_t vocab_size() const override;
  SpecialTokens special_tokens() const override { return {}; }
  const Error& reason() const { return reason_; }

 private:
  Error reason_;
};

/// The result of `make`, or a NoTokenizer when `make` throws an io Error (missing files). Other
/// Errors are rethrown.
std::unique_ptr<Tokenizer> tokenizer_or_none(
    const std::function<std::unique_ptr<Tokenizer>()>& make);

/// Null for a real tokenizer.
const NoTokenizer* missing_tokenizer(const Tokenizer& tokenizer);

/// Warns when the documents of `dataset` are text and `tokenizer` has neither BOS nor EOS. `name`:
/// of the data source; `folder`: of the tokenizer.
void warn_of_bare_documents(const Dataset& dataset, const Tokenizer& tokenizer,
                            const std::string& name, const std::string& folder);

/// Throws the Error of a NoTokenizer when the first document of `dataset` is text. `name`: of the
/// data set, for the message.
void require_tokenizer_for(const Dataset& dataset, const Tokenizer& tokenizer,
                           const std::string& name);

}  // namespace titan::core
