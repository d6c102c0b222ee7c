// The modules of a model part that tensor parallelism can cut, found by their layout hints. No
// model is known by name.
#pragma once

#include <string>
#include <vector>

#include <titan/model.h>
#include <titan/nn/attention_layer.h>
#include <titan/nn/embedding.h>
#include <titan/nn/head.h>
#include <titan/nn/linear.h>

namespace titan::tensor_parallel {

/// A module and its path in the model: "layers.0.attention".
template <class M>
struct Found {
  std::string path;
  M* module;
};

/// A module of Region::gathered_to_partial and the projections below it.
struct RegionLayout {
  std::string path;
  nn::Module* module;
  std::vector<nn::Linear*> columns;
  std::vector<nn::Linear*> rows;
  bool has_whole_linears = false;  ///< projections that no rank cuts
};

/// Pointers live as long as the part.
struct ModelLayout {
  std::vector<Found<nn::Embedding>> embeddings;
  std::vector<Found<nn::OutputHead>> heads;
  std::vector<Found<nn::AttentionLayer>> attentions;      ///< are regions, or within one
  std::vector<Found<nn::AttentionLayer>> cut_attentions;  ///< outside: the sequence may be cut
  std::vector<RegionLayout> regions;
  std::vector<Found<nn::Linear>> unused_hints;  ///< have hints but no region that communicates
  std::vector<Found<nn::Module>> misplaced;     ///< regions, embeddings and heads within a region
};

ModelLayout read_layout(ModelPart& part);

}  // namespace titan::tensor_parallel
