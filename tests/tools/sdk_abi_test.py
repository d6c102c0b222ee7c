#!/usr/bin/env python3
"""The two hashes of sdk/cmake/TitanSdkAbi.cmake: what changes one, both or none of them."""

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


def hashes(**changed):
    """(of all, of what sees no torch); `changed`: other text of headers, by the last part of their names."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in HEADERS.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(changed.get(path.stem, text))
        script = pathlib.Path(folder) / "run.cmake"
        script.write_text(f"cmake_minimum_required(VERSION 3.25)\ninclude({MODULE})\ntitan_sdk_abi({folder} all free {' '.join(sorted(HEADERS))})\n"
                          'message(NOTICE "${all} ${free}")\n')
        run = subprocess.run([os.environ.get("TITAN_CMAKE", "cmake"), "-P", script], capture_output=True, text=True, check=True)
        return tuple((run.stdout + run.stderr).split())


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


if __name__ == "__main__":
    unittest.main()
