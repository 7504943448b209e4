"""Networks of timm, torchvision and ONNX files as extractors."""
