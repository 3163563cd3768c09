"""The rows of the public frames, by what they are of. A module is loaded where its rows are used."""
