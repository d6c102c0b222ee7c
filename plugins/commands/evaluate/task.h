// A task of titan evaluate: options and documents, as in lm-evaluation-harness. No torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <titan/options.h>
#include <titan/value.h>

namespace titan::evaluation {

enum class TaskKind {
  multiple_choice,        ///< which of a document's choices is the most likely
  loglikelihood,          ///< how likely one continuation is, and whether it is the greedy one
  loglikelihood_rolling,  ///< how likely a whole text is: perplexity
};

/// A task's TOML file. Names and meanings are those of lm-evaluation-harness's YAML files. A text
/// is the name of a field of the documents, or a TextTemplate.
struct TaskOptions {
  std::string task;               ///< empty: the name of the file
  std::filesystem::path dataset;  ///< JSON lines, a document each; relative to the TOML file
  TaskKind output_type = TaskKind::multiple_choice;
  std::string doc_to_text;                 ///< the context
  std::vector<std::string> doc_to_choice;  ///< texts, or one field with a list of them
  std::string doc_to_target;  ///< right choice: number, numbers or text; else the continuation
  std::string description;    ///< before everything, verbatim
  std::string target_delimiter = " ";
  std::string fewshot_delimiter = "\n\n";
  int64_t num_fewshot = 0;
  std::filesystem::path fewshot_dataset;  ///< its first documents are the examples
};

/// The schema of a task file: its keys, and their descriptions for messages.
Schema task_schema();

/// One line of the data, as texts for the model.
struct TaskDocument {
  Value source;
  std::string place;                       ///< "arc.jsonl:3"
  std::string context;                     ///< description and examples included; empty for rolling
  std::vector<std::string> continuations;  ///< a request each; for rolling the text alone
  std::vector<std::string> choices;        ///< continuations without the delimiter
  std::vector<size_t> gold;                ///< right choices; at least one for multiple_choice
  Value target;                            ///< value of doc_to_target, for the samples
};

struct Task {
  TaskOptions options;
  std::vector<TaskDocument> documents;
  size_t num_original = 0;  ///< documents of the file, before `limit`

  const std::string& name() const { return options.task; }
  TaskKind kind() const { return options.output_type; }
};

}  // namespace titan::evaluation
