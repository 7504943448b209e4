"""Labels of shots: the file format, SoccerNet-v2, and merging the labels of several annotators."""
