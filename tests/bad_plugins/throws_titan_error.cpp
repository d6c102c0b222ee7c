// The sdk's own error when an option is declared twice.
#include "constant.h"

TITAN_PLUGIN(plugin) {
  plugin.add<Constant>("Constant", "The same factor at every step.")
      .option("value", &ConstantOptions::value, "Factor")
      .option("value", &ConstantOptions::value, "Factor once more");
}
