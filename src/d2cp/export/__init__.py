"""Shipping: the folded classifier as a Hugging Face folder or ONNX file, and serving it."""
