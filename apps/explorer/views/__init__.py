"""The pages: a module each, with a function `page`. `explorer.pages` is their menu."""
