"""The report: a scope as one HTML file. Sections of plain data first, then redacted on request, then HTML."""
