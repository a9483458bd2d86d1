"""Environments by cross-risk minimisation (XRM): a bit that tells hard from easy images."""
