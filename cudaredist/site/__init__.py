"""The web site: pages as values, templates, plots and the search index.

Nothing here reads the data folder. `pipeline/site_data.py` does. `pipeline/write_site.py` writes
the files.
"""
