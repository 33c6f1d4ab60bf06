"""The guided tour: ``python -m example_project.demo`` (or ``make demo``)."""
