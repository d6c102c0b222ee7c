#!/usr/bin/env python3
"""docs/reference/metrics.md against the sources: every tag that core, sdk or plugins log stands in the first column of one of its tables,
and every tag there is logged by some source.

Tags are string literals in .h and .cpp files, without comments. The folders of READERS only read tags. A literal is a tag if

- it begins with one of PREFIXES; one that ends in '/' is completed at run time, and the page writes '<...>' for the rest,
- or its file names Scalar, scalars, Histogram or ObservedNumber, and it is the first member of a braced list whose second member is
  neither a string nor a list: {"grad_norm", norm},
- or part_names() of a loss returns it, or it is Loss::kNegativeLogLikelihood: "loss_metrics/" comes before it,
- or plugins/commands/evaluate/scores.cpp holds it, which names metrics of tasks: "validation_metrics/<task>/" comes before it.
"""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("TITAN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PAGE = "docs/reference/metrics.md"
READERS = ("plugins/loggers/console/", "plugins/loggers/tensorboard/", "plugins/loggers/prometheus/", "plugins/loggers/mlflow/",
           "plugins/loggers/wandb/", "plugins/commands/compare/", "plugins/commands/bench/", "plugins/commands/report/",
           "plugins/commands/top/", "plugins/commands/check/")
PREFIXES = ("loss_metrics", "validation_metrics", "time_metrics", "data_metrics", "comm_metrics", "memory", "experts", "activations",
            "grad_norm", "param_norm", "gradients", "weights")
TAG = r'[a-z][a-z0-9_/]*(?:\((?:s|%|tps|[KMGT]iB)\))?'
WITH_PREFIX = re.compile(rf'"((?:{"|".join(PREFIXES)})/(?:{TAG})?)"')
FIRST_MEMBER = re.compile(rf'\{{\s*"({TAG})"\s*[,+](?!\s*["{{])')
NUMBERS = re.compile(r"\b(?:Scalar|scalars|Histogram|ObservedNumber)\b")
PART_NAMES = re.compile(r"\bpart_names\(\) const \{(.*?)\n\}", re.S)
METRICS_OF_TASKS = "plugins/commands/evaluate/scores.cpp"


def code(text):
    return re.sub(r"//.*", "", text)


def sources(root):
    for folder in ("core", "sdk", "plugins"):
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.suffix in (".h", ".cpp") and not name.startswith(READERS):
                yield name, code(path.read_text())


def literals_of(text):
    found = set(WITH_PREFIX.findall(text))
    return found | set(FIRST_MEMBER.findall(text)) if NUMBERS.search(text) else found


def parts_of(text):
    return {part for body in PART_NAMES.findall(text) for part in re.findall(r'"([a-z_/]+)"', body)}


def tags_of_sources(root):
    """{tag: file}"""
    found, parts = {}, {}
    for name, text in sources(root):
        found |= dict.fromkeys(literals_of(text), name)
        parts |= dict.fromkeys(parts_of(text), name)
        parts |= dict.fromkeys(re.findall(r'kNegativeLogLikelihood = "(\w+)"', text), name)
    # completed by a part of the loss, or by a task and its metric
    if found.pop("loss_metrics/", None):
        found |= {"loss_metrics/" + part: name for part, name in parts.items()}
    if name := found.pop("validation_metrics/", None):
        metrics = re.findall(r'"([a-z_]+)"', code((root / METRICS_OF_TASKS).read_text()))
        found |= dict.fromkeys(["validation_metrics/<part>", "validation_metrics/<task>/<metric>_stderr",
                                *("validation_metrics/<task>/" + metric for metric in metrics)], name)
    return found


def tags_of_page(text):
    """The code in the first column of tables whose first head is 'tag'."""
    found, is_tags = [], False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) < 3:
            is_tags = False
        elif cells[1] == "tag":
            is_tags = True
        elif is_tags:
            found += re.findall(r"`([^`]+)`", cells[1])
    return [tag if tag.startswith("validation_metrics/<") else tag.partition("<")[0] for tag in found]


def differences(logged, described):
    return ([f"{name} logs '{tag}', which {PAGE} lacks" for tag, name in sorted(logged.items()) if tag not in described] +
            [f"{PAGE} has '{tag}', which no source logs" for tag in sorted(set(described) - set(logged))] +
            [f"{PAGE} has '{tag}' twice" for tag in sorted(set(described)) if described.count(tag) > 1])


class MetricTagsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.logged = tags_of_sources(ROOT)
        cls.page = (ROOT / PAGE).read_text()

    def test_the_page_has_every_tag_and_no_other(self):
        self.assertGreater(len(self.logged), 60)
        self.assertEqual(differences(self.logged, tags_of_page(self.page)), [])

    def test_known_tags_are_found_in_each_way(self):
        known = {"loss_metrics/global_avg_loss", "throughput(tps)", "grad_norm", "lr", "loss_scale", "goodput(%)", "memory/num_ooms",
                 "time_metrics/forward(s)", "data_metrics/epochs/", "grad_norm/", "weights/", "experts/load/", "loss_metrics/nll",
                 "loss_metrics/rewards/chosen", "loss_metrics/z_loss", "validation_metrics/<task>/acc_norm"}
        self.assertEqual(known - set(self.logged), set())

    def test_a_row_that_is_missing_is_found(self):
        described = tags_of_page(self.page)
        logged = dict.fromkeys(described, "core/a.cpp")
        for line in self.page.splitlines():
            gone = tags_of_page("| tag | |\n" + line)
            if gone and set(gone) <= set(described):  # a row of a table of tags
                less = tags_of_page(self.page.replace(line + "\n", ""))
                self.assertEqual(differences(logged, less), [f"core/a.cpp logs '{gone[0]}', which {PAGE} lacks"])

    def test_a_tag_that_no_source_logs_is_found(self):
        more = tags_of_page(self.page + "\n| tag | unit |\n|---|---|\n| `loss_metrics/imagined` | |\n| `experts/idle/<moe>` | |\n")
        logged = dict.fromkeys(tags_of_page(self.page), "core/a.cpp")
        self.assertEqual(differences(logged, more), [f"{PAGE} has 'loss_metrics/imagined', which no source logs", f"{PAGE} has 'experts/idle/' twice"])

    def test_what_is_a_tag(self):
        self.assertEqual(literals_of('numbers.push_back({"mfu(%)", 1}); add("memory/max_active(GiB)", 2);'), {"memory/max_active(GiB)"})
        self.assertEqual(literals_of('Scalar a{"mfu(%)", 1}; b = {{"lr", lr}, {"name", "x"}, {"loss", {1}}};'), {"mfu(%)", "lr"})
        self.assertEqual(literals_of(code('// {"lr", Scalar}\nScalar a;')), set())


if __name__ == "__main__":
    unittest.main()
