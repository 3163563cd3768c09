"""How the lookups of a pre-flight would end, given what is stored. None of them was really made."""
