"""The explorer: see entropy move. A Streamlit app over toybandit, entrostat and run logs; it computes nothing itself.

    entrostat-app --runs runs

    main.py, launch.py     the entry point, and the command that starts its server
    pages.py               the pages, in the order of the menu
    views/                 one page a file: which controls, which pictures, what to notice
    controls.py            a control: symbol, unit, help, and its place in the URL
    presets.py             states worth seeing
    bandit.py              the controls of one bandit, and the Config that they make
    simulations.py         simulations by their configuration, cached; slow ones behind a button
    charts.py, palette.py  pictures from data frames
    garbage.py             modules left out of Python's search for garbage, which the browser waits for
    exports.py             CSV, Parquet, SVG, PNG and the command that repeats what is shown
    headless.py            the app in a headless browser, for tests, benchmarks and screenshots.py

    Compare         contenders.py   comparison.py   tradeoff.py
    Theorems        trial_pictures.py
    Control room    loop.py   loop_pictures.py   loop_words.py
    Quadrants       token_plans.py   quadrant_pictures.py
    Runs            run_folder.py   follow.py   run_log.py   run_curves.py   run_law.py   tokens_html.py   plain_text.py

The whole state of a page is in its URL: controls are bound to query parameters, and a preset or the reset sets them.
"""
