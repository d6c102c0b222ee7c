// Weights that several pipeline ranks hold (a head tied to the embedding): their gradients are
// summed over these ranks, so the copies stay equal.
#pragma once

#include <map>
#include <vector>

#include <titan/device.h>
#include <titan/dist/group.h>
#include <titan/model.h>

namespace titan::pipeline {

/// Which pipeline ranks hold each parameter of a model: ascending.
using Holders = std::map<nn::Parameter*, std::vector<int>>;

class TiedGradients {
 public:
  /// Marks this rank's copies: the first holder has the original. `holders`: of the whole model.
  TiedGradients(const ModelPart& part, const Holders& holders, const dist::Group& group);

  /// Collective over the holders, after gradients are complete on each. The sum runs in the order
  /// of ranks, so all holders come to the same bits. `device`: where the group communicates.
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
