#include "core/config/schema/job_config.h"

namespace titan::core {

const Schema& job_schema() {
  static const Schema kSchema = [] {
    Schema schema;
    SchemaBuilder builder(schema);
    job_schema_parts::declare_run_sections(builder);
    job_schema_parts::declare_training_sections(builder);
    job_schema_parts::declare_other_sections(builder);
    return schema;
  }();
  return kSchema;
}

const Schema& source_schema() {
  static const Schema kSchema = [] {
    using Section = SourceSection;
    Schema schema;
    SchemaBuilder(schema)
        .option("dataset", &Section::dataset,
                "Dataset, by name; its options are keys of this section, too")
        .option("dataset_path", &Section::dataset_path, "Local path instead of the dataset's own")
        .option("weight", &Section::weight,
                "Share of the tokens, relative to the other sources' weights")
        .greater_than(0);
    return schema;
  }();
  return kSchema;
}

KeyPath source_section(const std::string& name) {
  return {"data", "sources", name};
}

const Schema& optimizer_group_schema() {
  static const Schema kSchema = [] {
    Schema schema;
    SchemaBuilder(schema).option("patterns", &OptimizerGroupSection::patterns,
                                 "Names of the group's parameters; * matches any text");
    return schema;
  }();
  return kSchema;
}

KeyPath optimizer_group_section(const std::string& name) {
  return {"optimizer", "groups", name};
}

}  // namespace titan::core
