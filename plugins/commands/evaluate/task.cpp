#include "task.h"

namespace titan::evaluation {

Schema task_schema() {
  using Options = TaskOptions;
  Schema schema;
  SchemaBuilder(schema)
      .option("task", &Options::task, "Name of the task; empty: the name of the file")
      .option("dataset", &Options::dataset, "JSON lines, a document each")
      .option("output_type", &Options::output_type, "What the model is asked for each document",
              {{"multiple_choice", TaskKind::multiple_choice},
               {"loglikelihood", TaskKind::loglikelihood},
               {"loglikelihood_rolling", TaskKind::loglikelihood_rolling}})
      .option("doc_to_text", &Options::doc_to_text, "The context: a field, or text with {{field}}")
      .option("doc_to_choice", &Options::doc_to_choice,
              "A field with a list, or one text per choice")
      .option("doc_to_target", &Options::doc_to_target, "The right choice, or the continuation")
      .option("description", &Options::description, "Text before everything")
      .option("target_delimiter", &Options::target_delimiter, "Between context and choice")
      .option("fewshot_delimiter", &Options::fewshot_delimiter, "After each example")
      .option("num_fewshot", &Options::num_fewshot, "Number of examples before each document")
      .at_least(0)
      .option("fewshot_dataset", &Options::fewshot_dataset,
              "JSON lines whose first documents are the examples");
  return schema;
}

}  // namespace titan::evaluation
