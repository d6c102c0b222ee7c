# The site that tools/site.sh builds of these pages: Sphinx with MyST, which reads Markdown unchanged. Pages in made/ exist on the site
# only: tools/site_pages.py writes them, Doxygen and Breathe read the headers of the sdk.
import pathlib
import re
import subprocess
import sys

project = "Titan"
root_doc = "README"
extensions = ["myst_parser", "breathe"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "made/doctrees", "made/xml"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# links to files of the repository that are not pages stay links to these files; every header declares namespace titan
suppress_warnings = ["myst.xref_missing", "duplicate_declaration.cpp"]

breathe_projects = {"titan": str(pathlib.Path(__file__).parent / "made/xml")}
breathe_default_project = "titan"
breathe_default_members = ("members",)
MADE = {"Guides": ["made/kinds"], "Reference": ["made/api", "made/errors"], "Internals": ["made/core", "made/sdk", "made/plugins"]}

html_theme = "furo"
html_title = "Titan"
html_show_copyright = False
html_show_sphinx = False


def add_contents(app, name, source):
    """Makes the lists of links in README.md the navigation of the site."""
    if name != root_doc:
        return
    for section in source[0].split("\n## ")[1:]:
        caption = section.partition("\n")[0]
        pages = dict.fromkeys([*re.findall(r"\]\((\w+/\w+)\.md\)", section), *MADE.get(caption, [])])
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def make_pages(app):
    docs = pathlib.Path(app.srcdir)
    subprocess.run([sys.executable, docs.parent / "tools/site_pages.py", docs / "made"], check=True)


def setup(app):
    app.connect("builder-inited", make_pages)
    app.connect("source-read", add_contents)
