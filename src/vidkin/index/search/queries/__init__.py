"""What is searched for: files and pictures as features, and videos of the index read again."""
