// What stands for a tokenizer where its files are not there: data that are tokens need none. Used
// where a run's or titan tokenize's tokenizer and data sets are opened.
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

/// Every use of it is the Error for which there is no tokenizer.
class NoTokenizer final : public Tokenizer {
 public:
  explicit NoTokenizer(Error reason) : reason_(std::move(reason)) {}

  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override;
  std::string decode(std::span<const int32_t> ids) const override;
  /// Any id may be one of the data's.
  int64_t vocab_size() const override;
  SpecialTokens special_tokens() const override { return {}; }
  const Error& reason() const { return reason_; }

 private:
  Error reason_;
};

/// What `make` gives, or a NoTokenizer when it throws an io Error: the files are not there. Other
/// Errors are passed on.
std::unique_ptr<Tokenizer> tokenizer_or_none(
    const std::function<std::unique_ptr<Tokenizer>()>& make);

/// Null where it is a tokenizer.
const NoTokenizer* as_none(const Tokenizer& tokenizer);

/// Warns when the documents of `dataset` are text and `tokenizer` has neither BOS nor EOS. `name`:
/// of the data source; `folder`: of the tokenizer.
void warn_of_bare_documents(const Dataset& dataset, const Tokenizer& tokenizer,
                            const std::string& name, const std::string& folder);

/// Throws what is the matter with the tokenizer when it is none and the first document of `dataset`
/// is text. `name`: of the data set, for the message.
void require_tokenizer_for(const Dataset& dataset, const Tokenizer& tokenizer,
                           const std::string& name);

}  // namespace titan::core
