// Registers the dataset `parquet`.
#include <titan/plugin.h>

#include "plugins/datasets/parquet/arrow/parquet_dataset.h"

using titan::datasets::ParquetDataset;
using titan::datasets::ParquetOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<ParquetDataset>("parquet", "Documents from a column of Parquet files.")
      .option("field", &ParquetOptions::field, "Column of strings that holds the text")
      .option("tokens_field", &ParquetOptions::tokens_field,
              "Column of lists of token ids to read instead")
      .option("skip_nulls", &ParquetOptions::skip_nulls,
              "Skip rows without a value, which otherwise are errors");
}
