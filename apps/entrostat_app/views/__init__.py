"""A folder for each page; its module of the same name draws the page by the function `page`.

Not called pages: Streamlit takes a folder of that name beside its script for pages of its own.
"""
