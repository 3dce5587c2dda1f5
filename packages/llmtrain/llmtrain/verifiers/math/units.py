"""Units of answers: reading and converting them.

conversion("cm", "m")                1/100
conversion("km", "s")                None: not of the same kind
conversion("apples", "pieces")       1: counted things
"""

import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

Kind = tuple[tuple[str, Fraction], ...]
"""Base quantities with their exponents, in the order of their names."""
_PREFIXES: dict[str, int | str] = {"k": 1000, "kilo": 1000, "M": 10**6, "mega": 10**6, "G": 10**9, "giga": 10**9}
_PREFIXES |= {"T": 10**12, "tera": 10**12}
_PREFIXES |= {"d": "1/10", "deci": "1/10", "c": "1/100", "centi": "1/100", "m": "1/1000", "milli": "1/1000"}
_PREFIXES |= {"μ": "1/1000000", "u": "1/1000000", "micro": "1/1000000", "n": "1/1000000000", "nano": "1/1000000000"}
_PREFIXED: dict[str, tuple[str, int | str]] = {
    "m meter metre": ("length", 1),
    "g gram gramme": ("mass", 1),
    "s sec second": ("time", 1),
    "L l liter litre": ("length3", "1/1000"),
    "N newton": ("force", 1),
    "J joule": ("energy", 1),
    "W watt": ("power", 1),
    "V volt": ("voltage", 1),
    "A ampere amp": ("current", 1),
    "Hz hertz": ("frequency", 1),
    "Pa pascal": ("pressure", 1),
    "eV": ("electronvolt", 1),
    "mol mole": ("amount", 1),
    "erg": ("erg", 1),
    "Wh": ("energy", 3600),
    "cal calorie": ("calorie", 1),
    "B byte": ("information", 1),
    "ohm": ("resistance", 1),
}
_PLAIN: dict[str, tuple[str, int | str]] = {
    "in inch inches": ("length", "254/10000"),
    "ft foot feet": ("length", "3048/10000"),
    "yd yard": ("length", "9144/10000"),
    "mi mile": ("length", "1609344/1000"),
    "oz ounce": ("mass", "45359237/1600000"),
    "lb pound": ("mass", "45359237/100000"),
    "ton tonne": ("mass", 10**6),
    "min minute": ("time", 60),
    "h hr hour": ("time", 3600),
    "day": ("time", 86400),
    "week": ("time", 604800),
    "month": ("month", 1),
    "year yr": ("month", 12),
    "hectare ha": ("length2", 10000),
    "acre": ("length2", "40468564224/10000000"),
    "gallon gal": ("length3", "3785411784/1000000000000"),
    "quart": ("length3", "946352946/1000000000000"),
    "pint": ("length3", "473176473/1000000000000"),
    "cup": ("length3", "2365882365/10000000000000"),
    "tablespoon tbsp": ("length3", "147867647813/10000000000000000"),
    "teaspoon tsp": ("length3", "492892159375/100000000000000000"),
    "bar": ("pressure", 100000),
    "atm": ("pressure", 101325),
    "psi": ("pressure", "689475729/100000"),
    "KB": ("information", 1000),
    "degree deg °": ("angle", "1/180"),
    "radian rad": ("radian", 1),
    "arcmin": ("angle", "1/10800"),
    "arcsec": ("angle", "1/648000"),
    "celsius centigrade C coulomb": ("celsius", 1),
    "fahrenheit F farad": ("fahrenheit", 1),
    "kelvin K": ("kelvin", 1),
    "dollar usd $": ("dollar", 1),
    "cent ¢": ("dollar", "1/100"),
    "euro eur €": ("euro", 1),
    "gbp £": ("sterling", 1),
    "yen jpy ¥": ("yen", 1),
    "yuan cny rmb": ("yuan", 1),
    "rupee inr rs rs. ₹": ("rupee", 1),
}
_SPELLED = {"mph": "mi/h", "kph": "km/h", "kmph": "km/h"}
_WORD = re.compile(r"([a-zA-Zμ°$¢€£¥₹']+)\.?(?:\^?\{?(-?\d)\}?)?")


@lru_cache(maxsize=1)
def _known() -> Mapping[str, tuple[str, Fraction]]:
    found: dict[str, tuple[str, Fraction]] = {}
    for names, (kind, factor) in _PLAIN.items():
        found |= {name: (kind, Fraction(factor)) for name in names.split()}
    for names, (kind, factor) in _PREFIXED.items():
        for name in names.split():
            found[name] = kind, Fraction(factor)
            long = len(name) > 2 and name not in ("mol", "sec", "amp", "erg", "ohm", "cal")
            for prefix, by in _PREFIXES.items():
                if (len(prefix) > 2) == long or name in ("mol", "erg", "ohm", "cal"):
                    found.setdefault(prefix + name, (kind, Fraction(factor) * Fraction(by)))
    return found


def _one(word: str) -> tuple[str, Fraction] | None:
    known = _known()
    for name in (word, word.lower(), word.lower().removesuffix("s")):
        if name in known:
            return known[name]
    return None


@lru_cache(maxsize=1024)
def unit(words: str) -> tuple[Kind, Fraction] | None:
    """Return the kind of a unit such as "cm^2" or "square feet", and its size in base units; None if unknown."""
    text = re.sub(r"\\(?:text|mathrm|mbox|textbf|rm)(?![a-z])|\\[,;: !]|[~{}()]", " ", words).replace("\\", " ")
    text = re.sub(r"\s*\^\s*", "^", re.sub(r"(?<=[\w$€£¥₹])\s+per\s+(?=\w)", "/", text.strip(" .")))
    text = re.sub(r"(?i)\bdeg(?:rees?)?\s+(?=(?:c|celsius|centigrade|f|fahrenheit|kelvins?)\b)", "", text)
    squared, cubed = (re.search(rf"\b(?:{names})\b", text) for names in ("sq|square|squared", "cu|cubic|cubed"))
    power = 2 if squared else 3 if cubed else 1
    text = re.sub(r"\b(?:sq|square|squared|cu|cubic|cubed)\b\.?", " ", text)
    kinds: dict[str, Fraction] = {}
    size = Fraction(1)
    for i, side in enumerate(re.sub(r"\b(?:mph|kmph|kph)\b", lambda m: _SPELLED[m[0]], text).split("/")):
        for found in _WORD.finditer(side):
            one = _one(found[1])
            if one is None:
                return None
            exponent = int(found[2] or 1) * (power if i == 0 else 1) * (1 if i == 0 else -1)
            name = one[0].rstrip("23")
            kinds[name] = kinds.get(name, Fraction(0)) + exponent * int(one[0][len(name) :] or 1)
            size *= one[1] ** exponent
    return (tuple(sorted((k, n) for k, n in kinds.items() if n)), size) if kinds else None


def conversion(given: str, wanted: str) -> Fraction | None:
    """Return the factor from one unit to another; None if they differ in kind. Words that are no unit count things."""
    a, b = unit(given), unit(wanted)
    if a is None and b is None:
        return Fraction(1)
    if a is None or b is None or a[0] != b[0]:
        return None
    return a[1] / b[1]
