"""What counts as private, however it is written, and what does not."""

from __future__ import annotations

import base64
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lc_memory.facts.privacy import (
    NAMES,
    has_blanks,
    kinds_in_words,
    passed,
    private_in,
    redacted,
    without_blanks,
)
from tests.data import EXCERPTS

# None of these belongs to anybody: numbers of plans' examples, made-up ids with right checksums, test cards.
PHONE, ID, CARD = "13812345678", "11010519491231002X", "6222021234567890128"

DISGUISES: list[tuple[str, str, str, bool]] = [
    # what, how, the text, whether it is found
    ("phone", "plain", f"我的手机是{PHONE}，有事打给我", True),
    ("phone", "in groups by spaces", "138 1234 5678", True),
    ("phone", "in groups by dashes", "138-1234-5678", True),
    ("phone", "in groups by dots", "138.1234.5678", True),
    ("phone", "a digit at a time", "1 3 8 1 2 3 4 5 6 7 8", True),
    ("phone", "between Chinese commas", "1，3，8，1，2，3，4，5，6，7，8", True),
    ("phone", "a digit a line", "\n".join(PHONE), True),
    ("phone", "full-width", "１３８１２３４５６７８", True),
    ("phone", "circled", "①③⑧①②③④⑤⑥⑦⑧", True),
    ("phone", "keycaps", "".join(f"{d}\ufe0f\u20e3" for d in PHONE), True),
    ("phone", "Devanagari digits", "१३८१२३४५६७८", True),
    ("phone", "invisible spaces between", "\u200b".join(PHONE), True),
    ("phone", "Chinese digits", "一三八一二三四五六七八", True),
    ("phone", "Chinese digits as told aloud", "幺三八幺二三四五六七八一直打不通", True),
    ("phone", "Chinese bank numerals", "壹叁捌壹贰叁肆伍陆柒捌", True),
    ("phone", "English words", "one three eight one two three four five six seven eight", True),
    ("phone", "with the country", "+86 138 1234 5678", True),
    ("phone", "with the country's exit code", "008613812345678", True),
    ("phone", "a landline in brackets", "座机(021) 54321234", True),
    ("phone", "American", "call me at 415-555-2671", True),
    ("phone", "in a URL", f"https://x.com/?phone={PHONE}&lang=zh", True),
    ("phone", "percent-encoded in a URL", "".join(f"%{ord(d):x}" for d in PHONE), True),
    ("phone", "in JSON", f'{{"user": {{"tel": {PHONE}}}}}', True),
    ("phone", "escaped in JSON", "".join(f"\\u{ord(d):04x}" for d in PHONE), True),
    ("phone", "as HTML entities", "".join(f"&#{ord(d)};" for d in PHONE), True),
    ("phone", "split over two messages", "1381234\n5678", True),
    ("phone", "split, with words between", "前一半是1381234\n后一半是5678", False),
    ("phone", "backwards", PHONE[::-1], False),
    ("phone", "letters for digits", "l38l2345678", False),
    ("phone", "in base64", base64.b64encode(PHONE.encode()).decode(), False),
    ("id", "with a checksum, in groups", "110105 19491231 002X", True),
    ("id", "its end, by name", "身份证后四位是 1234", True),
    ("card", "in groups of four", "6222 0212 3456 7890 128", True),
    ("card", "an IBAN", "DE89 3704 0044 0532 0130 00", True),
    ("mail", "full-width", "xiaoming＠example．com", True),
    ("mail", "in words", "xiaoming at example dot com", True),
    ("password", "named", "wifi 密码是 hunter2", True),
    ("password", "in a URL", "postgres://bob:hunter2@db/app", True),
    ("password", "a sentence", "密码是我家猫的名字加生日", False),
    ("key", "by its form", "用这个 sk-abcdefghijklmnopqrst1234 就行", True),
]  # fmt: skip


def test_there_are_forty_disguises() -> None:
    assert len(DISGUISES) == 40


@pytest.mark.parametrize(
    ("kind", "text", "found"),
    [(kind, text, found) for kind, _, text, found in DISGUISES],
    ids=[f"{kind}, {how}" for kind, how, _, _ in DISGUISES],
)
def test_private_data_in_disguise(kind: str, text: str, found: bool) -> None:
    kinds = [p.kind for p in private_in(text)]
    assert (kind in kinds) is found, "tell the table in privacy.py as well"


ALSO_PRIVATE = [
    ("id", f"身份证号{ID}"), ("id", ID.lower()), ("id", "护照号 E12345678"), ("id", "my SSN is 219-09-9999"),
    ("card", CARD), ("card", "4111 1111 1111 1111"), ("card", "卡号 6222 0212 3456 7890"),
    ("card", "工行卡尾号 4321"), ("card", "cvv 123"), ("phone", "电话 54321234"), ("phone", "021-54321234"),
    ("phone", "+1 (415) 555-2671"), ("phone", "QQ 号是 123456789"), ("mail", "a%40b.cn"),
    ("mail", "mailto:xiao.ming+x@mail.example.co.uk"), ("mail", "xiaoming (at) example.com"), ("mail", "xm艾特qq点com"),
    ("mail", "小明@例子.中国"), ("password", "密码：abcdef"), ("password", "my password is swordfish"),
    ("password", '{"pwd": "x1y2z3"}'), ("password", "PIN is 4321"), ("password", "验证码 928374"),
    ("password", "密码123456"), ("password", "the password for the guest wifi is sunflower99"),
    ("key", "?token=abc123def456"), ("key", "Authorization: Bearer abcdef1234567890"),
    ("key", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"), ("key", "AKIAIOSFODNN7EXAMPLE"),
    ("key", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcdefghijk"),
    ("key", "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text"), ALSO_PRIVATE, ids=[t[:40] for _, t in ALSO_PRIVATE])
def test_private_data_of_every_kind(kind: str, text: str) -> None:
    assert kind in [p.kind for p in private_in(text)]


@pytest.mark.parametrize(
    "text",
    [
        "订单号 2024113000012345", "订单 1234567890123456", "快递 SF1234567890123", "预算 400000 元",
        "13,800,138,000", "我每天流水 4000，上个月 12.8 万", "1 3 5 7 9 11 13 15", "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11",
        "圆周率 3.14159265358979", "0.13812345678", "2024-11-30 12:45:59", "2023.11.30-2024.11.30", "1700000000",
        "1700000000000", "在 2019 2020 2021 2022 年都去过", "密码忘了怎么办", "密码要 8 位以上", "密码 2024 年改过",
        "my password is too weak", "a password manager", "the password is wrong", "password-protected files", "the password for the site is wrong", "密码8位以上", "密码2024年改过",
        "git@github.com:org/repo.git", "ask @bob. yes that", "npm i @types/node@18.0.0", "look at example.com",
        "一二三四五六日都行", "一九九八年出生", "我一九九八年五月出生，二〇二四年结婚",
        "commit 3f2a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d4e3f2a", "客服 400-810-6666", "isbn 978-7-111-12345-6",
        "身份证 2019 年过期了", "信用卡额度 5000", "10:30 13:45 15:20", "1920x1080", "192.168.100.123", "1.2.3.4.5.6.7",
        "pin this message", "token 数 12000", "the token limit is 128000", "550e8400-e29b-41d4-a716-446655440000",
        "手机是 iPhone 15 Pro", "手机 256G", "电话费 100", "three eggs, two cups", "1,024 2024-11-30", "021 2024-11-30 12:00", "周期 0 2 4 6 8 天", "第 12 3 45 67 89 页", "",
    ],
)  # fmt: skip
def test_ordinary_numbers_and_talk_are_not_private(text: str) -> None:
    assert private_in(text) == []


TEXTS = EXCERPTS / "private_texts.jsonl"


def rows() -> list[dict[str, str]]:
    return [json.loads(line) for line in TEXTS.read_text("utf-8").splitlines()]


def test_private_data_as_people_write_it() -> None:
    """What people write to an assistant with private data in it, and what is known not to be found.

    Two lines of three were written apart from the detector, by somebody who had not seen it, and 80 of the 221
    private ones among them were not found; it was then mended with them in hand, so that they show what is
    found today and are no measure of what will be. The other lines came with the mending. A line is a ``text``, the ``kind`` of
    what is private in it, the ``secret`` as it stands there, and ``found``: false where it is known not to be.
    The values are made up and belong to nobody; a letter of each key is escaped, lest a scanner takes it for
    one that leaked.
    """
    wrong = []
    for row in rows():
        if "secret" in row:
            at = row["text"].index(row["secret"])
            where = range(at, at + len(row["secret"]))
            hidden = sum(any(p.start <= i < p.end for p in private_in(row["text"])) for i in where)
            if (hidden >= 0.75 * len(where)) is not row.get("found", True):  # "!" may stay behind it
                wrong.append(row)
    assert wrong == []


def test_what_people_write_with_nothing_private_in_it() -> None:
    """Numbers, codes, versions and talk about passwords, from the same hands as the private texts."""
    assert [row["text"] for row in rows() if "secret" not in row and private_in(row["text"])] == []


@pytest.mark.parametrize(
    "part",
    [
        "1 1 1 ", "1-", "(1", "a", "a b ", "a@", "a at ", "sk-", "eyJ-", "SG.", "://a:", "密码是", "密码是从pw=是", "password for for ",
        "验证码 1 ", "密码abc123和", "a1b2是我的", "hunter2 is my ", "curl -u ", "助记词 apple ", "身份证号", "NI ", "DE12 1234 ",
        "我的号码", "一1", "one ", "%31", "аa", "-----BEGIN PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_a_long_text_of_anything_takes_time_in_proportion(part: str) -> None:
    def seconds(length: int) -> float:
        started = time.process_time()
        private_in((part * length)[:length])
        return time.process_time() - started

    seconds(100)  # loads the numbering plans
    short, long = seconds(5_000), seconds(20_000)
    assert long < 8 * short + 0.2, "four times in proportion, sixteen times with the square of the length"


@pytest.mark.parametrize(
    ("text", "blank"),
    [
        ("my pin is four oh eight one two two nine, ok?", "my pin is [password], ok?"),
        ("SSN five three one, seven two, eight four zero six!", "SSN [identity number]!"),
        ("我台灣手機 0937-482-615，謝謝", "我台灣手機 [电话号码]，謝謝"),
        ("pаssword: falcon_314, да", "pаssword: [password], да"),
        ("密碼改成了 moon-River77 喔", "密碼改成了 [密码] 喔"),
    ],
)
def test_what_is_read_in_another_script_is_taken_out_where_it_stands(text: str, blank: str) -> None:
    assert redacted(text) == blank


def test_what_is_taken_out_is_named_in_the_language_of_the_text_and_the_rest_stays() -> None:
    assert redacted(f"我叫小明，电话{PHONE}，住南山") == "我叫小明，电话[电话号码]，住南山"
    assert redacted("Write to a@b.com or c@d.org!") == "Write to [mail address] or [mail address]!"
    assert redacted("nothing here") == "nothing here"


def test_the_three_ways_to_treat_it() -> None:
    text = f"我的电话是{PHONE}"
    assert passed(text, "off") == (text, [])
    assert passed(text, "refuse")[0] is None
    assert passed(text, "redact")[0] == "我的电话是[电话号码]"
    assert passed(PHONE, "redact")[0] is None, "nothing is left of it"
    assert passed("我叫小明", "refuse") == ("我叫小明", [])


def test_people_are_told_the_kind_and_never_the_data() -> None:
    found = private_in(f"{PHONE}, a@b.com, {CARD}")
    assert kinds_in_words(found) == "a phone number, a mail address and a bank card number"
    assert kinds_in_words(found, "zh") == "电话号码、邮箱地址、银行卡号"
    assert kinds_in_words(private_in(ID)) == "an identity number"


@given(st.text(max_size=60), st.text(max_size=60))
def test_nothing_private_is_left_after_it_was_taken_out(before: str, after: str) -> None:
    text = f"{before}\n手机：{PHONE}；{after}"
    blank = redacted(text)
    assert PHONE not in blank
    assert has_blanks(blank)
    assert PHONE not in without_blanks(blank)


@given(st.text())
def test_every_stretch_lies_in_the_text_and_none_overlaps(text: str) -> None:
    at = 0
    for found in private_in(text):
        assert at <= found.start < found.end <= len(text)
        assert found.kind in NAMES["en"]
        at = found.end
