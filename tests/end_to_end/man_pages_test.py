"""The manual pages with mandoc and man-db, which we did not write. Skipped where one of them is missing."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import Case, main, titan

MISSING = [name for name in ("mandoc", "man") if not shutil.which(name)]


@unittest.skipIf(MISSING, f"not installed: {' '.join(MISSING)}; apt-get install mandoc man-db")
class ManPagesTest(Case):
    def setUp(self):
        super().setUp()
        run = titan("__man", self.out, TITAN_PLUGIN_PATH=os.environ["TITAN_STRANGER"], SOURCE_DATE_EPOCH="1795824000")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.pages = sorted(self.out.rglob("*.[15]"))

    def test_linters_find_nothing(self):
        mandoc = subprocess.run(["mandoc", "-Tlint", "-W", "warning", *self.pages], capture_output=True, text=True)
        self.assertEqual((mandoc.returncode, mandoc.stdout + mandoc.stderr), (0, ""))
        for page in self.pages:
            man = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], capture_output=True, text=True,
                                 env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8", "MANPAGER": "cat"})
            self.assertEqual((man.returncode, man.stderr), (0, ""), page)
            self.assertGreater(len(man.stdout), 300, page)
        self.write("wrong.1", self.pages[0].read_text().replace(".SH", ".SHH", 1))
        wrong = subprocess.run(["mandoc", "-Tlint", "-W", "warning", self.folder / "wrong.1"], capture_output=True)
        self.assertNotEqual(wrong.returncode, 0)  # the linter does look

    def text(self, name):
        shown = subprocess.run(["mandoc", "-Tutf8", "-O", "width=200", self.out / name], capture_output=True, text=True).stdout
        return re.sub(r".\x08", "", shown)

    def test_every_command_flag_and_key_has_its_place(self):
        listed = re.findall(r"^  ([a-z-]+) {2,}(\S.*)$", titan("--help").stdout, re.M)
        self.assertEqual({page.stem for page in self.pages},
                         {"titan", "titan-config", "titan-acme-greet", *(f"titan-{name}" for name, _ in listed)})
        main_page = self.text("man1/titan.1")
        for name, summary in listed:
            self.assert_holds(main_page, f"titan-{name}(1)")
            page = self.text(f"man1/titan-{name}.1")
            self.assert_holds(page, f"titan-{name} - {summary}" if len(summary) < 90 else f"titan-{name} - ")
            if name not in ("train", "estimate"):
                for flag in re.findall(r"^  (?:-\w \[ )?(--[a-z-]+)", titan("help", name).stdout, re.M):
                    self.assert_holds(page, flag)
        keys = {key.replace("[no_]", "").rpartition(".")[2] for key in
                re.findall(r"^  --([a-z_0-9.\[\]]+)$", titan("train", "--help", "all").stdout, re.M)}
        self.assertGreater(len(keys), 150)
        config = self.text("man5/titan-config.5")
        self.assertEqual([key for key in keys if not re.search(rf"(?m)^ +(?:\w+\.)*{key}(?:$| )", config)], [])
        self.assert_holds(self.text("man1/titan-acme-greet.1"), "greet a reader: 'hello' -- .so it goes", "--tone WORD")


if __name__ == "__main__":
    main()
