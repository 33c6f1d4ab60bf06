"""The models: locks in Redis as rows for the admin and the ORM's users; tokens of the HTTP API."""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NoReturn

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import NotSupportedError, models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from django_latch.core.names import check_name
from django_latch.exceptions import LatchNameError
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


def check_scopes(value: str) -> None:
    """Refuse what no key can begin with.

    Raises:
        ValidationError: names the scope.
    """
    for scope in value.split("\n"):
        scope = scope.strip()
        if scope == "*":
            continue
        try:
            check_name(scope)  # a key that begins with it could not be a name either
            sound = not ("*" in scope or scope.endswith(":"))
        except LatchNameError:
            sound = False
        if not sound:
            raise ValidationError(
                _("“%(scope)s” is no scope: write whole segments, without a last colon."),
                params={"scope": scope},
            )


class ApiToken(models.Model):
    """A bearer token of the HTTP API. Only its digest is kept; the secret is shown once."""

    account = models.CharField(
        _("account"),
        max_length=60,
        validators=[RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")],
        help_text=_("Stands before the label of each holder."),
    )
    scopes = models.TextField(
        _("scopes"),
        validators=[check_scopes],
        help_text=_("Starts of keys, of whole segments, one a line; * is every key."),
    )
    read_only = models.BooleanField(_("read only"), default=False)
    may_force = models.BooleanField(
        _("may release by force"),
        default=False,
        help_text=_("Whoever holds them, in these scopes."),
    )
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")

    def __str__(self) -> str:
        return f"{self.account} #{self.pk}"

    @staticmethod
    def digest_of(secret: str) -> str:
        """The SHA-256 of a secret: it has 256 random bits, so no salt and no stretching."""
        return sha256(secret.encode("utf-8", "backslashreplace")).hexdigest()

    def issue(self) -> str:
        """Save a new token. Returns its secret, which is kept nowhere."""
        secret = f"latch_{secrets.token_urlsafe(32)}"
        self.digest = self.digest_of(secret)
        self.save()
        return secret

    def revoke(self) -> None:
        """End it for good; servers notice within 10 seconds."""
        if self.revoked_at is None:
            self.revoked_at = timezone.now()
            self.save(update_fields=["revoked_at"])
