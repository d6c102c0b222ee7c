// Flavor @FULL_NAME@ of the model llama3, which another plugin implements.
// Select it with [model] flavor = "@FULL_NAME@".
// A flavor sets options of the model; `titan describe model llama3` lists them.
#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  plugin.add_flavor("llama3", "@FULL_NAME@", "2 layers of width 128",
                    {{"dim", 128}, {"n_layers", 2}, {"n_heads", 4}, {"vocab_size", 2048}});
}
