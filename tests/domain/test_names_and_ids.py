"""Names of queues and ids of messages: their grammar, and what an id says."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hq.domain.ids import MAX_SEQUENCE, MessageId, sequence_in, sequence_of
from hq.domain.names import is_under, queue_name
from hq.errors import InvalidInput, MessageNotFound

NUMBERS = st.integers(0, (1 << 32) - 1)
IDS = st.builds(MessageId, NUMBERS, NUMBERS, st.integers(0, MAX_SEQUENCE))


@pytest.mark.parametrize(
    "name", ["a", "A", "0", "_", "_jobs", "mail.send", "mail.send-now", "a-", "a_.b", "x" * 128, "a.-b"]
)
def test_a_good_name_is_a_name(name):
    assert queue_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "", ".", ".a", "a.", "a..b", "-a", "a b", "a/b", "a\n", "é", "٣", "x" * 129, "a:b", "a*", None, 1,
        b"a",
    ],
)  # fmt: skip
def test_a_bad_name_is_refused(name):
    with pytest.raises(InvalidInput):
        queue_name(name)


def test_names_are_told_apart_by_case():
    assert queue_name("Jobs") != queue_name("jobs")


@given(st.text(alphabet="aZ0_.- é\n", max_size=6))
def test_a_name_is_dot_separated_segments_of_which_none_is_empty(text):
    good = set(text) <= set("aZ0_.-") and all(text.split(".")) and not text.startswith("-")

    try:
        assert (queue_name(text), good) == (text, True)
    except InvalidInput:
        assert not good


@pytest.mark.parametrize(
    ("name", "prefix", "expected"),
    [
        ("mail.send", "mail", True),
        ("mail", "mail", True),
        ("mail", "", True),
        ("mailing", "mail", False),
        ("mail", "mail.send", False),
        ("Mail.send", "mail", False),
    ],
)
def test_a_prefix_ends_at_a_dot(name, prefix, expected):
    assert is_under(name, prefix) is expected


@given(IDS)
def test_an_id_comes_back_from_its_text(message_id):
    assert MessageId.parse(str(message_id)) == message_id


@given(IDS)
def test_an_id_is_a_uuid_of_version_8(message_id):
    value = uuid.UUID(str(message_id))

    assert (value.version, value.variant) == (8, uuid.RFC_4122)


@given(IDS, IDS)
def test_ids_sort_by_incarnation_queue_and_sequence(first, second):
    assert (str(first) < str(second)) == (first < second)


def test_an_id_is_read_in_any_spelling_of_a_uuid():
    message_id = MessageId(1, 2, 3)
    text = str(message_id)

    assert MessageId.parse(text.upper()) == MessageId.parse(text.replace("-", "")) == message_id


@pytest.mark.parametrize("text", ["", "no", "0" * 31, None, 7])
def test_what_is_no_uuid_is_no_id(text):
    with pytest.raises(InvalidInput):
        MessageId.parse(text)


@pytest.mark.parametrize("version", [1, 4, 5])
def test_a_uuid_of_another_make_names_no_message(version):
    foreign = uuid.UUID(int=uuid.UUID(str(MessageId(1, 2, 3))).int, version=version)

    with pytest.raises(MessageNotFound):
        MessageId.parse(str(foreign))


def test_an_id_of_this_incarnation_names_its_sequence():
    assert sequence_of(MessageId(9, 2, 77), 2, 9, {}) == 77


def test_an_id_of_another_queue_is_not_found():
    with pytest.raises(MessageNotFound):
        sequence_of(MessageId(9, 3, 77), 2, 9, {})


def test_an_id_of_an_unknown_incarnation_is_not_found():
    with pytest.raises(MessageNotFound):
        sequence_of(MessageId(8, 2, 77), 2, 9, {7: 100})


def test_an_id_from_before_a_restore_is_good_up_to_the_restored_sequence():
    older = {8: 50}

    assert sequence_of(MessageId(8, 2, 50), 2, 9, older) == 50
    with pytest.raises(MessageNotFound):
        sequence_of(MessageId(8, 2, 51), 2, 9, older)


def parsed(text, *place):
    return sequence_of(MessageId.parse(text), *place)


def outcome_of(find, *arguments):
    try:
        return find(*arguments)
    except (InvalidInput, MessageNotFound) as refusal:
        return refusal.code, str(refusal)


@given(IDS, NUMBERS, NUMBERS, st.integers(0, 40), st.text("0123456789abcdefABCDEF-_+ z", max_size=3))
def test_an_id_as_text_names_what_the_id_names(message_id, queue, incarnation, at, other):
    text = str(message_id)
    for candidate in (text, text[:at] + other + text[at + len(other) :], text.upper()):
        for of_queue, of_store in ((message_id.queue, message_id.incarnation), (queue, incarnation)):
            place = (candidate, of_queue, of_store, {incarnation: 1_000})
            assert outcome_of(sequence_in, *place) == outcome_of(parsed, *place)
