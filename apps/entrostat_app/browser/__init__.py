"""The app in a headless browser, for tests, benchmarks and the documentation's screenshots."""
