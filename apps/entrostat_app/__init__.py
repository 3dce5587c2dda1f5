"""Explorer: a Streamlit app that shows entropy move. Every number comes from toybandit, entrostat,
llmtrain.plan or a run log.

    entrostat-app --runs runs

    launch.py             the command that starts the server
    server.py, main.py    the server, and the script that it runs for each session
    menu.py               the pages in their order
    views/                a folder for each page: its controls, pictures and texts
    publish/              pages that need no Python, and entrostat_command.py for `entrostat publish`
    shared/               controls, the bandit's settings, cached simulations, charts, exports
    browser/              the app in a headless browser, for tests, benchmarks and screenshots

The whole state of a page is in its URL: controls are bound to query parameters, and presets and Reset set them.
"""
