// Flavors with one defect each, for the conformance kit. Each is written from the one sentence of
// its test.
#include <titan/plugin.h>

TITAN_PLUGIN(plugin) {
  plugin.add_flavor("llama3", "wrong_help", "",
                    {{"dim", 128}, {"n_layers", 2}, {"n_heads", 4}, {"vocab_size", 2048}});
  plugin.add_flavor("qwen3", "wrong_presets", "sets nothing", {});
  plugin.add_flavor("mixtral", "wrong_dry_run", "4 heads over a width of 30",
                    {{"dim", 30}, {"n_heads", 4}});
  plugin.add_flavor("llama2", "wrong_right", "2 layers of width 128",
                    {{"dim", 128}, {"n_layers", 2}, {"n_heads", 4}, {"vocab_size", 2048}});
}
