"""Pages of figures, made from result files: a figure without its file cannot be in them."""
