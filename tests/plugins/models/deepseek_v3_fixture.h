// Small models of the plugin deepseek_v3, for its tests.
#pragma once

#include <initializer_list>
#include <memory>

#include <titan/hf_exchange.h>
#include <titan/model.h>

#include "tests/plugins/registry.h"

namespace titan::testing {

/// Like DeepSeek-V2-Lite, except its size.
inline std::unique_ptr<Model> tiny_deepseek(std::initializer_list<Value::Member> changed = {},
                                            int64_t seq_len = 64) {
  Value options = Value::map({{"dim", 64},
                              {"inter_dim", 96},
                              {"moe_inter_dim", 24},
                              {"n_layers", 3},
                              {"n_heads", 4},
                              {"vocab_size", 256},
                              {"kv_lora_rank", 32},
                              {"qk_nope_head_dim", 16},
                              {"qk_rope_head_dim", 8},
                              {"v_head_dim", 20},
                              {"num_experts", 8},
                              {"top_k", 2},
                              {"load_balance_coeff", 1e-3}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("deepseek_v3", options, {.seq_len = seq_len});
}

/// Like DeepSeek-V3, except its size.
inline std::unique_ptr<Model> tiny_v3(std::initializer_list<Value::Member> changed = {}) {
  Value options = Value::map({{"dim", 64},
                              {"n_layers", 3},
                              {"n_heads", 4},
                              {"q_lora_rank", 24},
                              {"kv_lora_rank", 32},
                              {"vocab_size", 256},
                              {"moe_inter_dim", 24},
                              {"num_experts", 8},
                              {"num_shared_experts", 1},
                              {"top_k", 2},
                              {"score_func", "sigmoid"},
                              {"route_norm", true},
                              {"route_scale", 2.5},
                              {"num_expert_groups", 4},
                              {"num_limited_groups", 2},
                              {"norm_eps", 1e-6},
                              {"yarn", "always"},
                              {"load_balance_coeff", 1e-3}});
  for (const auto& [name, value] : changed) options[name] = value;
  return create<Model>("deepseek_v3", options, {.seq_len = 64});
}

inline const HfExchange& names_and_config(const Model& model) {
  return dynamic_cast<const HfExchange&>(model);
}

}  // namespace titan::testing
