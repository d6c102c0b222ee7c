#include "model_layout.h"

namespace titan::tensor_parallel {
namespace {

bool is_below(const std::string& path, const std::string& above) {
  return path.starts_with(above + ".");
}

/// Collects the modules of one layer, parents before their children.
class Reader {
 public:
  explicit Reader(ModelLayout& layout) : layout_(layout) {}

  void visit(const std::string& path, nn::Module& module) {
    const bool is_in_region =
        !layout_.regions.empty() && is_below(path, layout_.regions.back().path);
    if (auto* attention = dynamic_cast<nn::AttentionLayer*>(&module)) {
      const bool is_region = module.region() == nn::Region::gathered_to_partial;
      (is_region || is_in_region ? layout_.attentions : layout_.cut_attentions)
          .push_back({path, attention});
    }
    if (auto* linear = dynamic_cast<nn::Linear*>(&module))
      add_linear(path, *linear, is_in_region);
    else if (auto* embedding = dynamic_cast<nn::Embedding*>(&module))
      add(layout_.embeddings, path, *embedding, is_in_region);
    else if (auto* head = dynamic_cast<nn::OutputHead*>(&module))
      add(layout_.heads, path, *head, is_in_region);
    else if (module.region() == nn::Region::gathered_to_partial)
      add_region(path, module, is_in_region);
  }

 private:
  template <class M>
  void add(std::vector<Found<M>>& to, const std::string& path, M& module, bool is_in_region) {
    if (is_in_region)
      layout_.misplaced.push_back({path, &module});
    else
      to.push_back({path, &module});
  }

  void add_region(const std::string& path, nn::Module& module, bool is_in_region) {
    if (is_in_region) {
      layout_.misplaced.push_back({path, &module});
      return;
    }
    layout_.regions.push_back({.path = path, .module = &module});
  }

  void add_linear(const std::string& path, nn::Linear& linear, bool is_in_region) {
    using enum nn::WeightLayout;
    if (linear.layout() == vocab || (!is_in_region && linear.layout() != replicated)) {
      layout_.unused_hints.push_back({path, &linear});
    } else if (is_in_region) {
      RegionLayout& region = layout_.regions.back();
      if (linear.layout() == column) region.columns.push_back(&linear);
      if (linear.layout() == row) region.rows.push_back(&linear);
      if (linear.layout() == replicated) region.has_whole_linears = true;
    }
  }

  ModelLayout& layout_;
};

}  // namespace

ModelLayout read_layout(ModelPart& part) {
  ModelLayout layout;
  Reader reader(layout);
  part.visit_modules(
      [&](const std::string& path, nn::Module& module) { reader.visit(path, module); });
  return layout;
}

}  // namespace titan::tensor_parallel
