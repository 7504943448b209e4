"""Labels of shots: the format, SoccerNet-v2, and labels of several annotators made one."""
