#include <titan/local_gradients.h>

namespace titan {

LocalGradients::LocalGradients(const std::vector<nn::Parameter*>& parameters) {
  for (nn::Parameter* parameter : parameters)
    if (!parameter->is_frozen() && parameter->owner().empty())
      parameter->on_gradient([is_last = is_last_](nn::Parameter& complete) {
        if (*is_last) complete.complete_gradient();
      });
}

LocalGradients::~LocalGradients() = default;

}  // namespace titan
