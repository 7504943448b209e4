"""The learned comparison of two videos: attention, the network over their frame map, and the folder that holds it."""
