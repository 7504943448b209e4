"""From a query to ranked matches."""
