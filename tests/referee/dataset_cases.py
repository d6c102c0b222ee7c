"""Shared by the referees of data sets: runs the probe and counts the comparisons."""

import argparse
import json
import pathlib
import subprocess
import tempfile


class Referee:
    """Runs dataset_probe in its own folder and compares."""

    def __init__(self, description):
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--probe", required=True, help="the dataset_probe program")
        parser.add_argument("--plugins", required=True, help="folder of the plugins")
        self.arguments = parser.parse_args()
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.num_compared = 0
        self.failures = []

    def probe(self, dataset, path, *options):
        """The lines that the probe prints, and its exit status."""
        run = subprocess.run([self.arguments.probe, self.arguments.plugins, dataset, str(path), *map(str, options)],
                             capture_output=True, text=True, timeout=1800, stdin=subprocess.DEVNULL)
        if run.returncode not in (0, 1):
            raise RuntimeError(f"dataset_probe {dataset} {path} ended with {run.returncode}: {run.stderr}")
        return [json.loads(line) for line in run.stdout.split("\n")[:-1]], run.returncode

    def documents(self, dataset, path, *options):
        """The documents, each as ids or text; fails when the data set is refused."""
        lines, status = self.probe(dataset, path, *options)
        if status != 0:
            return lines[-1]["error"]
        assert lines[-1]["documents"] == len(lines) - 1
        return [line["tokens"] if "tokens" in line else line["text"] for line in lines[:-1]]

    def equal(self, what, found, expected):
        self.num_compared += 1
        if found != expected:
            self.failures.append(what)
            print(f"{what}: differs\n  found    {str(found)[:600]}\n  expected {str(expected)[:600]}")

    def refused(self, what, dataset, path, options, *parts):
        """The data set is refused, and the error contains all `parts`."""
        self.num_compared += 1
        lines, status = self.probe(dataset, path, *options)
        text = lines[-1].get("error", "") if lines else ""
        missing = [part for part in parts if str(part) not in text]
        if status != 1 or missing:
            self.failures.append(what)
            print(f"{what}: not refused as it should; missing {missing} in: {text or lines[-1:]}")
        return text

    def finish(self):
        assert self.num_compared > 0, "nothing was compared"
        print(f"{self.num_compared} comparisons, {len(self.failures)} failures")
        raise SystemExit(1 if self.failures else 0)
