// Weights that several pipeline ranks hold (a head tied to the embedding). Sums their gradients
// over these ranks, so that the copies stay equal. Used by Pipeline.
#pragma once

#include <map>
#include <vector>

#include <titan/device.h>
#include <titan/dist/group.h>
#include <titan/model.h>

namespace titan::pipeline {

/// For each parameter of a model, the pipeline ranks that hold it, ascending.
using Holders = std::map<nn::Parameter*, std::vector<int>>;

class TiedGradients {
 public:
  /// Marks this rank's copies; the first holder has the original. `holders`: of the whole model.
  TiedGradients(const ModelPart& part, const Holders& holders, const dist::Group& group);

  /// Collective over the holders, called after gradients are complete on each. Adds in rank order,
  /// so all holders get the same bits. `device`: where the group communicates.
  void sum(c10::Device device) const;

 private:
  struct Tied {
    nn::Parameter* parameter;
    std::vector<int> holders;
  };
  std::vector<Tied> tied_;  // in the model's order, the same on all holders
  dist::Group group_;
};

}  // namespace titan::pipeline
