"""Invoices as PDF files: one page of text, written by hand to need no library."""

from __future__ import annotations

from example_project.invoicing.models import Invoice


def invoice_pdf(invoice: Invoice) -> bytes:
    """The document of `invoice`."""
    lines = [
        f"Invoice {invoice.number}",
        "",
        f"To: {invoice.customer.name} <{invoice.customer.email}>",
        f"Issued: {invoice.issued_on}    Due: {invoice.due_on}",
        "",
        invoice.text,
        f"Amount: EUR {invoice.amount}",
        "",
        f"Paid on {invoice.paid_on}." if invoice.paid_on else "Please pay by the due date.",
    ]
    return pdf(lines)


def pdf(lines: list[str]) -> bytes:
    """A PDF of one A4 page with `lines`; what Latin-1 cannot say becomes a question mark."""
    shown = "\n".join(f"({_escaped(line)}) '" for line in lines)
    content = f"BT /F1 12 Tf 16 TL 72 770 Td\n{shown}\nET".encode("latin-1", "replace")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 5 0 R"
        b" /Resources << /Font << /F1 4 0 R >> >> >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    file = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    file += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    file += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    file += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(file)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
