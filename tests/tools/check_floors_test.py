#!/usr/bin/env python3
"""tools/check_floors.py on generated trees: a clean one, and one for each problem that it must find."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["TITAN_SOURCE_DIR"]) / "tools/check_floors.py"

FLOORS = """
floors = [["core/base"], ["core/data", "core/launch"], ["core/data/batches"], ["core"]]
torch = ["core/data/batches", "sdk/src/nn"]
shared_by_plugins = ["plugins/loggers/common"]
"""

CLEAN = {
    "tools/floors.toml": FLOORS,
    "sdk/include/titan/error.h": "#include <string>\n",
    "sdk/include/titan/nn/linear.h": "#include <ATen/core/Tensor.h>\n#include <titan/error.h>\n",
    "sdk/src/nn/linear.cpp": '#include <titan/nn/linear.h>\n#include "nn/philox.h"\n',
    "sdk/src/nn/philox.h": "#include <cstdint>\n",
    "core/base/text.h": "#include <titan/error.h>\n",
    "core/base/text.cpp": '#include "core/base/text.h"\n',
    "core/data/feed.h": '#include "core/base/text.h"\n',
    "core/data/feed.cpp": '#include "core/data/feed.h"\n#include "core/data/row.h"\n',
    "core/data/row.h": "#include <vector>\n",
    "core/data/batches/loader.h": '#include <titan/nn/linear.h>\n#include "core/data/feed.h"\n',
    "core/launch/plan.h": '#include "core/base/text.h"\n',
    "core/main.cpp": '#include "core/launch/plan.h"\n',
    "plugins/loggers/common/file.h": "#include <titan/error.h>\n",
    "plugins/loggers/jsonl/logger.h": '#include "../common/file.h"\n',
    "plugins/loggers/jsonl/plugin.cpp": '#include "logger.h"\nTITAN_PLUGIN(plugin) {}\n',
}


class CheckFloors(unittest.TestCase):
    def run_on(self, changes, *arguments):
        """The exit code, standard output and standard error for the clean tree with `changes` (None: no such file)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**CLEAN, **changes}.items():
                if text is None:
                    continue
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            done = subprocess.run([sys.executable, SCRIPT, "--root", folder, *arguments],
                                  capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def finds(self, changes, *lines):
        """The script fails, and its report is exactly `lines` and the number of problems."""
        code, _, report = self.run_on(changes)
        self.assertEqual(code, 1, report)
        problems = sum(not line.startswith("  ") for line in lines)
        self.assertEqual(report.splitlines(),
                         [*lines, f"{problems} problems; an include may only go to a lower floor, see tools/floors.toml"])

    def test_a_clean_tree_passes_and_its_graph_is_printed(self):
        code, graph, report = self.run_on({})
        self.assertEqual((code, report), (0, ""))
        self.assertEqual(graph.splitlines(), [
            "core -> core/launch (1)", "core/data/batches -> core/data (1)", "core/data -> core/base (1)",
            "core/launch -> core/base (1)", "plugins/loggers/jsonl -> plugins/loggers/common (1)"])

    def test_the_graph_is_printed_for_graphviz(self):
        code, graph, _ = self.run_on({}, "--dot")
        self.assertEqual(code, 0)
        self.assertIn('"core/data" -> "core/base" [label=1];', graph)
        self.assertTrue(graph.startswith("digraph") and graph.endswith("}\n"), graph)

    def test_an_arrow_up(self):
        self.finds({"core/base/text.cpp": '// text\n#include "core/data/row.h"\n'},
                   "arrow up: core/base/text.cpp:2 -> core/data/row.h",
                   "circle of folders: core/base, core/data",
                   "  core/base/text.cpp:2 -> core/data/row.h",
                   "  core/data/feed.h:1 -> core/base/text.h")

    def test_an_arrow_between_rooms_of_one_floor(self):
        self.finds({"core/launch/plan.h": '#include "core/data/row.h"\n'},
                   "arrow between rooms of one floor: core/launch/plan.h:1 -> core/data/row.h")

    def test_a_circle_of_files_that_closes_through_a_source(self):
        self.finds({"core/data/row.h": '#include "core/data/walk.h"\n',
                    "core/data/walk.h": "",
                    "core/data/walk.cpp": '#include "core/data/walk.h"\n\n#include "core/data/row.h"\n'},
                   "circle of files: core/data/row, core/data/walk",
                   "  core/data/row.h:1 -> core/data/walk.h",
                   "  core/data/walk.cpp:3 -> core/data/row.h")

    def test_a_circle_of_the_sdk_between_a_header_and_the_source_of_another(self):
        self.finds({"sdk/include/titan/nn/head.h": "#include <titan/nn/linear.h>\n",
                    "sdk/src/nn/linear.cpp": "#include <titan/nn/head.h>\n"},
                   "circle of files: sdk/nn/head, sdk/nn/linear",
                   "  sdk/include/titan/nn/head.h:1 -> sdk/include/titan/nn/linear.h",
                   "  sdk/src/nn/linear.cpp:1 -> sdk/include/titan/nn/head.h")

    def test_core_and_plugins_meet_through_the_sdk_only(self):
        self.finds({"core/main.cpp": '#include "plugins/loggers/common/file.h"\n',
                    "plugins/loggers/jsonl/plugin.cpp":
                        '#include "core/base/text.h"\n#include "nn/philox.h"\nTITAN_PLUGIN(plugin) {}\n'},
                   "core includes plugins: core/main.cpp:1 -> plugins/loggers/common/file.h",
                   "plugins includes core: plugins/loggers/jsonl/plugin.cpp:1 -> core/base/text.h",
                   "a plugin includes a private header of the sdk: "
                   "plugins/loggers/jsonl/plugin.cpp:2 -> sdk/src/nn/philox.h")

    def test_a_plugin_includes_another_only_where_that_is_shared(self):
        self.finds({"plugins/loggers/console/plugin.cpp":
                    '#include "../jsonl/logger.h"\n#include "../common/file.h"\nTITAN_PLUGIN(plugin) {}\n'},
                   "a plugin includes another: plugins/loggers/console/plugin.cpp:1 -> plugins/loggers/jsonl/logger.h")

    def test_an_include_of_what_is_not_there(self):
        self.finds({"core/data/row.h": '#include "core/runtime/clock.h"\n'},
                   "include of a missing file: core/data/row.h:1 -> core/runtime/clock.h")

    def test_torch_in_a_room_that_does_not_say_so(self):
        self.finds({"core/base/text.h": "#include <titan/nn/linear.h>\n", "core/launch/plan.h": "",
                    "core/data/feed.h": "", "core/data/row.h": "#include <c10/core/Device.h>\n"},
                   "torch in a room that is not listed under torch: core/base/text.cpp:1 -> core/base/text.h",
                   "torch in a room that is not listed under torch: core/base/text.h:1 -> sdk/include/titan/nn/linear.h",
                   "torch in a room that is not listed under torch: core/data/feed.cpp:2 -> core/data/row.h",
                   "torch in a room that is not listed under torch: core/data/row.h:1 -> c10/core/Device.h")

    def test_a_room_that_says_torch_and_sees_none(self):
        self.finds({"core/data/batches/loader.h": '#include "core/data/feed.h"\n'},
                   "listed under torch, but includes none of its headers: core/data/batches")

    def test_every_room_has_a_floor_and_every_floor_a_room(self):
        self.finds({"core/cellar/wine.h": "", "core/data/batches/loader.h": None},
                   "room without a floor: core/cellar",
                   "floor for a folder without files: core/data/batches",
                   "listed under torch, but includes none of its headers: core/data/batches")

    def test_every_plugin_has_its_door_in_the_same_place(self):
        self.finds({"plugins/loggers/console/console.cpp": "TITAN_PLUGIN(plugin) {}\n",
                    "plugins/loggers/lines/lines.h": "",
                    "plugins/loggers/common/all.cpp": "TITAN_PLUGIN(plugin) {}\n"},
                   "plugins/loggers/common: TITAN_PLUGIN is in plugins/loggers/common/all.cpp, it must be in no file",
                   "plugins/loggers/console: TITAN_PLUGIN is in plugins/loggers/console/console.cpp, "
                   "it must be in plugins/loggers/console/plugin.cpp",
                   "plugins/loggers/lines: TITAN_PLUGIN is in no file, it must be in plugins/loggers/lines/plugin.cpp")

    def test_a_data_file_that_cannot_be_read_is_an_error(self):
        for text in ("floors = [", "floors = []\n", None):
            code, _, report = self.run_on({"tools/floors.toml": text})
            self.assertEqual(code, 2)
            self.assertIn("cannot read tools/floors.toml", report)


if __name__ == "__main__":
    unittest.main()
