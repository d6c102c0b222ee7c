// Every flavor of the llama plugins against the published sizes of the models and the two
// conventions of counting FLOPs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "core/plugin/registry.h"
#include "tests/plugins/error_of.h"
#include "tests/plugins/registry.h"

namespace titan {
namespace {

using titan::testing::create;
using titan::testing::plugin_registry;

struct Published {
  const char* model;
  const char* flavor;
  int64_t num_parameters;
  int decimals;                         // of the numbers below
  std::vector<const char*> full, half;  // GFLOP per token at 2048, 4096, 8192 (and 131072)
  int64_t max_position;
};

const Published kPublished[] = {
    {"llama2",
     "7B",
     6738415616,
     3,
     {"42.865", "46.087", "52.529"},
     {"41.255", "42.865", "46.087"},
     4096},
    {"llama2",
     "13B",
     13015864320,
     3,
     {"82.145", "87.178", "97.245"},
     {"79.629", "82.145", "87.178"},
     4096},
    {"llama2",
     "34B",
     33743970304,
     3,
     {"210.555", "220.218", "239.546"},
     {"205.723", "210.555", "220.218"},
     4096},
    {"llama2",
     "70B",
     68976648192,
     3,
     {"428.393", "444.499", "476.712"},
     {"420.340", "428.393", "444.499"},
     4096},
    {"llama3",
     "debugmodel",
     6163712,
     4,
     {"0.0716", "0.1093", "0.1848"},
     {"0.0527", "0.0716", "0.1093"},
     131072},
    {"llama3",
     "1B",
     1235814400,
     3,
     {"8.220", "9.025", "10.636"},
     {"7.818", "8.220", "9.025"},
     131072},
    {"llama3",
     "3B",
     3212749824,
     3,
     {"21.390", "23.504", "27.732"},
     {"20.333", "21.390", "23.504"},
     131072},
    {"llama3",
     "8B",
     8030261248,
     3,
     {"48.251", "51.472", "57.914", "251.188"},
     {"46.640", "48.251", "51.472", "148.109"},
     131072},
    {"llama3",
     "3.0-8B",
     8030261248,
     3,
     {"48.251", "51.472", "57.914"},
     {"46.640", "48.251", "51.472"},
     8192},
    {"llama3",
     "70B",
     70553706496,
     3,
     {"433.124", "449.230", "481.443", "1447.810"},
     {"425.071", "433.124", "449.230", "932.414"},
     131072},
    {"llama3",
     "3.0-70B",
     70553706496,
     3,
     {"433.124", "449.230", "481.443"},
     {"425.071", "433.124", "449.230"},
     8192},
    {"llama3",
     "405B",
     405853388800,
     3,
     {"2473.247", "2523.981", "2625.449", "5669.508"},
     {"2447.879", "2473.247", "2523.981", "4046.010"},
     131072},
};

std::unique_ptr<Model> make(const Published& row) {
  return create<Model>(row.model, plugin_registry().flavor(row.model, row.flavor).preset,
                       {.seq_len = 2048});
}

std::string giga(double flops, int decimals) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", decimals, flops / 1e9);
  return text;
}

/// A flavor of the table that attends within documents.
bool is_attention_variant(const std::string& name) {
  return name.find("_flex") != std::string::npos || name.find("_varlen") != std::string::npos;
}

TEST(LlamaFlavors, AttendWithinDocumentsUnderTheNamesOfTheReference) {
  for (const char* flavor :
       {"debugmodel_flex_attn", "debugmodel_varlen_attn", "8B_flex", "8B_varlen"})
    EXPECT_TRUE(make({.model = "llama3", .flavor = flavor})->isolates_documents()) << flavor;
  EXPECT_FALSE(make({.model = "llama3", .flavor = "8B"})->isolates_documents());
}

TEST(LlamaFlavors, AreAllInTheTable) {
  const core::Catalog catalog({TITAN_PLUGIN_DIR});
  std::vector<std::string> expected;
  for (const Published& row : kPublished)
    expected.push_back(std::string(row.model) + "/" + row.flavor);
  std::vector<std::string> found;
  for (const std::string& name : catalog.names("flavor"))
    if ((name.starts_with("llama2/") || name.starts_with("llama3/")) && !is_attention_variant(name))
      found.push_back(name);
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(found, expected);
}

TEST(LlamaFlavors, HaveThePublishedNumberOfParameters) {
  for (const Published& row : kPublished) {
    const auto model = make(row);
    const auto begin = std::chrono::steady_clock::now();
    ModelPart part(model->build());
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    EXPECT_EQ(part.num_parameters(), row.num_parameters) << row.model << "/" << row.flavor;
    for (const nn::Parameter* p : part.parameters()) EXPECT_TRUE(p->value().is_meta()) << p->name();
    std::printf("  %s/%s: %zu tensors on meta in %.1f ms\n", row.model, row.flavor,
                part.parameters().size(), took.count());
  }
}

TEST(LlamaFlavors, HaveThePublishedFlops) {
  const int64_t kLengths[] = {2048, 4096, 8192, 131072};
  for (const Published& row : kPublished) {
    const auto model = make(row);
    for (size_t i = 0; i < row.full.size(); ++i) {
      const Flops flops = model->flops_per_token(kLengths[i]);
      EXPECT_EQ(giga(flops.full_attention, row.decimals), row.full[i])
          << row.model << "/" << row.flavor;
      EXPECT_EQ(giga(flops.causal_half, row.decimals), row.half[i])
          << row.model << "/" << row.flavor;
    }
  }
}

TEST(LlamaFlavors, TellHuggingFaceTheirLongestSequence) {
  for (const Published& row : kPublished) {
    const auto model = make(row);
    const Value config = dynamic_cast<const HfExchange&>(*model).hf_config();
    EXPECT_EQ(config.at("max_position_embeddings").as_integer(), row.max_position)
        << row.model << "/" << row.flavor;
  }
}

}  // namespace
}  // namespace titan
