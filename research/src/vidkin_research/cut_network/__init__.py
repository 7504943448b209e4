"""One network from small frames to every kind of transition: its material, training, export and what reads it."""
