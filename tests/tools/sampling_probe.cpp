// Prints the processed logits of sdk/src/generation/sampler, for tests/referee/sampling_referee.py.
//
//   sampling_probe < cases.json
//
// Standard input is a list of {"logits": [...], "seen": [id, ...], "options": {...}}; each gives
// the list of processed logits, all as one JSON list on standard output. Logits are the bits of
// floats as integers, so that nothing is rounded on the way. A temperature of 0 means none.
#include <bit>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <ATen/ops/tensor.h>
#include <titan/generation/sampler.h>
#include <titan/value.h>

namespace {

using titan::Value;

Value processed(const Value& test) {
  std::vector<float> logits;
  for (const Value& bits : test.at("logits").as_list())
    logits.push_back(std::bit_cast<float>(static_cast<int32_t>(bits.as_integer())));
  std::vector<int32_t> seen;
  for (const Value& id : test.at("seen").as_list())
    seen.push_back(static_cast<int32_t>(id.as_integer()));
  const Value& given = test.at("options");
  titan::SamplingOptions options{.top_k = given.at("top_k").as_integer(),
                                 .top_p = given.at("top_p").as_number(),
                                 .min_p = given.at("min_p").as_number(),
                                 .repetition_penalty = given.at("repetition_penalty").as_number()};
  const double temperature = given.at("temperature").as_number();
  if (temperature > 0) options.temperature = temperature;
  const at::Tensor kept = titan::processed_logits(at::tensor(logits), seen, options);
  Value list = Value::list();
  for (int64_t i = 0; i < kept.numel(); ++i)
    list.as_list().emplace_back(int64_t{std::bit_cast<int32_t>(kept.const_data_ptr<float>()[i])});
  return list;
}

}  // namespace

int main() {
  try {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    const Value tests = titan::parse_json(text);
    Value results = Value::list();
    for (const Value& test : tests.as_list()) results.as_list().push_back(processed(test));
    std::cout << titan::to_json(results) << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
