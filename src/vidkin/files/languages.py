"""English names of the language codes in video files."""

from __future__ import annotations

# English names with their codes from ISO 639-1 and ISO 639-2 (both forms if there are two). Other codes are shown as
# is.
_LANGUAGES = (
    *("Arabic ar ara", "Bulgarian bg bul", "Catalan ca cat", "Chinese zh zho chi", "Croatian hr hrv"),
    *("Czech cs ces cze", "Danish da dan", "Dutch nl nld dut", "English en eng", "Estonian et est"),
    *("Finnish fi fin", "French fr fra fre", "German de deu ger", "Greek el ell gre", "Hebrew he heb"),
    *("Hindi hi hin", "Hungarian hu hun", "Icelandic is isl ice", "Indonesian id ind", "Italian it ita"),
    *("Japanese ja jpn", "Korean ko kor", "Latvian lv lav", "Lithuanian lt lit", "Malay ms msa may"),
    *("Norwegian no nor nob nno", "Persian fa fas per", "Polish pl pol", "Portuguese pt por"),
    *("Romanian ro ron rum", "Russian ru rus", "Serbian sr srp", "Slovak sk slk slo", "Slovenian sl slv"),
    *("Spanish es spa", "Swedish sv swe", "Tamil ta tam", "Telugu te tel", "Thai th tha", "Turkish tr tur"),
    *("Ukrainian uk ukr", "Urdu ur urd", "Vietnamese vi vie"),
)  # fmt: skip
_NAMES = {code: entry.split()[0] for entry in _LANGUAGES for code in entry.split()[1:]}
# Codes for undetermined, multiple and no languages.
_UNSTATED = frozenset({"", "und", "unk", "mis", "zxx", "mul", "qaa"})


def language_name(code: str) -> str:
    """Return the English name of a language code, the same for all codes of a language; empty if none is stated.

    >>> language_name("ger"), language_name("de-AT"), language_name("und"), language_name("tlh")
    ('German', 'German', '', 'tlh')
    """
    plain = code.strip().lower().replace("_", "-").partition("-")[0]
    return "" if plain in _UNSTATED else _NAMES.get(plain, plain)
