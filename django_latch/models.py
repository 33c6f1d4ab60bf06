"""`ActiveLock`: the locks in Redis, as rows for the admin and the ORM's users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from django.db import NotSupportedError, models
from django.utils.translation import gettext_lazy as _

from django_latch.live import LiveQuerySet, Source

if TYPE_CHECKING:
    from django_latch.inventory import HolderInfo, LockInfo


NOT_SAVED = "A lock is acquired with django_latch.latch(), never saved or loaded."


class LiveManager(models.Manager["ActiveLock"]):
    """Rows from Redis; none when asked for those of a database (dumpdata, flush, `using()`)."""

    def get_queryset(self) -> LiveQuerySet:  # type: ignore[override]
        """The live rows, or an empty queryset of the database that was named."""
        if self._db is not None:
            return super().get_queryset().none()  # type: ignore[return-value]
        return LiveQuerySet(self.model, Source())


class ActiveLock(models.Model):
    """A lock that is held or waited for now; it has no table and is never saved.

    `info` has everything that is known of it.
    """

    name = models.CharField(_("key"), max_length=255, primary_key=True)

    info: LockInfo | None = None

    objects = LiveManager()

    class Meta:
        managed = False
        base_manager_name = "objects"
        default_permissions = ("view",)
        permissions = [("release_activelock", "Can release job lock")]
        verbose_name = _("job lock")
        verbose_name_plural = _("job locks")

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a lock is acquired with `latch()`.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError(NOT_SAVED)

    def _save_table(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotSupportedError(NOT_SAVED)  # loaddata goes past save()

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse: a lock is released by its holder, in the admin, or by `latch_clear`.

        Raises:
            NotSupportedError: always.
        """
        raise NotSupportedError("A lock is released by its lease, or by `manage.py latch_clear`.")

    @classmethod
    def from_info(cls, info: LockInfo) -> ActiveLock:
        """The row of a lock that was read."""
        row = cls.from_db(None, ["name"], [info.name])
        row.info = info
        return row

    @property
    def holders(self) -> tuple[HolderInfo, ...]:
        """Who holds it, by fence."""
        return self.info.holders if self.info else ()
