// A size of a model that another plugin implements: llama3, flavor @FULL_NAME@. Select it with [model] flavor =
// "@FULL_NAME@". What can be preset: titan describe model llama3.
#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  plugin.add_flavor("llama3", "@FULL_NAME@", "2 layers of width 128",
                    {{"dim", 128}, {"n_layers", 2}, {"n_heads", 4}, {"vocab_size", 2048}});
}
