"""The API reference: what Doxygen reads in the headers, made fit for pages."""
