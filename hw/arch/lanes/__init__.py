"""Program of the lanes of a PCU."""
