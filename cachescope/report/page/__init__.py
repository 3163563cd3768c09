"""The report: a scope as one HTML file. Sections of plain data first, then hidden where asked, then HTML."""
