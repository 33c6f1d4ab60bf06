from __future__ import annotations

from django.apps import AppConfig


class InvoicingConfig(AppConfig):
    name = "example_project.invoicing"

    def ready(self) -> None:
        # Loads the Celery application, so that @shared_task tasks go to its broker in the web
        # process too, and connects the receivers.
        from example_project import celery  # noqa: F401
        from example_project.invoicing import receivers  # noqa: F401
