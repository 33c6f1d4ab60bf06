from __future__ import annotations

import enum
import re
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from django_latch.core.names import bucket, check_name, fit_name, percent_encode, shown
from django_latch.core.templates import encode_value
from django_latch.exceptions import LatchNameError

CONTROL = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029)]
SURROGATES = ["\ud800", "\udbff", "\udc00", "\udfff"]

any_text = st.text(st.characters(exclude_categories=()), max_size=400)
name_text = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="{}"), min_size=1
)


class Color(str, enum.Enum):  # noqa: UP042 - a StrEnum formats as its value, this one does not
    RED = "red"


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "invoice:42",
        "x" * 255,
        "räksmörgås",
        "发票:四十二",
        "👩‍👩‍👧",
        "two words",
        "100%",
        "a/b?c#d",
        "é" * 255,
    ],
)
def test_any_script_is_a_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("character", [*CONTROL, *SURROGATES])
@pytest.mark.parametrize("check", [check_name, fit_name])
def test_control_characters_and_surrogates_are_refused(check, character: str) -> None:
    with pytest.raises(LatchNameError, match=rf"U\+{ord(character):04X} at position 4") as caught:
        check(f"job:{character}")
    message = str(caught.value)
    assert message.isprintable()
    message.encode()


@pytest.mark.parametrize("name", ["report:{year}", "{", "}", "a{{b", "a}}"])
def test_braces_ask_for_the_f_of_an_f_string(name: str) -> None:
    with pytest.raises(LatchNameError, match="an f-string without its f") as caught:
        check_name(name)
    assert repr(name) in str(caught.value)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(LatchNameError, match="must not be empty"):
        check_name("")


def test_a_long_name_is_refused_with_its_length_and_a_bounded_quote() -> None:
    with pytest.raises(LatchNameError, match="has 10000") as caught:
        check_name("secret" + "x" * 9_994)
    assert "'secretxxx" in str(caught.value)
    assert len(str(caught.value)) < 250


def test_each_escape_of_a_quote_is_bounded_too() -> None:
    assert len(shown("\U000e0001" * 5_000)) < 700


@pytest.mark.parametrize("name", [None, 42, b"invoice", ["a"], object()])
def test_only_a_str_is_a_name(name: object) -> None:
    with pytest.raises(LatchNameError, match=f"must be a str, not {type(name).__name__}"):
        check_name(name)  # type: ignore[arg-type]


def test_a_name_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        check_name("")


def test_a_str_enum_names_by_its_text() -> None:
    name = check_name(Color.RED)
    assert type(name) is str
    assert f"{name}" == "red"


@given(any_text)
def test_a_text_is_accepted_as_it_is_or_refused_with_our_error(text: str) -> None:
    forbidden = {"{", "}", *CONTROL} | {each for each in text if "\ud800" <= each <= "\udfff"}
    if text and len(text) <= 255 and not forbidden & set(text):
        assert check_name(text) == text
        return
    with pytest.raises(LatchNameError) as caught:
        check_name(text)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1_000


def test_a_name_that_fits_is_not_changed() -> None:
    assert fit_name("x" * 255) == "x" * 255


def test_a_long_name_keeps_its_start_and_gets_a_digest_of_the_whole() -> None:
    fitted = fit_name("billing:" + "x" * 300)
    assert len(fitted) == 255
    assert fitted.startswith("billing:xxx")
    assert len(fitted.rpartition("~")[2]) == 32


def test_the_digest_is_the_same_in_each_release() -> None:
    assert fit_name("x" * 256)[-33:] == "~0b2c2b0de02938ad7a728b51e8da3357"


def test_long_names_that_differ_only_at_the_end_stay_apart() -> None:
    names = {fit_name("x" * 300 + str(number)) for number in range(1_000)}
    assert len(names) == 1_000


@given(
    st.lists(name_text.map(lambda text: (text * 300)[:400]), min_size=2, max_size=2, unique=True)
)
def test_long_names_stay_apart(pair: list[str]) -> None:
    first, second = map(fit_name, pair)
    assert first != second


@given(name_text.map(lambda text: text * 100))
def test_a_fitted_name_is_a_name_and_means_itself(text: str) -> None:
    fitted = fit_name(text)
    assert check_name(fitted) == fitted
    assert fit_name(fitted) == fitted


def test_what_would_be_cut_off_is_checked_too() -> None:
    with pytest.raises(LatchNameError, match=r"U\+0000 at position 300"):
        fit_name("x" * 300 + "\0")


def test_fit_name_refuses_an_empty_name() -> None:
    with pytest.raises(LatchNameError, match="must not be empty"):
        fit_name("")


@given(name_text, st.integers(1, 64))
def test_a_bucket_is_the_crc_of_the_utf8_name(name: str, count: int) -> None:
    assert bucket(name, count) == zlib.crc32(name.encode("utf-8")) % count


def test_a_bucket_is_the_same_in_each_release() -> None:
    assert bucket("123456789", 1) == 0
    assert bucket("123456789", 64) == 0xCBF43926 % 64


def test_names_spread_over_the_buckets() -> None:
    assert {bucket(f"invoice:{number}", 64) for number in range(2_000)} == set(range(64))


@given(any_text, any_text)
def test_encoded_texts_meet_only_if_they_are_equal(first: str, second: str) -> None:
    assert (encode_value(first, "p") == encode_value(second, "p")) == (first == second)


def test_the_pattern_says_what_is_encoded() -> None:
    assert percent_encode("a%é\ud800", re.compile("[%é\ud800]")) == "a%25%C3%A9%ED%A0%80"
