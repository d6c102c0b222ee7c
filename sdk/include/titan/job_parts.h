// Opens the data set, tokenizer and chat template of a job without its model. Used by commands such
// as `titan tokenize` and `titan chat-template`. No torch in this header, but a command that opens
// data is not TORCH_FREE: data set and tokenizer plugins may need torch.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <titan/chat_text.h>
#include <titan/dataset.h>
#include <titan/export.h>
#include <titan/tokenizer.h>
#include <titan/value.h>

TITAN_OPTIONAL_HEADER(job_parts);

namespace titan {

/// The data set and the tokenizer of a job.
class TITAN_API OpenedData {
 public:
  virtual ~OpenedData();
  virtual const Dataset& dataset() const = 0;
  /// If the documents are tokenised and the job has no tokenizer: one that accepts any id and whose
  /// encode and decode throw.
  virtual const Tokenizer& tokenizer() const = 0;
  /// "data set 'jsonl' (data/*.jsonl), tokenizer 'huggingface' (assets/hf/llama)"
  virtual std::string description() const = 0;
  /// Everything that determines the tokens: names, options, the content of the data set and the
  /// behaviour of the tokenizer, but not the location of files. Messages show the names of its
  /// members.
  virtual Value identity() const = 0;
};

/// The chat template of a job, with the tokenizer if ids are needed.
class TITAN_API OpenedChat {
 public:
  virtual ~OpenedChat();
  virtual const ChatText& chat() const = 0;
};

struct DataRequest {
  std::string command;           ///< "titan tokenize", for messages
  std::vector<std::string> job;  ///< --job.config_file FILE, --section.key VALUE
  /// Why the command cannot work with conversations; empty: it can.
  std::string no_conversations = {};
};

struct ChatRequest {
  std::vector<std::string> job;
  bool needs_ids = false;
};

/// Opens parts of a job; the rest of the job need not fit this machine. Reports errors and their
/// places as `titan train` does.
class TITAN_API JobParts {
 public:
  virtual ~JobParts();
  /// Reads training.dataset and dataset_path, [dataset], [tokenizer], model.hf_assets_path,
  /// [plugins] and debug.seed. A blend is a config Error.
  virtual std::unique_ptr<OpenedData> open_data(const DataRequest& request) = 0;
  /// Reads [chat_template], [tokenizer], model.hf_assets_path and [plugins]. A job without a
  /// template gets the default one.
  virtual std::unique_ptr<OpenedChat> open_chat(const ChatRequest& request) = 0;
  /// The job's output folder, [job] dump_folder. A job with errors gets the default; its start
  /// reports the errors. Opens no plugin.
  virtual std::string dump_folder(const std::vector<std::string>& job) = 0;
};

}  // namespace titan
