from __future__ import annotations

from django.urls import path

from example_project.invoicing import views

app_name = "invoicing"
urlpatterns = [
    path("", views.overview, name="overview"),
    path("health/", views.show_health, name="health"),
    path("accounts/<int:pk>/import/", views.start_import, name="import"),
    path("accounts/<int:pk>/answer/", views.answer, name="answer"),
    path("nightly/", views.start_nightly, name="nightly"),
    path("invoices/<int:pk>/", views.invoice, name="invoice"),
    path("invoices/<int:pk>/render/", views.start_render, name="render"),
    path("invoices/<int:pk>/pdf/", views.pdf, name="pdf"),
    path("invoices/<int:pk>/remind/", views.start_reminder, name="remind"),
]
