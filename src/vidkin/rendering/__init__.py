"""What the command line and the web app both show: JSON values, text, pictures, findings on machine and index."""
