#include <titan/hf_exchange.h>

namespace titan {

HfExchange::~HfExchange() = default;

std::optional<Value> HfExchange::options_for(const Value&) const {
  return std::nullopt;
}

std::vector<std::string> HfExchange::ignored_names(Naming) const {
  return {};
}

std::vector<HfExchange::NameRule> stack_rules(const std::string& ours, int64_t count,
                                              const std::function<std::string(int64_t)>& theirs,
                                              const HfExchange::NameRule& base) {
  std::vector<HfExchange::NameRule> rules;
  for (int64_t i = 0; i < count; ++i) {
    HfExchange::NameRule& rule = rules.emplace_back(base);
    rule.ours = ours;
    rule.theirs = theirs(i);
    rule.of_ours.push_back(TensorCut::at(0, i));
  }
  return rules;
}

}  // namespace titan
