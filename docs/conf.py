"""Settings of Sphinx for `make docs-site`."""

project = "cudaredist"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "cudaredist"
html_show_sphinx = False
myst_heading_anchors = 4
