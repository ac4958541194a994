"""Random campaign: generated cases, each judged by independent answers (docs/campaign.md)."""

__all__: list[str] = []
