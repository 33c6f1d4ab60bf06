"""An invoicing service that shows django_latch at work. See README.md beside this file."""
