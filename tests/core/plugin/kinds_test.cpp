#include "core/plugin/kinds.h"

#include <gtest/gtest.h>

#include "core/plugin/catalog.h"

namespace titan::core {
namespace {

TEST(Kinds, AreTheOnesThatTheCatalogKnows) {
  ASSERT_EQ(kind_table().size(), plugin_kinds().size());
  for (size_t i = 0; i < plugin_kinds().size(); ++i) {
    EXPECT_EQ(kind_table()[i].name, plugin_kinds()[i]);
    ASSERT_NE(find_kind(plugin_kinds()[i]), nullptr);
    EXPECT_EQ(find_kind(plugin_kinds()[i]), &kind_table()[i]);
  }
  EXPECT_EQ(find_kind("optimiser"), nullptr);
  EXPECT_EQ(find_kind(""), nullptr);
}

TEST(Kinds, SayWhichSectionsAreNamed) {
  for (const char* kind : {"dataset", "logger", "converter", "parallelism", "pipeline_schedule"})
    EXPECT_TRUE(has_named_sections(kind)) << kind;
  for (const char* kind : {"model", "optimizer", "device", "flavor", "checkpoint"})
    EXPECT_FALSE(has_named_sections(kind)) << kind;
}

}  // namespace
}  // namespace titan::core
