"""The entry point: pages, and what all of them share. `streamlit run apps/explorer/main.py`, or `entrostat-app`."""

import streamlit as st

from explorer.garbage import spare_modules
from explorer.pages import PAGES, streamlit_page

spare_modules()
st.set_page_config(page_title="entrostat explorer", page_icon="📉", layout="wide")
st.navigation([streamlit_page(path) for path in PAGES], position="top").run()
