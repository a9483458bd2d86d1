"""Every table and figure of the paper as one command: cells, what they share, and the figures."""
