"""How the lookups of a pre-flight would end, going by what is stored: none of them was really made."""
