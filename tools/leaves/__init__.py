"""Rendered photographs of leaves with a paper tag on most leaves of one kind: a data set to try
the product on, free of other people's pictures."""
