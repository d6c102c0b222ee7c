// Parts of a job that a command opens without a model: its data set, its tokenizer, its chat
// template. `titan tokenize` and `titan chat-template` are made of it. No torch, but a command that
// opens data is not TORCH_FREE: data sets and tokenizers of others may need torch.
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
  /// Where documents are tokens already and no tokenizer is there: one whose encode and decode
  /// throw, and which may have any id.
  virtual const Tokenizer& tokenizer() const = 0;
  /// "data set 'jsonl' (data/*.jsonl), tokenizer 'huggingface' (assets/hf/llama)"
  virtual std::string description() const = 0;
  /// What decides about the tokens: names, options, the content of the data set and the behaviour
  /// of the tokenizer, but not where the files are. The names of its members are for messages.
  virtual Value identity() const = 0;
};

/// The chat template of a job, with the tokenizer where ids are needed.
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

/// Opens parts of a job; the rest of the job need not fit this machine. Errors are found and placed
/// as `titan train` does.
class TITAN_API JobParts {
 public:
  virtual ~JobParts();
  /// training.dataset and dataset_path, [dataset], [tokenizer], model.hf_assets_path, [plugins] and
  /// debug.seed count. A blend is a config Error.
  virtual std::unique_ptr<OpenedData> open_data(const DataRequest& request) = 0;
  /// [chat_template], [tokenizer], model.hf_assets_path and [plugins] count. A job that names no
  /// template has the one of most models.
  virtual std::unique_ptr<OpenedChat> open_chat(const ChatRequest& request) = 0;
  /// Where the job writes, [job] dump_folder; the default of a job that is wrong, which says so
  /// when it is started. Opens no plugin.
  virtual std::string dump_folder(const std::vector<std::string>& job) = 0;
};

}  // namespace titan
