"""Networks of timm and torchvision as extractors."""
