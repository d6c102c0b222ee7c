// Registers the dataset `tokens`.
#include <titan/plugin.h>

#include "plugins/datasets/tokens/tokens_dataset.h"

using titan::datasets::TokenFormat;
using titan::datasets::TokensDataset;
using titan::datasets::TokensOptions;

TITAN_PLUGIN(plugin) {
  plugin
      .add<TokensDataset>("tokens",
                          "Files of token ids: llm.c, nanoGPT, OLMo, datatrove, bare integers.")
      .option("format", &TokensOptions::format,
              "Format of the files; auto = by magic number and suffix, raw only with a dtype",
              {{"auto", TokenFormat::automatic},
               {"llmc", TokenFormat::llmc},
               {"raw", TokenFormat::raw},
               {"datatrove", TokenFormat::datatrove}})
      .option("dtype", &TokensOptions::dtype,
              "Type of the ids of a raw file; unset = uint16 if format is \"raw\"")
      .one_of({"uint8", "uint16", "int32", "uint32", "int64"})
      .option("document_start", &TokensOptions::document_start,
              "Id that each document starts with (llm.c: 50256 of GPT-2, 128000 of Llama 3)")
      .at_least(0)
      .option("document_end", &TokensOptions::document_end, "Id that each document ends with")
      .at_least(0)
      .option("chunk_tokens", &TokensOptions::chunk_tokens,
              "Tokens per document if no marks or index separate documents")
      .at_least(1);
}
