"""Entry point of the app: its pages and their shared setup. Started by `entrostat-app`."""

import streamlit as st

from entrostat_app.menu import PAGES, streamlit_page
from entrostat_app.shared.garbage import spare_modules

spare_modules()
st.set_page_config(page_title="entrostat explorer", page_icon="📉", layout="wide")
st.navigation([streamlit_page(path) for path in PAGES], position="top").run()
