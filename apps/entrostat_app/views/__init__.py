"""The pages: a module each, with a function `page`. `entrostat_app.pages` is their menu."""
