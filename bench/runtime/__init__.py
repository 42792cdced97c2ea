"""What the model runtime costs over ONNX Runtime itself."""
