"""The editions of the book in other languages: catalogues, terms, checks."""
