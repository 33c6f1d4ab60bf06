"""The lock store. Nothing outside this package imports redis or django_redis."""
