"""Room rendering: JSON values, pictures and machine findings that the command line and the web page share."""
