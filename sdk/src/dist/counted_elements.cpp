#include <titan/counted_elements.h>

#include <string>
#include <vector>

#include <titan/nn/cuts.h>

namespace titan {

bool counts_elements(const nn::Parameter& parameter, const dist::Mesh& mesh) {
  if (parameter.is_copy()) return false;
  std::vector<std::string> differing = nn::cut_groups(parameter);
  differing.push_back("pp");  // its ranks hold other parameters
  return mesh.is_representative_over(differing);
}

}  // namespace titan
