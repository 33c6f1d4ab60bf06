from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from example_project.invoicing.models import (
    Account,
    Customer,
    Invoice,
    Payment,
    SkippedCall,
    StatementImport,
)


class ReadOnlyAdmin(admin.ModelAdmin):
    """For rows that only the jobs write."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Customer)
class CustomerAdmin(admin.ModelAdmin):
    list_display = ["name", "email"]
    search_fields = ["name", "email"]


@admin.register(Account)
class AccountAdmin(admin.ModelAdmin):
    list_display = ["name", "iban"]


@admin.register(Invoice)
class InvoiceAdmin(admin.ModelAdmin):
    list_display = ["number", "customer", "amount", "issued_on", "due_on", "paid_on"]
    list_filter = ["paid_on", "customer"]
    list_select_related = ["customer"]
    search_fields = ["number", "customer__name"]
    date_hierarchy = "issued_on"


@admin.register(StatementImport)
class StatementImportAdmin(ReadOnlyAdmin):
    list_display = ["account", "started_at", "finished_at", "payments_count", "fence", "task_id"]
    list_filter = ["account"]
    list_select_related = ["account"]


@admin.register(Payment)
class PaymentAdmin(ReadOnlyAdmin):
    list_display = ["booked_on", "reference", "amount", "invoice"]
    list_select_related = ["invoice"]


@admin.register(SkippedCall)
class SkippedCallAdmin(ReadOnlyAdmin):
    list_display = ["created_at", "task", "key", "reason", "holder"]
    list_filter = ["task", "reason"]
