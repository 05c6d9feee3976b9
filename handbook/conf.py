"""How Sphinx builds the handbook and the specification into one site: `make site`.

Sphinx with Furo and MyST: all three are released several times a year. The theme asks no other host for fonts or
scripts. `tools.site.assembly` puts the pages into one folder and adds those that are generated.
"""

project = "stablecast"
author = "the stablecast developers"
copyright = author  # noqa: A001 - the name is Sphinx's
html_title = "stablecast"
root_doc = "handbook/index"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "tools.site.sphinx_glossary",
]
myst_enable_extensions = ["colon_fence", "attrs_inline"]
myst_heading_anchors = 4
myst_all_links_external = False
suppress_warnings = ["myst.header"]
nitpicky = False

default_role = "code"  # docstrings use single backticks for code
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # an attribute may also be a property, which has its own entry

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["handbook.css"]
html_js_files = [("diagrams.js", {"defer": "defer"})]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b5c8a", "color-brand-content": "#0b5c8a"},
    "dark_css_variables": {"color-brand-primary": "#6cc3f0", "color-brand-content": "#6cc3f0"},
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
