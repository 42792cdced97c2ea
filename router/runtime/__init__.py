"""The model runtime: decision artifacts on ONNX Runtime behind the System One protocol."""
