"""The wheel's version and requirements, read from the files that hold them: CMakeLists.txt, sdk/torch_versions.txt and
requirements-test.txt. scikit-build-core calls dynamic_metadata() for each dynamic field of pyproject.toml.

A wheel works with one LibTorch: that of TITAN_WHEEL_TORCH, or the first of the table. A wheel for another than the first has a local
version, such as 0.2.0+torch2.11.0, so that one index can hold both.

`python3 tools/wheel/titan_metadata.py FIELD` prints a field.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def torch_rows():
    """{version: (lowest Python, highest Python)}, in the order of the table."""
    text = (ROOT / "sdk/torch_versions.txt").read_text()
    return {m[1]: (m[2], m[3]) for m in re.finditer(r"^([0-9.]+) +(3\.[0-9]+)-(3\.[0-9]+) ", text, re.MULTILINE)}


def torch_version():
    rows = torch_rows()
    version = os.environ.get("TITAN_WHEEL_TORCH") or next(iter(rows))
    if version not in rows:
        sys.exit(f"TITAN_WHEEL_TORCH = {version} is not supported; sdk/torch_versions.txt has {', '.join(rows)}")
    return version


def titan_version():
    return re.search(r"^project\(Titan VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


def version():
    torch = torch_version()
    return titan_version() + ("" if torch == next(iter(torch_rows())) else f"+torch{torch}")


def dependencies():
    return [f"torch=={torch_version()}"]


def requires_python():
    return f">={torch_rows()[torch_version()][0]}"


def optional_dependencies():
    """Arrow's libraries, which the data set "parquet" needs: their names change with each minor version."""
    arrow = re.search(r"^pyarrow==([0-9]+\.[0-9]+)", (ROOT / "requirements-test.txt").read_text(), re.MULTILINE)[1]
    return {"parquet": [f"pyarrow=={arrow}.*"]}


FIELDS = {"version": version, "dependencies": dependencies, "requires-python": requires_python,
          "optional-dependencies": optional_dependencies, "torch": torch_version}


def dynamic_metadata(field, settings=None):
    if settings:
        raise RuntimeError(f"titan_metadata takes no settings, got {settings}")
    return FIELDS[field]()


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in FIELDS:
        sys.exit(f"usage: titan_metadata.py FIELD; FIELD is one of {', '.join(FIELDS)}")
    print(FIELDS[sys.argv[1]]())
