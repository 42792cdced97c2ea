"""Recognisers of personal data: what each finds, and what differs from it by a digit or a word."""

# ruff: noqa: RUF001, S104  wide digits and addresses are what is looked for

from __future__ import annotations

import pytest

from router.runtime.personal.finding import LABELS, Finding, Seen
from router.runtime.personal.payment import TEST_CARDS
from router.runtime.personal.rules import recognise


def found(text: str) -> list[tuple[str, str]]:
    return [(finding.rule, text[finding.start : finding.end]) for finding in recognise(Seen(text))]


VALID = [
    ("Write to jo.fields@example.org about it.", "email", "jo.fields@example.org"),
    ("an <Anna.Kowalska+x@mail.firma.com.pl>;", "email", "Anna.Kowalska+x@mail.firma.com.pl"),
    ("jörg.müller@müller.de schrieb", "email", "jörg.müller@müller.de"),
    ("https://x.de/?mail=jo@firma.de&a=1", "email", "jo@firma.de"),
    ("mailto:p@bücher.de?subject=x", "email", "p@bücher.de"),
    ("会议请联系 wang@qq.com。", "email", "wang@qq.com"),
    ("IBAN DE89 3704 0044 0532 0130 00 bitte", "iban", "DE89 3704 0044 0532 0130 00"),
    ("to GB82WEST12345698765432.", "iban", "GB82WEST12345698765432"),
    ("ES91 2100 0418 4502 0005 1332 BANK", "iban", "ES91 2100 0418 4502 0005 1332"),
    ("no9386011117947", "iban", "no9386011117947"),
    ("card 4539 5787 6362 1486 exp 12/27", "card", "4539 5787 6362 1486"),
    ("4539-5787-6362-1486", "card", "4539-5787-6362-1486"),
    ("amex 3714 496353 98423", "card", "3714 496353 98423"),
    ("id,card\n7,2720993485219340,x", "card", "2720993485219340"),
    ("卡号６２１７０００１３００２８３９４１７８。", "card", "６２１７０００１３００２８３９４１７８"),
    ("from 93.184.216.34:443 at noon", "ipv4", "93.184.216.34"),
    ("my IP is 1.2.3.4", "ipv4", "1.2.3.4"),
    ("http://93.184.216.34/a", "ipv4", "93.184.216.34"),
    ("[2606:2800:21f:cb07:6820:80da:af6b:8b2c]:443", "ipv6", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"),
    ("peer 2001:4860:4860::8888 is up", "ipv6", "2001:4860:4860::8888"),
    ("call 415-555-0134 please", "phone", "415-555-0134"),
    ("(415) 555-0134 after six", "phone", "(415) 555-0134"),
    ("+1 (415) 555-0134", "phone", "+1 (415) 555-0134"),
    ("Tel. +49 (30) 901820", "phone", "+49 (30) 901820"),
    ("415-555-0134x069", "phone", "415-555-0134x069"),
    ("+1-925-389-9139 ext. 44, ask", "phone", "+1-925-389-9139 ext. 44"),
    ("+49(0)30 901820", "phone", "+49(0)30 901820"),
    ("call me at 238.340.5551x0619 now", "phone", "238.340.5551x0619"),
    ("phone: +44 115 496 0256", "phone", "+44 115 496 0256"),
    ("maestro card 630413267711", "card", "630413267711"),
    ("tel:+14155550123 2024", "phone", "+14155550123"),
    ("Telefon: 030 901820", "phone", "030 901820"),
    ("06 12 34 56 78", "phone", "06 12 34 56 78"),
    ("020 7946 0958 is the office", "phone", "020 7946 0958"),
    ('{"phone": "4155550134"}', "phone", "4155550134"),
    ("电话13800138000。", "phone", "13800138000"),
    ("４１５-５５５-０１３４", "phone", "４１５-５５５-０１３４"),
    ("SSN 536-90-4399", "us_ssn", "536-90-4399"),
    ("social security number 536904399", "us_ssn", "536904399"),
    ("ITIN 912-70-1234", "us_ssn", "912-70-1234"),
    ("AB 12 34 56 C", "uk_nino", "AB 12 34 56 C"),
    ("Steuer-ID 86095742719", "de_steuer_id", "86095742719"),
    ("née, 2 69 05 49 588 157 80, Paris", "fr_nir", "2 69 05 49 588 157 80"),
    ("numéro de sécurité sociale 269054958815780", "fr_nir", "269054958815780"),
    ("DNI 12345678Z", "es_dni", "12345678Z"),
    ("NIE X1234567L", "es_dni", "X1234567L"),
    ("codice fiscale RSSMRA85T10A562S", "it_codice_fiscale", "RSSMRA85T10A562S"),
    ("BSN 111222333", "nl_bsn", "111222333"),
    ("身份证11010519491231002X", "cn_resident_id", "11010519491231002X"),
    ("Aadhaar 234123412346", "in_aadhaar", "234123412346"),
    ("2341 2341 2346", "in_aadhaar", "2341 2341 2346"),
    ("529.982.247-25", "br_cpf", "529.982.247-25"),
    ("CPF 52998224725", "br_cpf", "52998224725"),
    ("PESEL 44051401359", "pl_pesel", "44051401359"),
    ("personnummer 811218-9876", "se_personnummer", "811218-9876"),
    ("SIN 130 692 544", "ca_sin", "130 692 544"),
    ("My passport number is X1234567.", "document_number", "X1234567"),
    ("patient id: 8831207", "document_number", "8831207"),
    ("driver's license: D1234567", "us_driver_license", "D1234567"),
    ("key sk-proj-Ab3dEf01q3456z89AbCdEf0123456789", "vendor_key", "sk-proj-Ab3dEf01q3456z89AbCdEf0123456789"),
    ("AKIAJ2X4QWERTY7654ZZ", "vendor_key", "AKIAJ2X4QWERTY7654ZZ"),
    ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "vendor_key", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    (
        "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3",
        "vendor_key",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3",
    ),
    ("postgres://bob:hunter2x@db.intern/x", "url_credentials", "bob:hunter2x"),
    ("password: hunter22.", "assigned_secret", "hunter22"),
    ('OPENAI_API_KEY="9fQz27Lp0sWv"', "assigned_secret", "9fQz27Lp0sWv"),
    ("Authorization: Bearer abQ9-eR4tY7uI0pA3sD5fG", "bearer_token", "abQ9-eR4tY7uI0pA3sD5fG"),
]
"""Text, the rule that finds it, and where."""


@pytest.mark.parametrize(("text", "rule", "span"), VALID, ids=lambda value: str(value)[:40])
def test_what_is_found(text: str, rule: str, span: str) -> None:
    assert found(text) == [(rule, span)]


NOTHING = [
    *(
        "user@example.com",
        "you@example.org",
        "noreply@firma.de",
        "git@github.com:a/b.git",
        "icon@2x.png",
        "lodash@4.17.21",
    ),
    *("root@box.local", "a@b", "@dataclass class User", "x@@y.de", "import a.b from @scope/pkg"),
    *("DE88 3704 0044 0532 0130 00", "DE89 3704 0044 0532 0130", "XX89370400440532013000", "XDE89370400440532013000"),
    *(
        "4539 5787 6362 1487",
        "card 1539578763621486",
        "630413267711",
        "45395787636214860",
        "order 4539578763621486",
        "a4539578763621486",
    ),
    *("4539-5787-6362-1486-2222", '{"order_id": 4539578763621486}', "4539578763621486.5"),
    *(
        "127.0.0.1",
        "192.168.1.10",
        "10.2.0.1",
        "203.0.113.7",
        "198.51.100.1",
        "0.0.0.0",
        "255.255.255.255",
        "224.0.0.1",
    ),
    *(
        "version 1.2.3.4",
        "v93.184.216.34",
        "Chrome/93.0.4577.82",
        "numpy==93.184.216.34",
        "93.184.216.34.5",
        "93.184.216.340",
    ),
    *("1.2.3.4", "OID 93.184.216.34 is", "::1", "fe80::1", "2001:db8::1", "x[::2]", "std::cafe", "12:30:45"),
    *(
        "created_at 1755302400",
        '{"product_id": 3074185296}',
        "Order 4155550134 is late",
        "part 415-555-01345",
        "x = a+12 34 56 78",
    ),
    *(
        "1000 + 20 30 40 50",
        "2024-01-31 12:30:00",
        "call ticket 4155550134",
        "logprob=-7.0390625 phone",
        "252.227-7013",
        "+123",
    ),
    *(
        "000-12-3456",
        "666-12-3456",
        "123-00-4567",
        "123-45-0000",
        "078-05-1120",
        "950-10-1234",
        "536904399",
        "1536-90-4399",
    ),
    *(
        "DF 12 34 56 C",
        "GB 12 34 56 C",
        "AB 12 34 56 E",
        "Steuer-ID 86095742718",
        "Steuer-ID 11111111111",
        "86095742719",
    ),
    *("2 69 05 49 588 157 81", "DNI 12345678A", "NIE X1234567M", "RSSMRA85T10A562T", "BSN 111222334", "111222333"),
    *("110105194912310021", "11010519491331002X", "Aadhaar 234123412347", "234123412346", "1111 2341 2341 2346 1111"),
    *(
        "529.982.247-26",
        "52998224725",
        "111.111.111-11",
        "PESEL 44051401358",
        "44051401359",
        "811218-9875",
        "811318-9876",
    ),
    *(
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "550e8400-e29b-41d4-a716-446655440000",
        "the sk-learn-pipelines package",
    ),
    *(
        "sk-your-api-key-goes-here-0000000",
        "AKIAIOSFODNN7EXAMPLE",
        "password: ${DB_PASSWORD_1}",
        "password: <your-password-1>",
    ),
    *(
        "password = settings.db_password1",
        "token = tokens[1:]",
        "https://user:password@example.com",
        "the password is missing",
    ),
    *(
        "publicKeyToken=1fc8b3b9a1e18e3b",
        "passwords: see 4.2.1",
        '-----BEGIN PRIVATE KEY-----" + body',
        "#3fa2c1",
        "token: 123456",
    ),
    *(
        "ba563de7-a44d-a0dd-2742-c22dd48ff396",
        "17edea8f-3942-ee16-7c8f-a2bd6867adcd",
        "part 238.340.5551",
        "+44 115 496 0256",
        "xmax=[05 06 07 08 09]",
        "The patients waited 1234567 seconds",
        "X1234567",
        "https://bob@firma.de/x",
        "ssh://git@firma.de:22/x",
    ),
]


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_not(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("number", sorted(TEST_CARDS))
def test_cards_that_providers_publish_are_nobodys(number: str) -> None:
    assert found(f"card {number}") == []


def test_a_private_key_to_its_end_or_to_that_of_the_text() -> None:
    begin, body = "-----BEGIN RSA PRIVATE KEY-----", "MIIEowIBAAKCAQEA7bq1m2p3YfZkQx5c8v9n0w\n" * 4
    key = f"{begin}\n{body}-----END RSA PRIVATE KEY-----"
    assert found(f"see {key} there") == [("private_key", key)]
    assert found(f"{begin}\n{body}") == [("private_key", f"{begin}\n{body}")]
    assert found(f"{key}\n{key}") == [("private_key", key)] * 2


def test_of_two_that_overlap_the_stronger_stays() -> None:
    assert found("password: ghp_16C7e42F292c6912E7710c838347Ae178B4a") == [
        ("vendor_key", "ghp_16C7e42F292c6912E7710c838347Ae178B4a")
    ]
    assert found("https://bob:s3cret99@mail.firma.de/x") == [("url_credentials", "bob:s3cret99")]


def test_a_text_holds_many() -> None:
    text = "Anna, anna@firma.de, 415-555-0134, DE89370400440532013000 😀 and bob@firma.de"
    assert [name for name, _ in found(text)] == ["email", "phone", "iban", "email"]
    assert all(finding.label in LABELS for finding in recognise(Seen(text)))


def test_findings_are_compared_by_value() -> None:
    assert recognise(Seen("x bob@firma.de")) == [Finding(2, 14, "EMAIL_ADDRESS", "email")]


def test_half_a_surrogate_pair_is_a_character_like_any_other() -> None:
    text = "\ud83d call \ude00 415-555-0134 \ud800 password: hunter22"
    assert [name for name, _ in found(text)] == ["phone", "assigned_secret"]
