"""Small changes to the code that is tested, each of which some quick test should notice."""
