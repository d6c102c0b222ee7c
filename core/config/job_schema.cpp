#include "core/config/job_config.h"

namespace titan::core {

const Schema& job_schema() {
  static const Schema kSchema = [] {
    Schema schema;
    SchemaBuilder builder(schema);
    detail::declare_run_sections(builder);
    detail::declare_training_sections(builder);
    detail::declare_other_sections(builder);
    // Schedule names were always compared without case.
    for (Option& option : schema.find("parallelism")->table->options)
      if (option.name == "pipeline_parallel_schedule") option.ignores_case = true;
    return schema;
  }();
  return kSchema;
}

}  // namespace titan::core
