"""Customers, invoices, and the payments that bank statements report."""
