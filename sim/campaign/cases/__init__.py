"""Kinds of cases: for each, how it is drawn, judged by independent models, and made smaller."""
