// Registers the dataset `synthetic`.
#include <titan/plugin.h>

#include "synthetic_dataset.h"

using titan::datasets::SyntheticDataset;
using titan::datasets::SyntheticOptions;
using titan::datasets::SyntheticTask;

TITAN_PLUGIN(plugin) {
  plugin.add<SyntheticDataset>("synthetic", "Random tokens whose least possible loss is known.")
      .option("task", &SyntheticOptions::task,
              "What there is to learn: a transition table, copying, or nothing",
              {{"markov", SyntheticTask::markov},
               {"copy", SyntheticTask::copy},
               {"uniform", SyntheticTask::uniform}})
      .option("vocab_size", &SyntheticOptions::vocab_size, "Ids are below this")
      .at_least(2)
      .option("document_length", &SyntheticOptions::document_length, "Tokens per document")
      .at_least(1)
      .option("num_documents", &SyntheticOptions::num_documents, "Documents per epoch")
      .at_least(1)
      .option("first_document", &SyntheticOptions::first_document,
              "Number of the first document; a validation set of the same task starts after the "
              "training set")
      .at_least(0)
      .option("branching", &SyntheticOptions::branching, "markov: how many tokens can follow one")
      .at_least(1);
}
