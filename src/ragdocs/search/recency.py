"""New documents gain a little."""

from datetime import datetime, timedelta

# Seed 001, strategy 4: the youngest tier that fits counts. These are the figures at BIAS_OF_TIERS.
TIERS = ((timedelta(days=7), 1.2), (timedelta(days=30), 1.1))
BIAS_OF_TIERS = 0.5
# A date this far ahead is a broken clock or a typing error, not news.
MAX_AHEAD = timedelta(days=1)


def recency_factor(date: datetime, now: datetime, bias: float) -> float:
    """Both dates have a time zone. `bias` scales the gain: 0 is none, 1 twice the tiers' own."""
    age = now - date
    if age < -MAX_AHEAD:
        return 1.0
    for limit, factor in TIERS:
        if age <= limit:
            return 1.0 + (factor - 1.0) * bias / BIAS_OF_TIERS
    return 1.0
