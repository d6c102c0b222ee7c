#!/usr/bin/env python3
"""Downloads chat templates of published models, which the tests render: fetch_chat_templates.py FOLDER. tools/setup.sh --test calls it.

They are in the source archive of llama-cpp-python, which comes from the package index that pip is configured for. Keeps the templates
(MIT and their models' licences), FOLDER/*.jinja, and FOLDER/LICENSE, not the archive. Does nothing if they are already there.
"""

import hashlib
import html
import io
import pathlib
import re
import shlex
import subprocess
import sys
import tarfile
import urllib.parse

from pip._internal.models.index import PyPI
from pip._vendor import requests  # handles proxies, certificates and passwords as pip does

PROJECT, FILE = "llama-cpp-python", "llama_cpp_python-0.3.36.tar.gz"
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
WANTED = re.compile(r"[^/]+/vendor/llama\.cpp/(models/templates/([^/]+\.jinja)|(LICENSE))")


def pip_option(name, otherwise):
    """An option of pip from its configuration files and environment."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    values = [shlex.split(line.split("=", 1)[1])[0] for line in listed.splitlines() if line.split("=", 1)[0].endswith("." + name)]
    return values[-1] if values else otherwise


def fetch():
    session = requests.Session()
    session.verify = pip_option("cert", True)
    page_url = pip_option("index-url", PyPI.simple_url).rstrip("/") + f"/{PROJECT}/"
    page = session.get(page_url, timeout=60)
    page.raise_for_status()
    links = [html.unescape(link) for link in re.findall(r'href="([^"]+)"', page.text)]
    links = [link for link in links if urllib.parse.urlsplit(link).path.endswith("/" + FILE)]
    if not links:
        sys.exit(f"fetch_chat_templates: error: the package index of pip has no {FILE}")
    archive = session.get(urllib.parse.urljoin(page.url, links[0]).split("#")[0], timeout=300)
    archive.raise_for_status()
    found = hashlib.sha256(archive.content).hexdigest()
    if found != SHA256:
        sys.exit(f"fetch_chat_templates: error: {FILE} has SHA-256 {found}, expected {SHA256}")
    return archive.content


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    stamp = folder / ".complete"
    if stamp.exists() and stamp.read_text() == SHA256:
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(fetch())) as archive:
        for member in archive:
            match = WANTED.fullmatch(member.name)
            if match and member.isfile():
                (folder / (match[2] or match[3])).write_bytes(archive.extractfile(member).read())
    stamp.write_text(SHA256)


if __name__ == "__main__":
    main()
