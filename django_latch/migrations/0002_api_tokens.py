from __future__ import annotations

import django.core.validators
import django.utils.timezone
from django.db import migrations, models

import django_latch.models


class Migration(migrations.Migration):
    dependencies = [
        ("django_latch", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "account",
                    models.CharField(
                        help_text="Stands before the label of each holder.",
                        max_length=60,
                        validators=[
                            django.core.validators.RegexValidator("^[A-Za-z0-9][A-Za-z0-9_.-]*\\Z")
                        ],
                        verbose_name="account",
                    ),
                ),
                (
                    "scopes",
                    models.TextField(
                        help_text="Starts of keys, of whole segments, one a line; * is every key.",
                        validators=[django_latch.models.check_scopes],
                        verbose_name="scopes",
                    ),
                ),
                ("read_only", models.BooleanField(default=False, verbose_name="read only")),
                (
                    "may_force",
                    models.BooleanField(
                        default=False,
                        help_text="Whoever holds them, in these scopes.",
                        verbose_name="may release by force",
                    ),
                ),
                ("digest", models.CharField(editable=False, max_length=64, unique=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="created at"
                    ),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="revoked at"),
                ),
            ],
            options={
                "verbose_name": "API token",
                "verbose_name_plural": "API tokens",
            },
        ),
    ]
