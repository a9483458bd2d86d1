"""The pictures of README and the documentation, made from runs: light and dark, small files."""
