"""site: write a static web site from the data folder.

`site_data` reads the data folder. `release_pages`, `package_pages` and `table_pages` make the
pages, which are values (`page_models`). `render_site` turns them into files, and `write_site`
writes the files. `search_index` and `symbol_index` are the search.
"""
