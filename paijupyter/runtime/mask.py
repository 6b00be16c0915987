"""Hide secret values in a stream of bytes, also where a value is cut over two reads."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterable, List, Set

MASK = b"***"
SHORTEST = 4  # bytes; a shorter value would blot out half of every log and hides nothing
SHORTEST_PART = 8  # bytes of a line or of an encoded form that is hidden on its own


def forms(value: bytes) -> "Set[bytes]":
    """Return every byte string that gives a secret away: itself, its lines, and its usual encodings."""
    found: "Set[bytes]" = set()
    whole = value.strip(b"\r\n")
    if len(whole) < SHORTEST:
        return found
    found.add(whole)
    lines = [line.strip() for line in whole.splitlines()]
    if len(lines) > 1:
        found.update(line for line in lines if len(line) >= SHORTEST_PART)
    found.update(form for form in _encoded(whole) if len(form) >= SHORTEST_PART)
    return found


def _encoded(value: bytes) -> "Iterable[bytes]":
    """Yield the JSON, URL and base64 forms; base64 in each of its three alignments, shared digits cut."""
    import base64
    import json

    text = value.decode("utf-8", "surrogateescape")
    for escaped in (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]):
        yield escaped.encode("utf-8", "surrogateescape")
        yield escaped.replace("/", "\\/").encode("utf-8", "surrogateescape")
    for quoted in _quoted(value):
        yield quoted
    yield base64.b64encode(value)
    yield base64.urlsafe_b64encode(value)
    for shift in range(3):
        digits = base64.b64encode(b"\0" * shift + value).rstrip(b"=")
        start = (shift * 8 + 5) // 6
        end = (shift + len(value)) * 8 // 6
        yield digits[start:end]
        yield digits[start:end].replace(b"+", b"-").replace(b"/", b"_")


def _quoted(value: bytes) -> "Iterable[bytes]":
    """Yield the URL forms: what a library leaves as it is differs, and so does the case of the digits."""
    import re
    from urllib.parse import quote_from_bytes

    for safe in ("", "/", "!'()*", ";/?:@&=+$,#!'()*"):  # the last two: encodeURIComponent, encodeURI
        quoted = quote_from_bytes(value, safe=safe)
        for text in (quoted, quoted.replace("%20", "+")):
            yield text.encode("ascii")
            yield re.sub("%..", lambda digits: digits.group().lower(), text).encode("ascii")


class Mask:
    """A filter for one stream.

    What :meth:`feed` and :meth:`finish` return together does not depend on how the stream is cut: it is the
    stream with every leftmost, longest occurrence of a hidden form replaced by ``***``.
    """

    def __init__(self, values: "Iterable[bytes]") -> None:
        patterns: "Set[bytes]" = set()
        for value in values:
            patterns |= forms(value)
        self.patterns: "List[bytes]" = sorted(patterns, key=lambda form: (-len(form), form))
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        """Take the next bytes; return what may be shown. The begin of a form is held until it is decided."""
        if not self.patterns:
            return data
        return self._pass(self._held + data, last=False)

    def finish(self) -> bytes:
        """Return what is still held; the stream has ended."""
        if not self.patterns:
            return b""
        return self._pass(self._held, last=True)

    def _pass(self, data: bytes, last: bool) -> bytes:
        shown = []
        position = 0
        hold = len(data) if last else self._undecided(data, 0)
        # Plain searches for every form, each done once: far faster than one expression of alternatives.
        places = {form: data.find(form) for form in self.patterns}
        places = {form: place for form, place in places.items() if place >= 0}
        while places:
            form = min(places, key=lambda form: (places[form], -len(form)))
            if places[form] >= hold:
                break
            shown += [data[position : places[form]], MASK]
            position = places[form] + len(form)
            if position > hold:
                hold = self._undecided(data, position)
            for passed in [each for each, place in places.items() if place < position]:
                places[passed] = data.find(passed, position)
                if places[passed] < 0:
                    del places[passed]
        shown.append(data[position:hold])
        self._held = data[hold:]
        return b"".join(shown)

    def _undecided(self, data: bytes, position: int) -> int:
        """Return where the first proper begin of a form starts that the end of the data cuts off."""
        first = len(data)
        for form in self.patterns:
            start = max(position, len(data) - len(form) + 1)
            while start < first:
                start = data.find(form[:1], start, first)
                if start < 0:
                    break
                if form.startswith(data[start:]):
                    first = start
                    break
                start += 1
        return first
