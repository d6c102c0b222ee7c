#!/usr/bin/env python3
"""Removes the paths of the build's folders from the programs and libraries of an installation. Assertions contain such paths, as names
of source files that nothing opens.

  tools/scrub_paths.py PREFIX FOLDER...    `cmake --install` calls it; FOLDER: source, build, LibTorch
"""

import pathlib
import sys


def scrub(content, folders):
    """Replaces the paths of the folders by other characters of the same length; (new content, number of places)."""
    count = 0
    for folder in sorted(map(str, folders), key=len, reverse=True):
        name = folder.encode() + b"/"
        count += content.count(name)
        content = content.replace(name, b"." + b"/" * (len(name) - 1))
    return content, count


def scrub_files(files, folders):
    """Scrubs the files in place; returns the number of places."""
    places = 0
    for path in files:
        content, count = scrub(path.read_bytes(), folders)
        places += count
        if count:
            path.write_bytes(content)
    return places


def programs_and_libraries(prefix):
    files = [*prefix.glob("bin/titan*"), *prefix.glob("lib/*.so"), *prefix.glob("lib/titan/plugins/*")]
    return [path for path in files if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    prefix, *folders = map(pathlib.Path, arguments)
    places = scrub_files(programs_and_libraries(prefix), folders)
    print(f"-- removed paths of the build from {places} places")


if __name__ == "__main__":
    main(sys.argv[1:])
