"""Pages, a folder each; the folder's module of the same name draws the page with the function `page`.

The folder is not called pages, because Streamlit treats a folder of that name beside its script as its own.
"""
