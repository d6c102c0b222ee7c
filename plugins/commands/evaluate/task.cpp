#include "task.h"

namespace titan::evaluation {

Schema task_schema() {
  using Options = TaskOptions;
  Schema schema;
  SchemaBuilder(schema)
      .option("task", &Options::task, "Its name; the file's where it is empty")
      .option("dataset", &Options::dataset, "JSON lines, a document each")
      .option("output_type", &Options::output_type, "What is asked of a document",
              {{"multiple_choice", TaskKind::multiple_choice},
               {"loglikelihood", TaskKind::loglikelihood},
               {"loglikelihood_rolling", TaskKind::loglikelihood_rolling}})
      .option("doc_to_text", &Options::doc_to_text, "The context: a field, or text with {{field}}")
      .option("doc_to_choice", &Options::doc_to_choice, "A field that is a list, or a text each")
      .option("doc_to_target", &Options::doc_to_target, "The right choice, or the continuation")
      .option("description", &Options::description, "In front of everything")
      .option("target_delimiter", &Options::target_delimiter, "Between context and choice")
      .option("fewshot_delimiter", &Options::fewshot_delimiter, "Behind each example")
      .option("num_fewshot", &Options::num_fewshot, "Examples in front of each document")
      .at_least(0)
      .option("fewshot_dataset", &Options::fewshot_dataset, "Whose first documents they are");
  return schema;
}

}  // namespace titan::evaluation
