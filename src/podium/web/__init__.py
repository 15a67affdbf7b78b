"""The console: one typed API and its pages, for browsers and phones."""
