"""What command line and web app both show: JSON values, text, pictures, findings about the machine and an index."""
