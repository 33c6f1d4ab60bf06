from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        # Unmanaged: this makes the content type and the permissions, and no table.
        migrations.CreateModel(
            name="ActiveLock",
            fields=[
                (
                    "name",
                    models.CharField(
                        max_length=255, primary_key=True, serialize=False, verbose_name="key"
                    ),
                ),
            ],
            options={
                "verbose_name": "job lock",
                "verbose_name_plural": "job locks",
                "permissions": [("release_activelock", "Can release job lock")],
                "managed": False,
                "default_permissions": ("view",),
                "base_manager_name": "objects",
            },
        ),
    ]
