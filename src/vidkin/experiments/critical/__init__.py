"""The comparison of losses on critical clips."""
