#!/usr/bin/env python3
"""The hashes of sdk/cmake/TitanSdkAbi.cmake: which change alters which hash."""

import os
import pathlib
import subprocess
import tempfile
import unittest

MODULE = pathlib.Path(os.environ["TITAN_SOURCE_DIR"]) / "sdk/cmake/TitanSdkAbi.cmake"
HEADERS = {
    "titan/value.h": "// a value; see x[1]\nstruct Value { int number = 0; };\n",
    "titan/tokenizer.h": "#include <titan/value.h>\nstruct Tokenizer { Value value; };\n",
    "titan/nn/linear.h": "#include <ATen/core/Tensor.h>\nstruct Linear {};\n",
    "titan/model.h": "#include <titan/nn/linear.h>\n#include <titan/value.h>\nstruct Model { Linear linear; };\n",
}


def run_module(headers):
    """The result of cmake for a folder of `headers`: its exit code, (hash of all, of the headers without torch, of each
    optional one...), errors."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in headers.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        script = pathlib.Path(folder) / "run.cmake"
        script.write_text(f"cmake_minimum_required(VERSION 3.25)\ninclude({MODULE})\n"
                          f"titan_sdk_abi({folder} all free optional {' '.join(sorted(headers))})\n"
                          'message(NOTICE "${all} ${free} ${optional}")\n')
        run = subprocess.run([os.environ.get("TITAN_CMAKE", "cmake"), "-P", script], capture_output=True, text=True)
        return run.returncode, tuple((run.stdout + run.stderr).split()), run.stderr


def hashes(added=None, **changed):
    """The hashes; `changed`: new text of headers, by the last part of their names; `added`: more headers."""
    code, found, said = run_module({name: changed.get(pathlib.Path(name).stem, text) for name, text in HEADERS.items()} | (added or {}))
    assert code == 0, said
    return found


OPTIONAL = {"titan/extra.h": "#include <titan/model.h>\nTITAN_OPTIONAL_HEADER(extra);\nstruct Extra { virtual ~Extra(); };\n"}


class SdkAbiTest(unittest.TestCase):
    def test_they_are_two(self):
        every, free = hashes()
        self.assertRegex(every, "^[0-9a-f]{16}$")
        self.assertRegex(free, "^[0-9a-f]{16}$")
        self.assertNotEqual(every, free)

    def test_comments_and_blanks_change_nothing(self):
        self.assertEqual(hashes(), hashes(value="struct  Value {\n  int number = 0;  // counted; from 0\n};\n"))

    def test_what_sees_torch_concerns_those_who_see_it(self):
        every, free = hashes()
        for name in ("linear", "model"):
            changed = hashes(**{name: HEADERS[f"titan/nn/{name}.h" if name == "linear" else f"titan/{name}.h"] + "struct More {};\n"})
            self.assertNotEqual(changed[0], every, name)
            self.assertEqual(changed[1], free, name)

    def test_what_sees_none_concerns_all(self):
        every, free = hashes()
        changed = hashes(tokenizer=HEADERS["titan/tokenizer.h"].replace("value;", "value, other;"))
        self.assertNotEqual(changed[0], every)
        self.assertNotEqual(changed[1], free)

    def test_a_new_optional_header_concerns_nobody(self):
        every, free = hashes()
        found = hashes(OPTIONAL)
        self.assertEqual(found[:2], (every, free))
        self.assertRegex(found[2], "^extra:[0-9a-f]{16}$")
        changed = hashes({"titan/extra.h": OPTIONAL["titan/extra.h"].replace("virtual", "virtual int more(); virtual")})
        self.assertEqual(changed[:2], (every, free))
        self.assertNotEqual(changed[2], found[2])

    def test_a_changed_base_header_concerns_everybody_beside_an_optional_one_too(self):
        every, free, extra = hashes(OPTIONAL)
        changed = hashes(OPTIONAL, value="struct Value { long number = 0; };\n")
        self.assertNotEqual(changed[0], every)
        self.assertNotEqual(changed[1], free)
        self.assertEqual(changed[2], extra)

    def test_no_other_header_includes_an_optional_one(self):
        code, _, said = run_module(HEADERS | OPTIONAL | {"titan/step.h": "#include <titan/extra.h>\n"})
        self.assertNotEqual(code, 0)
        self.assertIn("titan/step.h includes an optional header: #include <titan/extra.h>", " ".join(said.split()))


if __name__ == "__main__":
    unittest.main()
