// Dataset `tokens`: files of token ids as llm.c, nanoGPT, OLMo and datatrove write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <titan/dataset.h>

#include "plugins/datasets/common/open_files.h"
#include "plugins/datasets/common/source_files.h"
#include "plugins/datasets/tokens/document_bounds.h"
#include "plugins/datasets/tokens/token_layout.h"

namespace titan::datasets {

struct TokensOptions {
  TokenFormat format = TokenFormat::automatic;
  std::optional<std::string> dtype;       ///< of a raw file, as name_of(); unset = uint16
  std::optional<int64_t> document_start;  ///< the id that each document starts with
  std::optional<int64_t> document_end;    ///< the id that each document ends with
  int64_t chunk_tokens = 8192;            ///< length of a document without marks or index
};

/// Documents are separated by marks (the constructor reads the files once and keeps 8 bytes per
/// document) or by datatrove's index; else they are chunks of `chunk_tokens`, so that they can be
/// shuffled. All tokens are kept unchanged, marks included.
class TokensDataset final : public IndexedDataset {
 public:
  /// Opens all files and checks their headers and sizes. Throws an Error naming the file.
  TokensDataset(const TokensOptions& options, DatasetContext context);

  int64_t size() const override { return num_documents_; }
  void read(int64_t index, Document& document) const override;
  /// "train.bin: document 17 (token 13251)", both counted from 0 in the file.
  std::string place(int64_t index) const override;
  /// Hash of the files' names, types and sizes, their numbers of documents and the options that
  /// separate documents.
  std::string fingerprint() const override;

 private:
  struct File {
    std::string name;
    TokenLayout layout;
    std::vector<uint64_t> ends;  // of its documents, in tokens; empty = chunks
    uint64_t num_marks = 0;
    int64_t first_document = 0;
    int64_t num_documents = 0;
  };
  struct Range {
    size_t file = 0;
    int64_t document = 0;  // in the file
    uint64_t begin = 0, end = 0;
  };

  File opened(const SourceFile& source, const InputFile& input) const;
  /// Sets layout and documents of a datatrove file from its index.
  void use_datatrove_index(const InputFile& input, File& file) const;
  Range range_of(int64_t index) const;

  TokensOptions options_;
  std::optional<TokenType> type_;
  std::optional<DocumentMark> mark_;
  OpenFiles inputs_;
  std::vector<File> files_;  // in the order of inputs_
  int64_t num_documents_ = 0;
};

}  // namespace titan::datasets
