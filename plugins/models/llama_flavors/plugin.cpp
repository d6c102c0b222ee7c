// Registers flavors only: further sizes of a model that another plugin implements, Llama 2 and
// Llama 3.2.
#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  using titan::Value;

  plugin.add_flavor("llama2", "7B", "Llama 2 7B",
                    {{"dim", 4096}, {"n_layers", 32}, {"n_heads", 32}, {"multiple_of", 256}});
  plugin.add_flavor("llama2", "13B", "Llama 2 13B",
                    {{"dim", 5120}, {"n_layers", 40}, {"n_heads", 40}, {"multiple_of", 256}});
  plugin.add_flavor("llama2", "34B", "Llama 2 34B",
                    {{"dim", 8192},
                     {"n_layers", 48},
                     {"n_heads", 64},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.0},
                     {"multiple_of", 256}});
  plugin.add_flavor("llama2", "70B", "Llama 2 70B",
                    {{"dim", 8192},
                     {"n_layers", 80},
                     {"n_heads", 64},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.3},
                     {"multiple_of", 4096}});

  const Value scaling_32 = Value::map({{"scaling_factor", 32.0}});
  plugin.add_flavor("llama3", "1B", "Llama 3.2 1B",
                    {{"dim", 2048},
                     {"n_layers", 16},
                     {"n_heads", 32},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.5},
                     {"multiple_of", 256},
                     {"enable_weight_tying", true},
                     {"rope_scaling", scaling_32}});
  plugin.add_flavor("llama3", "3B", "Llama 3.2 3B",
                    {{"dim", 3072},
                     {"n_layers", 28},
                     {"n_heads", 24},
                     {"n_kv_heads", 8},
                     {"ffn_dim_multiplier", 1.0},
                     {"multiple_of", 256},
                     {"enable_weight_tying", true},
                     {"rope_scaling", scaling_32}});
}
