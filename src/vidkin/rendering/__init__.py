"""Room rendering: what every face shows - JSON values, text, pictures, findings about the machine and an index."""
