#!/usr/bin/env python3
"""sdk/api.txt is the interface of the sdk (tools/sdk_api.py): the stored text fits the headers and the built libraries, and what
changes it. The parser is compared with nm: whatever a library exports, a header declares."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"])
LIBRARIES = pathlib.Path(os.environ["TITAN_LIBRARIES"])
TOOL = SOURCE / "tools/sdk_api.py"
sys.path.insert(0, str(TOOL.parent))
import sdk_api  # noqa: E402

HEADER = """// A header.
#pragma once
#include <string>
#define TITAN_SUM(a, b) \\
  ((a) + (b))
namespace titan {
namespace detail { void hidden(); }
/// A class; see x(y).
class TITAN_API Thing : public Base<int> {
 public:
  explicit Thing(int size, std::string name = "a;b{") : size_{size}, name_(std::move(name)) { check(); }
  virtual ~Thing();
  bool operator==(const Thing& other) const { return size_ == other.size_; }
  template <class T, int (*f)(T)> struct Inner { T value = {}; };

 protected:
  virtual int run(const std::vector<int>& numbers) = 0;

 private:
  void check() const;
  virtual void step() {}
  int size_ = 1'000;
  std::string name_;
};
enum class Kind : int { one, two };
inline int twice(int x) { return x ? 2 * x : 0; }
}  // namespace titan
"""
EXPECTED = """#define TITAN_SUM(a, b) ((a) + (b))
titan | class TITAN_API Thing : public Base<int>
titan::Thing | explicit Thing(int size, std::string name = "a;b{")
titan::Thing | virtual ~Thing()
titan::Thing | bool operator==(const Thing& other) const
titan::Thing | template <class T, int (*f)(T)> struct Inner
titan::Thing::Inner | T value = {}
titan::Thing | protected: virtual int run(const std::vector<int>& numbers) = 0
titan::Thing | private: virtual void step()
titan::Thing | private: int size_ = 1'000
titan::Thing | private: std::string name_
titan | enum class Kind : int{one, two}
titan | inline int twice(int x)""".splitlines()


class SdkApiTest(unittest.TestCase):
    def run_tool(self, *arguments, root=SOURCE):
        return subprocess.run([sys.executable, TOOL, "--root", root, "--libraries", LIBRARIES, *arguments], capture_output=True, text=True)

    def test_the_stored_text_is_the_interface(self):
        run = self.run_tool()
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)

    def test_a_stored_text_that_was_edited_was_edited_with_the_changelog(self):
        git = ["git", "-C", str(SOURCE), "diff", "--quiet", "HEAD", "--"]
        if subprocess.run([*git, "sdk/api.txt"], capture_output=True).returncode == 1:
            self.assertEqual(subprocess.run([*git, "sdk/CHANGELOG.md"], capture_output=True).returncode, 1,
                             "sdk/api.txt was changed without a line in sdk/CHANGELOG.md")

    def test_declarations_are_found(self):
        self.assertEqual(sdk_api.api_of_header(HEADER), EXPECTED)

    def test_what_changes_the_interface_and_what_does_not(self):
        for old, new in (("/// A class; see x(y).", "// other {"), ("  void check() const;\n", ""), ("return x ? 2 * x : 0", "return 2 * x"),
                         ("void hidden();", "int hidden(int);"), ("explicit Thing(int size,", "explicit Thing(\n      int size,")):
            self.assertEqual(sdk_api.api_of_header(HEADER.replace(old, new)), EXPECTED, old)
        for old, new in (("virtual void step() {}\n", ""), ("int size_ =", "long size_ ="), ("= 0;", ";"), ("one, two", "two, one"),
                         ("twice(int x)", "twice(long x)"), ("((a) + (b))", "((a) - (b))"), ("class TITAN_API", "class"),
                         (" protected:", " public:"), ("name = \"a;b{\"", "name = \"\"")):
            self.assertNotEqual(sdk_api.api_of_header(HEADER.replace(old, new, 1)), EXPECTED, old)

    def test_whatever_a_library_exports_a_header_declares(self):
        declared = set()
        headers = [*(SOURCE / "sdk/include").rglob("*.h"), *(SOURCE / "sdk/src").rglob("*.h")]  # the latter for the sdk's own tests
        for header in headers:
            _, code = sdk_api.split_macros(sdk_api.without_comments(header.read_text()))
            for scope, _, text in sdk_api.Reader(code).declarations():
                declared.update(text.replace("(", " ").replace("*", " ").replace("&", " ").split())
                declared.update(part for name in scope for part in name.split("::"))
        for library in sdk_api.LIBRARIES:
            names = [name for name in sdk_api.symbols_of(LIBRARIES / library) if not name.startswith("vtable") and "operator" not in name]
            self.assertGreater(len(names), 300)
            missing = [name for name in names if name.split("(")[0].split("[")[0].rpartition("::")[2] not in declared]
            self.assertEqual(missing, [])

    def test_a_change_is_written_only_with_a_line_in_the_changelog(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            header, changelog = root / "sdk/include/titan/thing.h", root / "sdk/CHANGELOG.md"
            header.parent.mkdir(parents=True)
            header.write_text(HEADER)
            changelog.write_text("# Changes\n")
            self.assertEqual(self.run_tool("--write", root=root).returncode, 0)
            self.assertEqual(self.run_tool(root=root).returncode, 0)
            header.write_text(HEADER.replace("twice", "thrice"))
            run = self.run_tool(root=root)
            self.assertEqual(run.returncode, 1)
            for part in ("-titan | inline int twice(int x)", "+titan | inline int thrice(int x)", "tools/sdk_api.py --write", "sdk/CHANGELOG.md"):
                self.assertIn(part, run.stdout)
            run = self.run_tool("--write", root=root)
            self.assertEqual(run.returncode, 1)
            self.assertIn("add a line on this change first", run.stdout)
            changelog.write_text("# Changes\n\ntwice is thrice now\n")
            self.assertEqual(self.run_tool("--write", root=root).returncode, 0)
            self.assertEqual(self.run_tool(root=root).returncode, 0)


if __name__ == "__main__":
    unittest.main()
