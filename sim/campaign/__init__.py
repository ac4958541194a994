"""Random test campaign: generated cases judged by independent models (docs/campaign.md)."""

__all__: list[str] = []
