"""D2CP: find the shortcut in an image data set, show it, train a classifier without it."""

__version__ = "0.1.0"
