"""Files that are damaged or want to do harm, made in the same way in every run.

Each has what must come of it: "read", "refused", or None where both are right.
"""

import io
import json
import random
import struct
import zipfile
import zlib

from helpers.saved_objects import FILES

from jaxgrad.serialization import _instructions

# ---- instructions, as the documentation of the format writes them

STOP = b"."
MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def text(value):
    data = value.encode()
    return b"X" + struct.pack("<L", len(data)) + data


def number(value):
    if 0 <= value < 256:
        return b"K%c" % value
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return (
        b"\x8a%c" % len(data) + data
        if len(data) < 256
        else b"\x8b" + struct.pack("<L", len(data)) + data
    )


def pack(*parts):
    return b"(" + b"".join(parts) + b"t"


def numbers(*values):
    return pack(*map(number, values))


def call(function, *arguments):
    return function + pack(*arguments) + b"R"


def list_of(*values):
    return b"](" + b"".join(values) + b"e"


HOOKS = call(name("collections", "OrderedDict"))
COUNT = 6


def storage(kind="FloatStorage", key="0", count=COUNT, where="cpu", module="torch"):
    return pack(text("storage"), name(module, kind), text(key), text(where), number(count)) + b"Q"


def tensor(size=(2, 3), stride=(3, 1), offset=0, of=None, grad=b"\x89", hooks=HOOKS, more=()):
    parts = (storage() if of is None else of, number(offset), numbers(*size), numbers(*stride))
    return call(name("torch._utils", "_rebuild_tensor_v2"), *parts, grad, hooks, *more)


def tensor_of_dtype(dtype, size, of):
    parts = (of, number(0), numbers(*size), numbers(*[1] * len(size)))
    rebuild = name("torch._utils", "_rebuild_tensor_v3")
    return call(rebuild, *parts, b"\x89", HOOKS, name("torch", dtype))


def program(code, protocol=2):
    return b"\x80%c" % protocol + code + STOP


def archive(code, records=None, root="archive/", compression=zipfile.ZIP_STORED):
    """An archive with these instructions, made by Python's zipfile."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        file.writestr(f"{root}data.pkl", code)
        contents = {"data/0": struct.pack("<6f", *range(6)), "version": b"3\n"} | (records or {})
        for record, data in contents.items():
            file.writestr(f"{root}{record}", data)
    return buffer.getvalue()


# ---- what the instructions may not do

MARK = "/tmp/jaxgrad_was_here"
COMMAND = text(f"touch {MARK}")


def dangerous():
    for module, attribute in (
        *(("os", "system"), ("posix", "system"), ("subprocess", "Popen"), ("builtins", "eval")),
        *(("builtins", "exec"), ("__builtin__", "eval"), ("builtins", "getattr")),
        *(("builtins", "__import__"), ("builtins", "open"), ("builtins", "type")),
        *(("importlib", "import_module"), ("runpy", "run_path"), ("sys", "exit")),
        *(("torch", "load"), ("torch.hub", "load"), ("torch.jit", "load"), ("numpy", "load")),
        *(("torch.storage", "_load_from_bytes"), ("torch._utils", "_import_dotted_name")),
        *(("torch.serialization", "os.system"), ("torch", "os"), ("torch", "serialization")),
        *(
            ("jaxgrad", "save"),
            ("jaxgrad.serialization", "os.remove"),
            ("copyreg", "_reconstructor"),
        ),
        *(("torch._dynamo", "x"), ("shutil", "rmtree"), ("operator", "attrgetter")),
        *(("collections", "OrderedDict.__init__"), ("torch", "Tensor.__reduce__")),
        *(
            ("torch", "__init__"),
            ("torch", "builtins"),
            ("torch", "numpy"),
            ("", ""),
            ("torch", ""),
        ),
    ):
        yield f"call of {module}.{attribute}", call(name(module, attribute), COMMAND)
        by_text = text(module) + text(attribute) + b"\x93" + pack(COMMAND) + b"R"
        yield f"call of {module}.{attribute} by text", by_text
    system = b"cos\nsystem\n"
    yield "instance by INST", b"(" + COMMAND + b"ios\nsystem\n"
    yield "instance by OBJ", b"(" + system + COMMAND + b"o"
    yield "instance by NEWOBJ", system + pack(COMMAND) + b"\x81"
    yield "instance by NEWOBJ_EX", system + pack(COMMAND) + b"}\x92"
    yield "state of a function", system + b"}b"
    yield "a name alone", system
    yield "a name with control characters", name("os\x1b[2J\u202e", "sys\rtem")
    yield "a long name", name("m" * 10_000, "n")
    yield "a name without an end", b"cos"
    for code in (b"\x82\x01", b"\x83\x01\x00", b"\x84\x01\x00\x00\x00"):
        yield f"extension {code[0]:#x}", code


def refused_instructions():
    yield "nothing", b""
    yield "persistent id in text", b"P0\n"
    for code in (b"I1\n", b"L1L\n", b"F1.0\n", b"S'a'\n", b"Va\n", b"N2", b"(d", b"(l"):
        yield f"instruction {code[:1]!r} of protocol 0", code
    yield "GET in text", b"Nq\x00g0\n"
    yield "PUT in text", b"Np0\n"
    yield "a buffer", b"\x97"
    yield "a read-only buffer", b"N\x98"
    yield "an unknown instruction", b"\xff"
    for code in (b"0", b"t", b"N\x86", b"e", b"s", b"Ns", b"u", b"R", b"NR", b"b", b"q\x00", b"Q"):
        yield f"a stack too small for {code!r}", code
    yield "a mark that stays", b"(N"
    yield "two objects", b"NN"
    yield "elements of a dict", b"}Na"
    yield "items of a list", b"]NNs"
    yield "items of a tensor", tensor() + b"NNs"
    yield "an odd number of items", b"}(Nu"
    yield "elements of a list as of a set", b"](N\x90"
    yield "what was not kept", b"h\x07"
    yield "text beyond the end", b"X\xff\xff\xff\x7fabc"
    yield "text of 2**63 bytes", b"\x8d" + struct.pack("<Q", 2**63) + b"abc"
    yield "bytes of 2**62 bytes", b"\x8e" + struct.pack("<Q", 2**62)
    yield "a bytearray of 2**62 bytes", b"\x96" + struct.pack("<Q", 2**62)
    yield "a number beyond the end", b"\x8b\xff\xff\xff\x7f"
    yield "text that is not UTF-8", b"X\x02\x00\x00\x00\xff\xfe"
    yield "a cut number", b"G\x00\x00"


def refused_objects():
    ordered, encode = name("collections", "OrderedDict"), name("_codecs", "encode")
    device, size = name("torch", "device"), name("torch", "Size")
    yield "a dict of a number", call(ordered, number(1))
    yield "a dict of no pairs", call(ordered, list_of(numbers(1)))
    yield "a dict with a list as key", b"}]Ns"
    yield "a dict with a dict as key", b"}}Ns"
    yield "a set of lists", call(name("builtins", "set"), list_of(b"]"))
    yield "a set in protocol 4 of lists", b"\x8f(]\x90"
    yield "a complex number of text", call(name("builtins", "complex"), text("1"), text("2"))
    for code in ("rot13", "zlib", "hex", "unicode_escape", "idna"):
        yield f"bytes by {code}", call(encode, text("abc"), text(code))
    yield "bytes of other text", call(encode, text("€"), text("latin1"))
    yield "a bytearray of 2**40", call(name("builtins", "bytearray"), number(2**40))
    yield "bytes of 2**40", call(name("builtins", "bytes"), number(2**40))
    yield "a device that is no device", call(device, text("/dev/sda"))
    yield "a device by a number", call(device, number(1))
    yield "a size of text", call(size, pack(text("a")))
    yield "a size of a huge number", call(size, pack(number(1 << 80_000)))
    layout = name("torch.serialization", "_get_layout")
    yield "a layout that is none", call(layout, text("os.system"))
    yield "a factory that is a function", call(name("collections", "defaultdict"), encode)
    yield "a call of text", call(text("os.system"), COMMAND)
    yield "a call of a tensor", call(tensor(), number(1))
    yield "a call of a list", call(list_of(), number(1))
    yield "arguments that are a list", name("torch", "Size") + list_of() + b"R"
    yield "an instance of a class", ordered + b")\x81"
    for state in (b"}(" + text("items") + b"Nu", b"}(" + text("__class__") + b"Nu"):
        yield f"attributes of a dict {state[8:14]!r}", b"}" + state + b"b"
        yield f"attributes of a tensor {state[8:14]!r}", tensor() + state + b"b"
    yield "attributes that are a list", HOOKS + list_of() + b"b"
    array, dtype = name("numpy._core.multiarray", "_reconstruct"), name("numpy", "dtype")
    empty = call(
        array, name("numpy", "ndarray"), numbers(0), call(encode, text("b"), text("latin1"))
    )
    yield "an array of objects", call(dtype, text("O8"), b"\x89", b"\x88")
    yield "a type of a subarray", call(dtype, text("(2,3)f4"), b"\x89", b"\x88")
    floats, data = call(dtype, text("f8"), b"\x89", b"\x88"), b"B" + struct.pack("<L", 8) + bytes(8)
    for shape in ((2,), (-1,), (2**62, 4), (0, 2**62, 2**62), (1,) * 80):
        state = pack(number(1), numbers(*shape), floats, b"\x89", data)
        yield f"an array of shape {shape[:3]}", empty + state + b"b"
    yield "an array that is a class", call(array, ordered, numbers(0), text("b"))
    number_of = name("numpy._core.multiarray", "scalar")
    yield "a number of 3 bytes", call(number_of, floats, b"C\x03abc")
    yield "a number of objects", call(number_of, call(dtype, text("O"), b"\x89", b"\x88"), data)


def refused_tensors():
    yield "offset beyond the storage", tensor(offset=1)
    yield "offset of 2**62", tensor(offset=2**62)
    yield "negative offset", tensor(offset=-1)
    yield "negative size", tensor((-2, 3))
    yield "negative stride", tensor((2, 3), (-3, 1), 3)
    yield "strides beyond the storage", tensor((2, 3), (4, 1))
    yield "stride of 2**62", tensor((2, 3), (2**62, 1))
    yield "one stride for two sizes", tensor((2, 3), (1,))
    yield "2**64 elements", tensor((2**32, 2**32), (0, 0))
    yield "2**63 bytes", tensor((2**61,), (0,))
    yield "0 times 2**80 elements", tensor((0, 2**40, 2**40), (0, 0, 0))
    yield "a number of 80,000 bits as size", tensor((1 << 80_000,), (0,))
    yield "65 dimensions", tensor((1,) * 65, (1,) * 65)
    yield "10**9 elements of one", tensor((10**9,), (0,))
    yield "2**40 elements of one", tensor((2**20, 2**20), (0, 0))
    windows = [tensor((2**20 + i, 3), (0, 1), i % 4) for i in range(16)]
    yield "many windows", list_of(*windows)
    yield (
        "a size that is a list",
        call(
            name("torch._utils", "_rebuild_tensor_v2"),
            storage(),
            number(0),
            list_of(number(2)),
            numbers(1),
            b"\x89",
            HOOKS,
        ),
    )
    yield "a size of True", tensor().replace(numbers(2, 3), b"(\x88K\x03t")
    yield "too few arguments", call(name("torch._utils", "_rebuild_tensor_v2"), storage())
    yield "no storage", tensor(of=text("storage"))
    yield "a tensor as storage", tensor(of=tensor())
    yield "hooks", tensor(hooks=HOOKS + b"K\x01Ns")
    yield "metadata that are unknown", tensor(more=[b"}" + text("code") + b"Ns"])
    yield "metadata that are text", tensor(more=[text("conj")])
    yield "the conjugate of real numbers", tensor(more=[b"}" + text("conj") + b"\x88s"])
    flags = b"}" + text("neg") + b"\x88s"
    whole = storage("ByteStorage", "bytes", 4)
    yield "the negative of bytes", tensor((4,), (1,), of=whole, more=[flags])
    yield "a gradient of integers", tensor((4,), (1,), of=whole, grad=b"\x88")
    parameter = name("torch._utils", "_rebuild_parameter")
    integers = tensor((4,), (1,), of=whole)
    yield "a parameter of integers", call(parameter, integers, b"\x88", HOOKS)
    yield "a parameter of a parameter's name", call(parameter, parameter, b"\x89", HOOKS)
    of_type = name("torch._tensor", "_rebuild_from_type_v2")
    rebuild = name("torch._utils", "_rebuild_tensor_v2")
    yield (
        "a tensor of another class",
        call(of_type, rebuild, name("collections", "OrderedDict"), b")", b"}"),
    )
    yield (
        "a tensor by a set",
        call(of_type, name("builtins", "set"), name("torch", "Tensor"), pack(list_of()), b"}"),
    )
    yield "a storage with other elements", tensor(of=storage(count=5))
    yield "a storage of 2**61 elements", tensor(of=storage(count=2**61))
    yield "a storage of -1 elements", tensor(of=storage(count=-1))
    yield "a storage that is not there", tensor(of=storage(key="1"))
    yield "a storage of another file", tensor(of=storage(key="../data.pkl"))
    yield "a storage of another class", tensor(of=storage("OrderedDict", module="collections"))
    yield "two dtypes of a storage", list_of(tensor(), tensor(of=storage("IntStorage")))
    untyped = storage("UntypedStorage", "bytes", 4, module="torch.storage")
    yield (
        "two dtypes of bytes",
        list_of(tensor_of_dtype("uint16", (2,), untyped), tensor_of_dtype("int8", (4,), untyped)),
    )
    yield "bytes too few for the dtype", tensor_of_dtype("float64", (1,), untyped)
    yield "a dtype that is none", tensor_of_dtype("nn", (1,), untyped)
    for identity in (number(1), text("storage"), numbers(1, 2), pack(text("module"), *[b"N"] * 4)):
        yield f"the persistent id {identity[:12]!r}", identity + b"Q"
    yield "another machine's device", tensor(of=storage(where="os.system('x')"))
    sparse = name("torch._utils", "_rebuild_sparse_tensor")
    coo = call(name("torch.serialization", "_get_layout"), text("torch.sparse_coo"))
    indices = tensor((1, 2), (2, 1), of=storage("LongStorage", "places", 2))
    values = tensor((2,), (1,))
    yield "indices out of range", call(sparse, coo, pack(indices, values, numbers(2), b"\x89"))
    yield (
        "elements without indices",
        call(sparse, coo, pack(indices, tensor(), numbers(9), b"\x89")),
    )
    yield (
        "indices that are not sorted",
        call(sparse, coo, pack(indices, values, numbers(2**40), b"\x88")),
    )
    yield "a sparse tensor of another layout", call(sparse, text("csr"), pack(indices, values))
    yield "a sparse tensor of text", call(sparse, coo, pack(text("a"), text("b"), numbers(1)))


RECORDS = {"data/bytes": bytes([2, 0, 255, 1]), "data/places": struct.pack("<2q", 7, 3)}


def bombs():
    """Small files that would take much memory or time."""
    pairs = b"Nq\x00" + b"0h\x00h\x00\x86q\x00" * 60
    yield "2**60 tuples", "read", pairs
    yield "2**60 tuples as a key", "refused", b"}" + pairs + b"Ns"
    yield "deep lists", "read", b"]" * 20_000 + b"a" * 19_999
    yield "deep tuples", "read", b")" + b"\x85" * 20_000
    yield "a deep tuple as a key", "refused", b"})" + b"\x85" * 100_000 + b"Ns"
    yield "a dict in itself", "read", b"}q\x00K\x01h\x00s"
    yield "a list in itself", "read", b"]q\x00h\x00a"
    yield "an ordered dict in itself", "read", HOOKS + b"q\x00K\x01h\x00s"
    yield "many sets", "refused", b"(" + b"\x8f" * 2_000_000 + b"t"
    yield "many dicts", "refused", b"(" + b"}" * 4_000_000 + b"t"
    yield "many ordered dicts", "refused", HOOKS + b"0(" + b"h\x00)R" * 500_000 + b"t"
    yield "many marks", "refused", b"(" * 4_000_000
    prime = 2**61 - 1
    keys = b"".join(number(prime * i) + b"N" for i in range(100_000))
    yield "keys with one hash", "refused", b"}(" + keys + b"u"
    keys = b"".join(numbers(*pair) + b"N" for pair in equal_hashes(20_000))
    yield "tuples with one hash", "refused", b"}(" + keys + b"u"
    big = b"](" + b"N" * 200_000 + b"eq\x00"
    make = name("builtins", "set") + b"q\x01"
    yield (
        "a large list as many sets",
        "refused",
        big + b"0" + make + b"0(" + b"h\x01h\x00\x85R" * 50_000 + b"t",
    )
    long = text("a" * 200_000) + b"q\x00" + name("_codecs", "encode") + b"q\x01"
    again = text("latin1") + b"q\x02" + b"(" + b"h\x01h\x00h\x02\x86R" * 50_000 + b"t"
    yield "long text as many bytes", "refused", long + again
    key = pack(*[b"K\x01"] * 900) + b"q\x00"
    yield "a long key many times", "refused", key + b"}(" + b"h\x00N" * 200_000 + b"u"
    size = pack(*[b"K\x01"] * 50_000) + b"q\x00" + name("torch", "Size") + b"q\x01"
    yield "a long size many times", "refused", size + b"(" + b"h\x01h\x00\x85R" * 50_000 + b"t"
    yield "one tensor many times", "read", tensor() + b"q\x000(" + b"h\x00" * 100_000 + b"t"
    yield (
        "a number of a megabyte",
        "read",
        b"\x8b" + struct.pack("<L", 1_000_000) + b"\x01" * 1_000_000,
    )
    yield (
        "a key of a megabyte",
        "refused",
        b"}\x8b" + struct.pack("<L", 1_000_000) + b"\x01" * 1_000_000 + b"Ns",
    )


def equal_hashes(count):
    """Pairs of numbers that have the same hash as tuples: the steps of xxHash backwards."""
    first, second, fifth, full = (
        11400714785074694791,
        14029467366897019727,
        2870177450012600261,
        2**64,
    )
    goal = 12345 * pow(first, -1, full) % full
    before = (goal >> 31 | goal << 33) % full
    i = 0
    while count:
        i += 1
        state = (fifth + i * second) % full
        state = (state << 31 | state >> 33) % full * first % full
        lane = (before - state) * pow(second, -1, full) % full
        if 0 < lane < 2**61 - 1:  # the hash of such an int is the int
            count -= 1
            yield i, lane


def welcome():
    """What looks odd and is right."""
    yield "an expanded tensor", tensor((4, 1000), (0, 0))
    yield "protocol 4", b"\x95" + bytes(8) + b"\x8c\x01a\x940]\x94h\x00a"
    yield "booleans of other bytes", tensor((4,), (1,), of=storage("BoolStorage", "bytes", 4))
    yield "no elements", tensor((0, 3), (3, 1), 6)
    yield "a storage alone", storage()
    yield "a class alone", name("collections", "OrderedDict")
    yield "a large number of the memo", b"Nr\xff\xff\xff\xff"
    yield "half of a pair", HOOKS + b"0" + tensor((1,), (1,), 5)


# ---- archives

PLAIN = program(tensor())


def archives():
    good = archive(PLAIN)
    yield "an archive that is compressed", archive(PLAIN, compression=zipfile.ZIP_DEFLATED)
    bomb = {"data/0": bytes(100_000_000)}
    yield "an archive that is a bomb", archive(PLAIN, bomb, compression=zipfile.ZIP_DEFLATED)
    yield "no instructions", archive(PLAIN).replace(b"data.pkl", b"data.pkx")
    yield "two instructions", archive(PLAIN, {"data/data.pkl": PLAIN})
    yield "two entries of one name", archive(PLAIN, {"data/1": b"x"}).replace(b"data/1", b"data/0")
    yield "a name that goes up", archive(PLAIN, {"../evil": b"x"})
    yield "a name that is absolute", archive(PLAIN, {"/etc": b"x"}, root="/")
    yield (
        "a name that is no text",
        archive(PLAIN, {"data/abc": b""}).replace(b"data/abc", b"data/\xff\xfe\xff"),
    )
    yield "a script", archive(PLAIN, {"constants.pkl": b"x", "code/a.py": b"x"})
    yield "a version to come", archive(PLAIN, {"version": b"11\n"})
    yield "a version that is no number", archive(PLAIN, {"version": b"x\n"})
    yield "a byte order that is none", archive(PLAIN, {"byteorder": b"middle"})
    yield "a byte order of a gigabyte", archive(PLAIN, {"byteorder": b"little" * 1000})
    yield "bytes behind the end", good + b"x"
    yield "the end alone", good[-22:]
    end = len(good) - 22
    for what, place, value in (
        *(("the number of entries", 8, 0xFFFE), ("the number of entries", 10, 0)),
        *(("the disk", 4, 1), ("the number of entries", 8, 0xFFFF), ("the comment", 20, 5)),
    ):
        changed = good[: end + place] + struct.pack("<H", value) + good[end + place + 2 :]
        yield f"{what} is {value}", changed
    for what, place in (("the size of the directory", 12), ("the place of the directory", 16)):
        for value in (0, 1, 1000, 2**31, 2**32 - 1):
            changed = good[: end + place] + struct.pack("<L", value) + good[end + place + 4 :]
            yield f"{what} is {value}", changed
    directory = good.index(b"PK\1\2")
    for what, place in (
        *(("the packed size", 20), ("the size", 24), ("the place of an entry", 42)),
        *(("the lengths of a name and more", 28), ("the flags", 8), ("the method", 10)),
    ):
        for value in (7, 0x7FFFFFFF, 0xFFFFFFFF):
            place_in = directory + place
            yield (
                f"{what} is {value}",
                good[:place_in] + struct.pack("<L", value) + good[place_in + 4 :],
            )
    yield "sizes of 64 bits that lie", wide(2**60, 0)
    yield "a place of 64 bits that lies", wide(len(PLAIN), 2**60)
    yield "sizes of 64 bits that are missing", wide(None, None)
    yield "overlapping entries", overlapping()


def local_header(path, size):
    """The header before the bytes of an entry."""
    fields = 20, 0, 0, 0, 0, 0, size, size, len(path), 0
    return struct.pack("<4s5H3L2H", b"PK\3\4", *fields) + path


def entry(path, size, place, extra=b""):
    """The entry of a directory."""
    fields = 20, 20, 0, 0, 0, 0, 0, size, size, len(path), len(extra), 0, 0, 0, 0, place
    return struct.pack("<4s6H3L5H2L", b"PK\1\2", *fields) + path + extra


def with_directory(body, entries):
    directory = b"".join(entries)
    numbers = 0, 0, len(entries), len(entries), len(directory), len(body), 0
    return body + directory + struct.pack("<4s4H2LH", b"PK\5\6", *numbers)


def wide(size, place, code=PLAIN):
    """An archive of one entry whose numbers are in the fields for 64 bits."""
    path, most = b"a/data.pkl", 2**32 - 1
    extra = b"" if size is None else struct.pack("<2H3Q", 1, 24, size, size, place)
    body = local_header(path, len(code)) + code
    return with_directory(body, [entry(path, most, most, extra)])


def overlapping():
    """An archive with an entry inside of another."""
    outer, inner = b"a/data.pkl", b"a/data/0"
    hidden = local_header(inner, 24) + bytes(24)
    size = len(PLAIN + hidden)
    front = local_header(outer, size) + PLAIN
    return with_directory(front + hidden, [entry(outer, size, 0), entry(inner, 24, len(front))])


# ---- the old format, safetensors, and others


def old_files():
    head = MAGIC + program(b"M\xe9\x03") + program(b"}")
    one = tensor(
        of=pack(
            text("storage"), name("torch", "FloatStorage"), text("k"), text("cpu"), number(6), b"N"
        )
        + b"Q"
    )
    body, keys = program(one), program(list_of(text("k")))
    data = struct.pack("<q6f", 6, *range(6))
    yield "an old file", "read", head + body + keys + data
    yield "an old file, cut", "refused", head + body + keys + data[:-1]
    yield (
        "an old file with a lie",
        "refused",
        head + body + keys + struct.pack("<q", 2**60) + data[8:],
    )
    yield (
        "an old file with -1 elements",
        "refused",
        head + body + keys + struct.pack("<q", -1) + data[8:],
    )
    yield "an old file without keys", "refused", head + body + program(b"]") + data
    yield (
        "an old file with a key twice",
        "refused",
        head + body + program(list_of(text("k"), text("k"))) + data * 2,
    )
    yield "an old file with numbers as keys", "refused", head + body + program(list_of(b"]")) + data
    yield (
        "an old file of another version",
        "refused",
        MAGIC + program(b"K\x01") + program(b"}") + body,
    )
    yield "an old file that calls", "refused", MAGIC + program(call(name("os", "system"), COMMAND))
    yield (
        "an old file that calls later",
        "refused",
        head + program(call(name("os", "system"), COMMAND)),
    )
    yield (
        "an old file with a call as keys",
        "refused",
        head + body + program(call(name("os", "system"), COMMAND)),
    )
    yield "another magic number", "refused", program(number(2**79))
    yield "a list as magic number", "refused", program(b"]q\x00h\x00a")
    view = text("storage") + name("torch", "FloatStorage") + text("k") + text("cpu") + number(6)
    old_view = tensor(of=b"(" + view + numbers(1, 0, 3) + b"tQ")
    yield "a view of a storage", "refused", head + program(old_view) + keys + data


def tensor_files():
    def file(header, data=bytes(8), length=None):
        coded = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(coded) if length is None else length) + coded + data

    def entry(**changes):
        return {"x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]} | changes}

    def structure(value):
        return entry() | {"__metadata__": {"jaxgrad": json.dumps(value)}}

    yield "safetensors", "read", file(entry())
    yield "a header of 2**60 bytes", "refused", file(entry(), length=2**60)
    yield "a header of 2**63 bytes", "refused", file(entry(), length=2**64 - 1)
    yield "a header that is cut", "refused", file(entry(), length=20)
    yield "a header that is a list", "refused", file(b"[]")
    yield "a header that is not UTF-8", "refused", file(b'{"\xff": 1}')
    yield (
        "a name twice",
        "refused",
        file(
            b'{"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"x":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}'
        ),
    )
    for changes in (
        *({"dtype": "F128"}, {"dtype": []}, {"dtype": None}, {"shape": [2]}, {"shape": [-1, -1]}),
        *({"shape": [1.0]}, {"shape": "1"}, {"shape": [True]}, {"shape": [2**62, 4]}),
        *({"shape": [0, 2**70], "data_offsets": [0, 0]}, {"data_offsets": [0, 2**60]}),
        *({"data_offsets": [8, 0]}, {"data_offsets": [0]}, {"data_offsets": [1, 9]}),
        *({"data_offsets": [-8, 0]}, {"data_offsets": ["0", "8"]}, {"more": 1}),
        *({"shape": [10**400]}, {"data_offsets": [0, 10**400]}),
    ):
        yield f"safetensors with {str(changes)[:60]}", "refused", file(entry(**changes))
    yield "overlapping tensors", "refused", file(entry() | {"y": entry()["x"]})
    gap = {"y": {"dtype": "U8", "shape": [1], "data_offsets": [9, 10]}}
    yield "a gap between tensors", "refused", file(entry() | gap, bytes(10))
    yield "bytes behind the tensors", "refused", file(entry(), bytes(9))
    yield "metadata that are a list", "refused", file(entry() | {"__metadata__": []})
    prime = 2**61 - 1
    same = [[prime * i, None] for i in range(50_000)]
    yield "numbers with one hash in JSON", "refused", file(structure({"dict": same}))
    pairs = [{"tuple": pair} for pair in equal_hashes(10_000)]
    yield "tuples with one hash in JSON", "refused", file(structure({"set": pairs}))
    yield "deep structure", "refused", file({"__metadata__": {"jaxgrad": "[" * 100_000}}, b"")
    x = {"tensor": "x"}
    trained = structure(x | {"parameter": True, "requires_grad": True})
    trained["x"]["dtype"] = "I64"
    yield "a parameter of integers in JSON", "refused", file(trained)
    for value in (
        *({"tensor": "y"}, {"code": "print(1)"}, {"dtype": "annotations"}, {"dict": [1]}, {}),
        *({"dict": [[{"list": []}, 1]]}, {"dict": [[1, 2, 3]]}, x | {"pairs": True}),
        *(x | {"memory": "y"}, x | {"object": "x"}, x | {"stride": 3, "memory": "x"}),
        *(x | {"stride": ["a"], "memory": "x"}, x | {"memory": "x", "stride": [-1]}),
        *(x | {"offset": 2**62, "memory": "x", "stride": [1]}, x | {"evil": 1}, {"size": 3}),
        *({"sparse": {"values": x, "indices": x, "size": [3], "is_coalesced": True}},),
        *({"array": {"tensor": "y"}}, {"set": [{"list": []}]}, {"bytes": "€"}, {"device": "/"}),
        *(x | {"offset": 10**400, "memory": "x", "stride": [1]}, x | {"stride": [1.0]}),
        *(x | {"requires_grad": True, "object": "y"}, {"layout": "x"}, {"complex": ["a", "b"]}),
    ):
        yield f"structure {json.dumps(value)[:60]}", "refused", file(structure(value))


def other_formats():
    yield "an empty file", b""
    yield "text", b"weights: 1, 2, 3"
    yield "a tar file", bytes(257) + b"ustar" + bytes(250)
    yield "a file of NumPy", b"\x93NUMPY\x01\x00" + bytes(100)
    yield "a program", b"\x7fELF" + bytes(100)
    yield "a compressed file", zlib.compress(b"x" * 1000)
    yield "an archive of zeros", b"PK\3\4" + bytes(100)
    yield "a pickle of something", program(b"}")
    yield "many ends of archives", b"PK\3\4" + b"PK\5\6" * 20_000


# ---- damage, from a seed


def damaged(count: int):
    """Recorded files with random damage."""
    draws = random.Random(1)
    paths = [FILES / f"{stem}.pt" for stem in ("views", "tensors_old", "containers", "arrays")]
    for i in range(count):
        data = bytearray(paths[i % len(paths)].read_bytes())
        place = draws.randrange(len(data))
        kind = draws.choice(["flip", "byte", "zero", "cut", "twice", "swap", "many"])
        if kind == "flip":
            data[place] ^= 1 << draws.randrange(8)
        elif kind == "byte":
            data[place] = draws.randrange(256)
        elif kind == "zero":
            data[place : place + 16] = bytes(len(data[place : place + 16]))
        elif kind == "cut":
            del data[place:]
        elif kind == "twice":
            data[place:place] = data[place : place + draws.randrange(1, 200)]
        elif kind == "swap":
            other = draws.randrange(len(data))
            data[place : place + 4], data[other : other + 4] = (
                data[other : other + 4],
                data[place : place + 4],
            )
        else:
            for _ in range(20):
                data[draws.randrange(len(data))] = draws.randrange(256)
        yield f"damage {i}: {kind} at {place}", bytes(data)


def random_programs(count: int):
    """Random instructions, with arguments that are mostly right."""
    draws = random.Random(2)
    known = [i for i, entry in enumerate(_instructions.INSTRUCTIONS) if entry is not None]
    parts = [
        *(b"N", b"K\x01", b"]", b"}", b")", b"(", text("a"), tensor(), HOOKS, storage()),
        *(name("torch", "Size"), name("builtins", "set"), b"q\x00", b"h\x00", b"R", b"b", b"s"),
        *(name("torch._utils", "_rebuild_parameter"), numbers(1), b"e", b"u", b"t", b"\x86", b"a"),
    ]
    for i in range(count):
        code = b""
        for _ in range(draws.randrange(1, 30)):
            if draws.random() < 0.8:
                code += draws.choice(parts)
            else:
                code += bytes([draws.choice(known)]) + draws.randbytes(draws.randrange(5))
        yield f"random instructions {i}", code


def files(damage: int = 160, programs: int = 100):
    """Names, expectations and contents of all files."""
    for kind in (dangerous, refused_instructions, refused_objects, refused_tensors):
        for what, code in kind():
            yield what, "refused", archive(program(code), RECORDS)
    for version in (0, 1, 6, 255):
        yield f"protocol {version}", "refused", archive(program(b"N", version))
    yield "no protocol", "refused", archive(b"N.")
    yield "no end", "refused", archive(b"\x80\x02N")
    for what, expected, code in bombs():
        yield what, expected, archive(program(code))
    for what, code in welcome():
        yield what, "read", archive(program(code), RECORDS)
    for what, code in random_programs(programs):
        yield what, None, archive(program(code), RECORDS)
    for what, data in archives():
        yield what, "refused", data
    yield from old_files()
    yield from tensor_files()
    for what, data in other_formats():
        yield what, "refused", data
    for what, data in damaged(damage):
        yield what, None, data
