"""What is drawn in a terminal: tables that fit, a line of progress, and how much is said."""
