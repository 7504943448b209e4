"""Work on many machines with Ray: describing files and scoring candidates, behind the contracts of both."""
