// Registers the dataset `parquet`.
#include <titan/plugin.h>

#include "plugins/datasets/parquet/arrow/parquet_dataset.h"

using titan::datasets::ParquetDataset;
using titan::datasets::ParquetOptions;

TITAN_PLUGIN(plugin) {
  plugin.add<ParquetDataset>("parquet", "Documents from a column of Parquet files.")
      .option("field", &ParquetOptions::field, "Column of strings that holds the text")
      .option("tokens_field", &ParquetOptions::tokens_field,
              "Column of lists of integers to read instead: documents that are tokenised already")
      .option("skip_nulls", &ParquetOptions::skip_nulls,
              "Leave out rows without a value; otherwise they are errors");
}
