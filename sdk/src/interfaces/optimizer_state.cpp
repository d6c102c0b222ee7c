#include <titan/optimizer_state.h>

#include <map>
#include <utility>

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <titan/error.h>
#include <titan/memory_use.h>

namespace titan {

OptimizerState::OptimizerState(std::string name, std::vector<Parameter*> parameters, StateForm form)
    : name_(std::move(name)),
      parameters_(std::move(parameters)),
      form_(form),
      tensors_(parameters_.size()) {}

at::ScalarType OptimizerState::dtype_of(const Parameter& parameter) const {
  return form_.dtype.value_or(form_.is_number ? at::kFloat : parameter.shard().scalar_type());
}

std::vector<int64_t> OptimizerState::sizes_of(const Parameter& parameter) const {
  if (form_.whole_shape) return form_.whole_shape(parameter);
  return form_.is_number ? std::vector<int64_t>() : parameter.shard().sizes().vec();
}

const at::Tensor& OptimizerState::operator[](size_t index) {
  at::Tensor& tensor = tensors_.at(index);
  if (tensor.defined()) return tensor;
  const MemoryUseScope use(MemoryUse::optimizer_states);
  const Parameter& parameter = *parameters_[index];
  const at::Tensor& shard = parameter.shard();
  const at::TensorOptions options =
      at::TensorOptions().device(shard.device()).dtype(dtype_of(parameter));
  const std::vector<int64_t> sizes = sizes_of(parameter);
  tensor = form_.initial == 0 ? at::zeros(sizes, options) : at::full(sizes, form_.initial, options);
  return tensor;
}

void OptimizerState::check_form(size_t index) const {
  const at::Tensor& tensor = tensors_.at(index);
  if (!tensor.defined()) return;
  const Parameter& parameter = *parameters_[index];
  const std::vector<int64_t> sizes = sizes_of(parameter);
  const at::ScalarType dtype = dtype_of(parameter);
  TITAN_CHECK(tensor.sizes() == at::IntArrayRef(sizes) && tensor.scalar_type() == dtype, plugin,
              "the optimizer's state '", name_, "' of '", parameter.name(),
              "' was declared with shape ", at::IntArrayRef(sizes), " and type ", dtype,
              ", but has ", tensor.sizes(), " and ", tensor.scalar_type(),
              " now; an optimizer fills its states ", "in place and leaves their shape alone");
}

StatefulOptimizer::~StatefulOptimizer() = default;

OptimizerState& StatefulOptimizer::add_state(std::string name,
                                             const std::vector<Parameter*>& parameters,
                                             StateForm form) {
  TITAN_CHECK(!is_sealed_, plugin, "the optimizer declares its state '", name,
              "' after its construction: a run that resumes would not find it; call add_state in "
              "the constructor");
  TITAN_CHECK(!name.empty() && name.find('.') == std::string::npos, plugin,
              "an optimizer's state cannot be called '", name,
              "': a name is not empty and holds no dot, which divides it from the parameter's");
  for (const OptimizerState* known : states_) {
    if (known->name() != name) continue;
    for (const Parameter* other : known->parameters())
      for (const Parameter* parameter : parameters)
        TITAN_CHECK(parameter != other, plugin, "the optimizer declares its state '", name,
                    "' of '", parameter->name(), "' twice; give the second another name");
  }
  own_.push_back(std::make_unique<OptimizerState>(std::move(name), parameters, form));
  states_.push_back(own_.back().get());
  return *own_.back();
}

void StatefulOptimizer::add_states_of(StatefulOptimizer& member) {
  states_.insert(states_.end(), member.states_.begin(), member.states_.end());
}

void StatefulOptimizer::visit_state(const StateVisitor& visit) {
  struct Place {
    OptimizerState* state;
    size_t index;
  };
  std::vector<std::vector<Place>> by_parameter;
  std::map<const Parameter*, size_t> rows;
  for (OptimizerState* state : states_)
    for (size_t i = 0; i < state->parameters().size(); ++i) {
      const auto [row, is_new] = rows.emplace(state->parameters()[i], by_parameter.size());
      if (is_new) by_parameter.emplace_back();
      by_parameter[row->second].push_back({state, i});
    }
  for (const std::vector<Place>& places : by_parameter)
    for (const auto& [state, index] : places) {
      state->check_form(index);
      visit(*state->parameters()[index], *state, (*state)[index]);
    }
}

}  // namespace titan
