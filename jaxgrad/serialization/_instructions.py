"""An interpreter of the few pickle instructions that make data.

It knows the instructions for numbers, strings, tuples, lists, dicts and sets. What a name in the
file stands for, and what is made of it, is in a table (`_objects.py`): no name is looked up in a
module, and no function of a file's choice is called. Every other instruction raises RefusedFile
with its name and its position. PEPs 307, 3154 and 574 describe the format.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict, defaultdict

from ..core import device, dtypes
from ..core.aval import Size
from ..tape.tensor import Tensor
from ._refused import EndedFile, RefusedFile, UndecodedText, shown
from ._source import Source

NEWEST_PROTOCOL = 5

CHUNK = 1 << 18

# What the objects of a file may take: this, and so many bytes for each byte of instructions. The
# costs are estimates of CPython's sizes.
ALLOWANCE, FOR_EACH_BYTE = 16 << 20, 32
CONTAINER, ITEM = 232, 100

LONGEST_NAME = 200

# of tuples as keys
DEEPEST_KEY, LONGEST_KEY, MOST_EQUAL_HASHES = 8, 1000, 20

REFUSED = {
    b"2": "DUP",
    b"F": "FLOAT",
    b"I": "INT",
    b"L": "LONG",
    b"P": "PERSID",
    b"S": "STRING",
    b"V": "UNICODE",
    b"d": "DICT",
    b"g": "GET",
    b"i": "INST",
    b"l": "LIST",
    b"o": "OBJ",
    b"p": "PUT",
    b"\x82": "EXT1",
    b"\x83": "EXT2",
    b"\x84": "EXT4",
    b"\x92": "NEWOBJ_EX",
    b"\x97": "NEXT_BUFFER",
    b"\x98": "READONLY_BUFFER",
}

DICTS = (dict, OrderedDict, Counter, defaultdict)


class Keys:
    """Checks the keys of dicts and the elements of sets: a file could make hashing and comparing
    them take any time. refuse: makes the error.
    """

    def __init__(self, refuse):
        self.refuse = refuse
        # tuples of numbers by their hashes
        self.hashes: dict[int, list] = {}

    def parts_of(self, key) -> int:
        """The number of parts of a key. Raises RefusedFile for other objects than numbers, text and
        tuples of these, and for many with one hash.
        """
        has_text, rest, seen = False, [(key, 0)], 0
        while rest:
            value, depth = rest.pop()
            seen += 1
            if seen > LONGEST_KEY or depth > DEEPEST_KEY:
                raise self.refuse("a key of a dict is a tuple of too many parts")
            if isinstance(value, tuple):
                rest.extend((item, depth + 1) for item in value)
            elif type(value) not in KEYS or (depth and isinstance(value, Tensor)):
                raise self.refuse(f"a key of a dict or an element of a set is a {named(value)}")
            elif type(value) is int and value.bit_length() > 64:
                raise self.refuse("a key of a dict is a number of more than 64 bits")
            has_text = has_text or type(value) in (str, bytes)
        if seen > 1 and not has_text:  # the hash of text depends on the process
            self._note_hash(key)
        return seen

    def _note_hash(self, key):
        equal = self.hashes.setdefault(hash(key), [])
        if key not in equal:
            equal.append(key)
        if len(equal) > MOST_EQUAL_HASHES:
            raise self.refuse("many keys of a dict have the same hash")


class Objects:
    """Makes the objects of names in a file. This class makes none, so a file may hold only numbers,
    text and containers of these.
    """

    def builder(self, function):
        """The function of the machine and the arguments that makes the results of calls of an
        object. None if it is not called.
        """
        return None

    def is_allowed(self, function) -> bool:
        """Whether the user lets files call a function or class."""
        return False

    def named(self, machine, module: str, name: str):
        """The object that a name stands for."""
        raise machine.refuse(f"there is a name, {shown(f'{module}.{name}')}, in place of data")

    def instance(self, machine, kind, arguments):
        """A new instance of a class."""
        raise machine.refuse(f"jaxgrad makes no instance of {named(kind)}")

    def set_state(self, machine, target, state):
        """Set the attributes of an object."""
        raise machine.refuse(f"attributes of a {type(target).__name__} are set")

    def persistent(self, machine, identity):
        """The object outside of the instructions that an id stands for."""
        raise machine.refuse("there is a persistent id in place of data")


class Machine:
    """Runs the instructions at a place of a file.

    source: the file; start, end: where they are; what: their name in messages; objects: what names
    stand for; encoding: of the strings of Python 2.
    """

    # whether the user trusts the file
    is_trusting = False

    def __init__(
        self,
        source: Source,
        start: int,
        end: int,
        what: str,
        objects: Objects,
        encoding: str = "utf-8",
    ):
        self.source, self.file_name = source, what
        self.first, self.last = start, end
        self.objects, self.encoding = objects, encoding
        self.code, self.position, self.at = bytearray(), 0, 0
        self.stack: list = []
        self.outer: list[list] = []
        self.memo: dict = {}
        self.keys = Keys(self.refuse)
        self.spent = 0

    def run(self):
        """Run to the end of the instructions, and return the object."""
        if self.byte() != 0x80:
            raise self.refuse("it does not begin with the number of a protocol")
        self.position = 0
        while True:
            self.at = self.position
            number = self.byte()
            if number == STOP:
                return self.result()
            instruction = INSTRUCTIONS[number]
            if instruction is None:
                raise self._unknown(number)
            instruction(self)

    def result(self):
        if len(self.stack) != 1 or self.outer:
            raise self.refuse("it ends with another number of objects than one")
        return self.stack.pop()

    def refuse(self, why: str, kind: type = RefusedFile) -> RefusedFile:
        return self.source.refuse(
            f"Weights only load failed: at byte {self.at} of {self.file_name}: {why}. Nothing of "
            "the file was executed",
            kind,
        )

    def _unknown(self, number):
        name = REFUSED.get(bytes([number]))
        if name is None:
            return self.refuse(f"there is no instruction {number:#04x}")
        return self.refuse(f"Unsupported operand {number}: jaxgrad does not run {name}")

    @property
    def end(self) -> int:
        """The position in the file behind the last instruction."""
        return self.first + self.position

    def spend(self, cost: int):
        """Count memory or work. Raises RefusedFile for more than the size of the file explains."""
        self.spent += cost
        if self.spent > ALLOWANCE + FOR_EACH_BYTE * self.position:
            raise self.refuse("the objects would take far more memory than the file has bytes")

    # ---- the bytes

    def byte(self) -> int:
        if self.position == len(self.code):
            self._extend(1)
        self.position += 1
        return self.code[self.position - 1]

    def take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.code):
            self._extend(end - len(self.code))
        data = bytes(self.code[self.position : end])
        self.position = end
        return data

    def _extend(self, least):
        begin = self.first + len(self.code)
        if begin + least > self.last:
            raise self.refuse("it ends in the middle of an instruction", EndedFile)
        count = min(max(least, CHUNK), self.last - begin)
        self.code += self.source.read(begin, count, self.file_name)

    def number(self, size: int) -> int:
        """An unsigned number of so many bytes."""
        return int.from_bytes(self.take(size), "little")

    def line(self) -> str:
        for length in range(LONGEST_NAME):
            if self.byte() == 0x0A:
                self.position -= length + 1
                text = self.take(length)
                self.position += 1
                return self.text(text, "utf-8")
        raise self.refuse(f"a name is longer than {LONGEST_NAME} bytes")

    def text(self, data: bytes, encoding: str) -> str | bytes:
        if encoding == "bytes":
            return data
        try:
            return data.decode(encoding, "surrogatepass" if encoding == "utf-8" else "strict")
        except UnicodeDecodeError as error:
            why = f"a string is not {encoding}: {shown(data)}"
            raise UndecodedText(*error.args[:4], str(self.refuse(why))) from None

    # ---- the stack

    def push(self, value):
        self.stack.append(value)

    def pop(self):
        if not self.stack:
            raise self.refuse("an object is missing on the stack")
        return self.stack.pop()

    def top(self):
        if not self.stack:
            raise self.refuse("an object is missing on the stack")
        return self.stack[-1]

    def mark(self):
        self.spend(CONTAINER)
        self.outer.append(self.stack)
        self.stack = []

    def to_mark(self) -> list:
        """The objects behind the last mark, which are taken from the stack."""
        if not self.outer:
            raise self.refuse("a mark is missing on the stack")
        items, self.stack = self.stack, self.outer.pop()
        return items

    def keep(self, place: int):
        self.memo[place] = self.top()

    def recall(self, place: int):
        if place not in self.memo:
            raise self.refuse(f"no object has been kept under the number {place}")
        self.push(self.memo[place])

    # ---- the containers

    def container(self, value):
        self.spend(CONTAINER)
        self.push(value)

    def tuple_of(self, count: int):
        items = [self.pop() for _ in range(count)]
        self.container(tuple(reversed(items)))

    def append(self, items):
        target = self.top()
        if type(target) is not list:
            raise self.refuse(f"an element is appended to a {type(target).__name__}")
        target.extend(items)

    def add(self, items):
        target = self.top()
        if type(target) is not set:
            raise self.refuse(f"an element is added to a {type(target).__name__}")
        target.update(map(self.key, items))
        self.spend(ITEM * len(items))

    def set_items(self, items):
        target = self.top()
        if type(target) not in DICTS:
            raise self.refuse(f"an item is set in a {type(target).__name__}")
        if len(items) % 2:
            raise self.refuse("a key has no value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[self.key(key)] = value
        self.spend(ITEM * len(items))

    def key(self, value):
        """A key of a dict, or an element of a set, after a check."""
        if type(value) is not str:
            self.spend(ITEM * self.keys.parts_of(value))
        return value

    # ---- names, and what is made of them

    def name(self, module, name):
        if not isinstance(module, str) or not isinstance(name, str):
            raise self.refuse("a name is no text")
        self.push(self.objects.named(self, module, name))

    def reduce(self):
        arguments, function = self.pop(), self.pop()
        self.container(self.called(function, arguments))

    def called(self, function, arguments):
        """The result of a call. Raises RefusedFile if it has no builder."""
        builder = self.objects.builder(function)
        if builder is None and self.objects.is_allowed(function) and type(arguments) is tuple:
            return function(*arguments)
        if builder is None:
            raise self.refuse(f"jaxgrad does not call {named(function)}")
        code, defaults = builder.__code__, builder.__defaults__ or ()
        most = code.co_argcount - 1
        if type(arguments) is not tuple or not most - len(defaults) <= len(arguments) <= most:
            raise self.refuse(f"{named(function)} has other arguments than PyTorch gives it")
        return builder(self, *arguments)

    def new(self):
        arguments, kind = self.pop(), self.pop()
        self.container(self.objects.instance(self, kind, arguments))

    def build(self):
        state = self.pop()
        self.objects.set_state(self, self.top(), state)

    def find(self):
        self.push(self.objects.persistent(self, self.pop()))


def named(value) -> str:
    """The name of a class or function, or the type of any other object."""
    name = getattr(value, "__qualname__", None)
    return shown(f"{value.__module__}.{name}") if isinstance(name, str) else type(value).__name__


KEYS = frozenset(
    [type(None), bool, int, float, str, bytes, Size, dtypes.dtype, device.device, Tensor]
)

# ---- the instructions

STOP = ord(".")

INSTRUCTIONS: list = [None] * 256


def instruction(code: bytes):
    def enter(function):
        INSTRUCTIONS[code[0]] = function
        return function

    return enter


def _pushes(code: bytes, make):
    INSTRUCTIONS[code[0]] = lambda machine: machine.push(make(machine))


def _does(code: bytes, function):
    INSTRUCTIONS[code[0]] = function


@instruction(b"\x80")
def _protocol(machine):
    version = machine.byte()
    if not 2 <= version <= NEWEST_PROTOCOL:
        raise machine.refuse(f"jaxgrad reads the protocols 2 to {NEWEST_PROTOCOL}, not {version}")


_does(b"\x95", lambda m: m.number(8))  # FRAME: the size of a block, which means nothing here
_does(b"(", Machine.mark)
_does(b"0", Machine.pop)
_does(b"1", Machine.to_mark)

# numbers and text
_pushes(b"N", lambda m: None)
_pushes(b"\x88", lambda m: True)
_pushes(b"\x89", lambda m: False)
_pushes(b"K", Machine.byte)
_pushes(b"M", lambda m: m.number(2))
_pushes(b"J", lambda m: int.from_bytes(m.take(4), "little", signed=True))
_pushes(b"\x8a", lambda m: int.from_bytes(m.take(m.byte()), "little", signed=True))
_pushes(b"\x8b", lambda m: int.from_bytes(m.take(m.number(4)), "little", signed=True))
_pushes(b"G", lambda m: struct.unpack(">d", m.take(8))[0])
_pushes(b"\x8c", lambda m: m.text(m.take(m.byte()), "utf-8"))
_pushes(b"X", lambda m: m.text(m.take(m.number(4)), "utf-8"))
_pushes(b"\x8d", lambda m: m.text(m.take(m.number(8)), "utf-8"))
_pushes(b"C", lambda m: m.take(m.byte()))
_pushes(b"B", lambda m: m.take(m.number(4)))
_pushes(b"\x8e", lambda m: m.take(m.number(8)))
_pushes(b"\x96", lambda m: bytearray(m.take(m.number(8))))
_pushes(b"U", lambda m: m.text(m.take(m.byte()), m.encoding))  # strings of Python 2
_pushes(b"T", lambda m: m.text(m.take(m.number(4)), m.encoding))

# containers
_does(b"]", lambda m: m.container([]))
_does(b"}", lambda m: m.container({}))
_does(b")", lambda m: m.push(()))
_does(b"\x8f", lambda m: m.container(set()))
_does(b"a", lambda m: m.append([m.pop()]))
_does(b"e", lambda m: m.append(m.to_mark()))
_does(b"s", lambda m: m.set_items([m.pop(), m.pop()][::-1]))
_does(b"u", lambda m: m.set_items(m.to_mark()))
_does(b"t", lambda m: m.container(tuple(m.to_mark())))
_does(b"\x85", lambda m: m.tuple_of(1))
_does(b"\x86", lambda m: m.tuple_of(2))
_does(b"\x87", lambda m: m.tuple_of(3))
_does(b"\x91", lambda m: m.container(frozenset(map(m.key, m.to_mark()))))


_does(b"\x90", lambda m: m.add(m.to_mark()))


# the memo
_does(b"q", lambda m: m.keep(m.byte()))
_does(b"r", lambda m: m.keep(m.number(4)))
_does(b"\x94", lambda m: m.keep(len(m.memo)))
_does(b"h", lambda m: m.recall(m.byte()))
_does(b"j", lambda m: m.recall(m.number(4)))

# names
_does(b"c", lambda m: m.name(m.line(), m.line()))
_does(b"\x93", lambda m: m.name(*[m.pop(), m.pop()][::-1]))
_does(b"R", lambda m: m.reduce())
_does(b"\x81", lambda m: m.new())
_does(b"b", lambda m: m.build())
_does(b"Q", Machine.find)
