from __future__ import annotations

import enum
import inspect
import pickle
import uuid
from datetime import UTC, date, datetime, time
from decimal import Decimal
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from django.utils.functional import SimpleLazyObject
from hypothesis import given
from hypothesis import strategies as st

from django_latch.core.names import check_name, fit_name
from django_latch.core.templates import Template, encode_value
from django_latch.exceptions import LatchNameError


class Plan(enum.Enum):
    GOLD = "gold:1"
    NONE = None


class Size(enum.IntEnum):
    S = 1


class Fruit(enum.StrEnum):
    FIG = "fig"


class Order:
    """Has the shape of a Django model instance."""

    _meta = SimpleNamespace(label_lower="shop.order")

    def __init__(self, pk: object) -> None:
        self.pk = pk
        self.customer = SimpleNamespace(id=7, name="Ada")
        self._state = SimpleNamespace(db="default")

    def total(self) -> int:
        return 1


class TestSyntax:
    @pytest.mark.parametrize(
        ("text", "fields"),
        [
            ("sync", ()),
            ("sync:{account_id}", ("account_id",)),
            ("{a}", ("a",)),
            ("{a}:{b.c.d}!", ("a", "b.c.d")),
            ("{a}:{a}", ("a", "a")),
            ("{_private_parameter}", ("_private_parameter",)),
            ("konto:{größe}", ("größe",)),
        ],
    )
    def test_fields_are_parameters_and_attributes(self, text: str, fields: tuple[str, ...]) -> None:
        assert Template(text).fields == fields

    @pytest.mark.parametrize(
        "text",
        [
            "{}",
            "{0}",
            "{a[0]}",
            "{a[key]}",
            "{a!r}",
            "{a!s}",
            "{a:>10}",
            "{a:}",
            "{a:{b}}",
            "{a._secret}",
            "{a.__class__}",
            "{a.b.__init__.__globals__}",
            "{a.}",
            "{.a}",
            "{a..b}",
            "{ a }",
            "{a-b}",
            "{a()}",
            "{{{a}}}",
            "{{}}:{a}",
        ],
    )
    def test_everything_else_is_refused_with_the_rule(self, text: str) -> None:
        with pytest.raises(LatchNameError, match=r"a field is \{parameter\} or") as caught:
            Template(text)
        assert repr(text) in str(caught.value)

    @pytest.mark.parametrize("text", ["{", "a}", "{a", "}{", "{a!}", "{a:{b}"])
    def test_unbalanced_braces_are_malformed(self, text: str) -> None:
        with pytest.raises(LatchNameError, match="is malformed"):
            Template(text)

    @pytest.mark.parametrize("text", ["{a}{b}", "x:{a}{b.c}:y", "{a}:{b}{c}"])
    def test_two_fields_need_text_between_them(self, text: str) -> None:
        with pytest.raises(LatchNameError, match="between the fields"):
            Template(text)

    @pytest.mark.parametrize(
        "text", ["", "\n", "{a}\n{b}", "{a}:\ud800", "x" * 256, "{{a}}", None, 7]
    )
    def test_the_text_around_fields_obeys_the_rules_of_names(self, text: object) -> None:
        with pytest.raises(LatchNameError, match="a lock's name"):
            Template(text)  # type: ignore[arg-type]

    def test_messages_are_bounded(self) -> None:
        with pytest.raises(LatchNameError) as caught:
            Template("{a[0]}" + "x" * 10_000)
        assert len(str(caught.value)) < 400

    @given(st.text(alphabet="{}[]!:._ab0 ", max_size=12))
    def test_no_text_escapes_our_error(self, text: str) -> None:
        try:
            template = Template(text)
        except LatchNameError:
            return
        rebuilt = template.text
        for field in template.fields:
            assert not any(part.startswith("_") for part in field.split(".")[1:])
            rebuilt = rebuilt.replace(f"{{{field}}}", "")
        assert not set(rebuilt) & set("{}")

    def test_a_template_is_a_value(self) -> None:
        template = Template("sync:{a}")
        assert template == Template("sync:{a}") != Template("sync:{b}")
        assert hash(template) == hash(Template("sync:{a}"))
        copy = pickle.loads(pickle.dumps(template))
        assert copy == template
        assert copy.render({"a": 1}) == "sync:1"


def example(self_id, /, account, *items, full=False, **options):
    """Has a parameter of each kind."""


class TestCheck:
    signature = inspect.signature(example)

    @pytest.mark.parametrize("text", ["plain", "{self_id}", "{account.id}", "{full}:{account}"])
    def test_parameters_fit(self, text: str) -> None:
        Template(text).check(self.signature, "task x")

    def test_an_unknown_parameter_is_named_with_the_known_ones(self) -> None:
        with pytest.raises(LatchNameError) as caught:
            Template("sync:{acount.id}").check(self.signature, "task billing.sync")
        message = str(caught.value)
        assert "task billing.sync" in message
        assert "'acount' is not a parameter" in message
        assert message.endswith("use one of: self_id, account, full")

    @pytest.mark.parametrize("name", ["items", "options"])
    def test_parameters_that_collect_are_refused(self, name: str) -> None:
        with pytest.raises(LatchNameError, match=f"'{name}' collects several arguments"):
            Template(f"sync:{{{name}}}").check(self.signature, "task x")

    def test_a_call_without_parameters_has_none_to_offer(self) -> None:
        with pytest.raises(LatchNameError, match=r"use one of: \(it has none\)"):
            Template("{a}").check(inspect.signature(lambda: None), "task x")

    def test_a_plain_name_fits_everything(self) -> None:
        Template("nightly").check(inspect.signature(lambda: None), "task x")


class TestValues:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("eu", "eu"),
            ("", ""),
            ("naïve 发", "naïve 发"),
            ("50%", "50%25"),
            ("a:b", "a%3Ab"),
            ("{x}", "%7Bx%7D"),
            ("a\nb\x7f\x85", "a%0Ab%7F%C2%85"),
            ("\u2028", "%E2%80%A8"),
            ("\ud800", "%ED%A0%80"),
            (42, "42"),
            (-1, "-1"),
            (10**30, "1" + "0" * 30),
            (True, "true"),
            (False, "false"),
            (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (Decimal("1.50"), "1.50"),
            (date(2024, 2, 29), "2024-02-29"),
            (datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC), "2024-02-29T01%3A02%3A03+00%3A00"),
            (time(1, 2), "01%3A02%3A00"),
            (Plan.GOLD, "gold%3A1"),
            (Size.S, "1"),
            (Fruit.FIG, "fig"),
            (Order(42), "42"),
            (Order(uuid.UUID(int=1)), "00000000-0000-0000-0000-000000000001"),
            (Order("a:b"), "a%3Ab"),
            (SimpleLazyObject(lambda: Order(42)), "42"),
        ],
    )
    def test_text_of(self, value: object, text: str) -> None:
        assert encode_value(value, "p") == text

    @pytest.mark.parametrize(
        "value",
        [
            1.5,
            b"x",
            [1],
            (1,),
            {"a": 1},
            {1},
            object(),
            Order,
            len,
            MagicMock(),
            1j,
            SimpleLazyObject(lambda: "x"),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_other_kinds_are_refused_by_parameter_and_list(self, value: object) -> None:
        with pytest.raises(TypeError, match="cannot put 'account' into a lock's name") as caught:
            encode_value(value, "account")
        assert "Allowed: str, int, bool, UUID" in str(caught.value)
        assert type(value).__name__ in str(caught.value)

    def test_none_is_refused_as_none(self) -> None:
        with pytest.raises(TypeError, match="'account' into a lock's name: it is None"):
            encode_value(None, "account")

    def test_an_enum_of_none_is_refused(self) -> None:
        with pytest.raises(TypeError, match="it is None"):
            encode_value(Plan.NONE, "plan")

    @pytest.mark.parametrize("pk", [None, (1, None)])
    def test_an_unsaved_model_instance_is_refused(self, pk: object) -> None:
        with pytest.raises(TypeError, match=r"'order' .*has no primary key yet; save it first"):
            encode_value(Order(pk), "order")

    def test_a_composite_primary_key_is_refused_by_its_name(self) -> None:
        with pytest.raises(TypeError, match=r"'order\.pk' .*of type tuple"):
            encode_value(Order((1, 2)), "order")

    def test_an_integer_that_python_will_not_write_in_decimal(self) -> None:
        assert encode_value(10**5_000, "p") != encode_value(10**5_000 + 1, "p")

    def test_the_message_shows_no_value(self) -> None:
        with pytest.raises(TypeError) as caught:
            encode_value(["hunter2"], "password")
        assert "hunter2" not in str(caught.value)


class TestRender:
    @pytest.mark.parametrize(
        "value",
        [42, "42", Decimal("42"), Order(42), Order("42")],
        ids=["int", "str", "Decimal", "pk", "str pk"],
    )
    def test_meets_the_plain_name(self, value: object) -> None:
        assert Template("sync:{account_id}").render({"account_id": value}) == "sync:42"

    def test_reads_attributes(self) -> None:
        template = Template("{order.customer.id}:{order.customer.name}")
        assert template.render({"order": Order(1)}) == "7:Ada"

    def test_a_plain_name_needs_no_arguments(self) -> None:
        assert Template("nightly").render({}) == "nightly"

    def test_a_missing_attribute_names_field_and_type(self) -> None:
        with pytest.raises(TypeError, match=r"'order\.client\.id' .*Order has no 'client'"):
            Template("{order.client.id}").render({"order": Order(1)})

    def test_an_attribute_of_none(self) -> None:
        with pytest.raises(TypeError, match=r"'order\.id' .*NoneType has no 'id'"):
            Template("{order.id}").render({"order": None})

    @pytest.mark.parametrize("field", ["order.total", "order.total.name", "text.format"])
    def test_callables_are_not_read(self, field: str) -> None:
        with pytest.raises(TypeError, match="is callable"):
            Template(f"{{{field}}}").render({"order": Order(1), "text": "x"})

    def test_an_argument_that_is_not_there(self) -> None:
        with pytest.raises(TypeError, match="needs the argument 'a'"):
            Template("x:{a}").render({"b": 1})

    def test_an_empty_value_is_allowed_beside_text(self) -> None:
        assert Template("sync:{a}").render({"a": ""}) == "sync:"

    def test_an_empty_name_is_not(self) -> None:
        with pytest.raises(LatchNameError, match="gives an empty name"):
            Template("{a}").render({"a": ""})

    def test_a_long_name_is_cut_and_hashed(self) -> None:
        names = {Template("sync:{a}").render({"a": "x" * 10_000 + str(n)}) for n in range(100)}
        assert len(names) == 100
        assert {len(name) for name in names} == {255}
        assert fit_name("sync:" + "x" * 10_000 + "0") in names

    def test_a_format_string_in_a_value_is_only_text(self) -> None:
        name = Template("sync:{a}").render({"a": "{a.__class__}"})
        assert name == "sync:%7Ba.__class__%7D"

    @given(
        st.text(st.characters(exclude_categories=())), st.text(st.characters(exclude_categories=()))
    )
    def test_the_separator_of_two_fields_cannot_be_forged(self, first: str, second: str) -> None:
        name = Template("x:{a}:{b}").render({"a": first, "b": second})
        assert check_name(name) == name
        if len(name) < 255:
            assert name.split(":") == ["x", encode_value(first, "a"), encode_value(second, "b")]
