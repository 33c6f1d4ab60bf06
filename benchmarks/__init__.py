"""Speed of django_latch beside other locks, as ratios measured in one run: `make bench`."""
