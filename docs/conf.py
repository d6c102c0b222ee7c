# The site that tools/site.sh builds of these pages: Sphinx with MyST, which reads Markdown as it is.
import re

project = "Titan"
root_doc = "README"
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
# links to files of the repository that are no pages stay links to these files
suppress_warnings = ["myst.xref_missing"]

html_theme = "furo"
html_title = "Titan"
html_show_copyright = False
html_show_sphinx = False


def add_contents(app, name, source):
    """The lists of README.md, which are links for whoever reads it as a file, are the navigation of the site."""
    if name != root_doc:
        return
    for section in source[0].split("\n## ")[1:]:
        caption = section.partition("\n")[0]
        pages = dict.fromkeys(page for page in re.findall(r"\]\((\w+/\w+)\.md\)", section))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"


def setup(app):
    app.connect("source-read", add_contents)
